"""The engine with all operations: search and overview over its conversations."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from blockpty.api.progress import Progress
from blockpty.errors import BadRequest
from blockpty.ops.engine import Engine
from blockpty.search.sqlite import SqliteIndex
from tests.support.async_tests import async_test


@async_test
async def test_of_a_real_home(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("true")
        await conversation.run("(exit 3)")
        seen = await engine.overview()
        assert seen.statuses == {"0": 1, "3": 1} and seen.total_blocks == 2 and not seen.partial
        (one,) = seen.conversations
        assert (one.conversation_id, one.live, one.blocks, one.failed, one.last_block.cmd) == (
            "c1", True, 2, 1, "(exit 3)",
        )  # fmt: skip
        assert [found.block.block_id for found in seen.blocks] == ["b2", "b1"]
        assert [found.block.block_id for found in (await engine.overview(failed=True)).blocks] == ["b2"]


@async_test
async def test_it_waits_for_the_index_and_says_how_far_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Engine(tmp_path) as engine:
        await (await engine.open("c1", shell="bash")).run("seq 1 50000")
    let, add = threading.Event(), SqliteIndex.add

    def add_slowly(index: SqliteIndex, entries: Any, positions: Any) -> None:
        add(index, entries, positions)
        let.wait()

    monkeypatch.setattr(SqliteIndex, "add", add_slowly)
    monkeypatch.setattr(SqliteIndex, "batch_bytes", 100_000)
    async with Engine(tmp_path) as engine:
        try:
            assert (await engine.overview(timeout_ms=0)).partial
            with Progress() as progress:
                waiting = asyncio.ensure_future(engine.overview(timeout_ms=60_000))
                while progress.what != "index":  # noqa: ASYNC110  (nothing tells)
                    await asyncio.sleep(0.01)
                assert progress.done == 0 and progress.total is not None and progress.total > 300_000
                assert not waiting.done()
                let.set()
                seen = await waiting
            assert not seen.partial and seen.total_blocks == 1
            assert 200_000 < progress.done <= progress.total
        finally:
            let.set()


@async_test
async def test_lines_around_a_match_come_redacted_as_all_output(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        secret = "AKIA" + "Q" * 16
        await conversation.run(f"seq 1 3; echo {secret[:4]}''{secret[4:]}; echo needle 1; echo after; echo more")
        found = await engine.search(r"needle \d", regex=True, context=2, part="output")
        assert [hit.context for hit in found.hits] == [f"3\nAKIA{'*' * 16}\nneedle 1\nafter\nmore"]
        assert [hit.context for hit in (await engine.search("needle", part="output")).hits] == [None]
        assert [hit.context for hit in (await engine.search("needle", part="command", context=2)).hits] == [None]
        with pytest.raises(BadRequest, match="takes no regular expression"):
            await engine.search("needle", regex=True, mode="words")
