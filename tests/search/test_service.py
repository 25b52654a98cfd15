"""Searching through an engine, in what a real shell has printed."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from blockpty.errors import BadRequest
from blockpty.ops.engine import Engine
from blockpty.search.backends import index_directory
from blockpty.search.sqlite import SqliteIndex
from tests.support.async_tests import async_test


@async_test
async def test_what_was_printed_is_found_at_once_and_leads_to_its_block(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("printf 'one\\nalpha \\033[31mbe\\033[0mta\\nthree\\n'")
        await conversation.run("ls /nonexistent-place")
        found = await engine.search("alpha beta")
        (hit,) = [one for one in found.hits if one.part == "output"]
        assert not found.partial and found.next is None
        assert (hit.conversation_id, hit.block_id, hit.snippet, hit.snippet_span) == ("c1", "b1", "alpha beta", (0, 10))
        assert hit.line == 2
        numbered = await engine.search("e", part="output", conversation_id="c1")
        assert [one.line for one in numbered.hits][-4:] == [3, 3, 2, 1]
        assert (await engine.search("alpha", part="command")).hits[0].line is None
        read = await conversation.read(hit.cursor, max_bytes=10)
        assert read.data == "alpha beta"
        assert {one.part for one in (await engine.search("nonexistent-place")).hits} == {"command", "output"}
        assert not (await engine.search("nonexistent-place", failed=False)).hits
        (failed,) = (await engine.search("nonexistent-place", failed=True, per_block=True)).hits
        assert failed.block_id == "b2" and failed.exit_status == 2
        with pytest.raises(BadRequest, match="line end"):
            await engine.search("a\nb")


@async_test
async def test_the_output_of_a_block_that_runs_is_found(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.exec_interactive("echo from the running one; read line")
        await conversation.wait_for("running one")
        (hit,) = (await engine.search("from the running", part="output")).hits
        assert hit.state == "running" and hit.exit_status is None
        await conversation.send("\n")


@async_test
async def test_it_is_indexed_soon_and_the_index_may_go_at_any_time(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        await engine.search("nothing")
        reader = SqliteIndex(index_directory(tmp_path))
        try:
            for number in range(12):
                await conversation.run(f"echo needle {number}")
                if number % 4 == 3:
                    async with asyncio.timeout(10):
                        while reader.positions().of.get("c1", (0, 0))[1] < number + 1:  # noqa: ASYNC110
                            await asyncio.sleep(0.02)
                    shutil.rmtree(index_directory(tmp_path))
                found = await engine.search(r"^needle \d+$", mode="regex", part="output")
                assert [hit.snippet for hit in found.hits] == [f"needle {one}" for one in range(number, -1, -1)]
        finally:
            reader.close()


@async_test
async def test_a_secret_on_the_line_of_a_match_is_redacted(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
        await conversation.run(f"echo the token is {secret} here")
        for hit in (await engine.search("token is")).hits:
            assert secret not in hit.snippet and secret not in hit.cmd and "token is" in hit.snippet


@async_test
async def test_conversations_of_earlier_engines_are_found(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        await (await engine.open("c1", shell="bash")).run("echo written before")
    async with Engine(tmp_path) as engine:
        (hit,) = (await engine.search("written before", part="output")).hits
        assert hit.conversation_id == "c1"


@async_test
async def test_a_deleted_conversation_is_found_no_more_and_leaves_the_counts(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        await (await engine.open("c1", shell="bash")).run("echo to be gone")
        await (await engine.open("c2", shell="bash")).run("echo to stay")
        assert (await engine.overview()).total_blocks == 2
    shutil.rmtree(tmp_path / "conversations" / "c1")
    async with Engine(tmp_path) as engine:
        assert {hit.conversation_id for hit in (await engine.search("echo to")).hits} == {"c2"}
        assert (await engine.overview()).total_blocks == 1
