"""Checks of a record that a conversation asks for: what runs is not repaired, and a seal holds for one record."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

import blockpty
from blockpty.files.lines import link_of, linked
from blockpty.runtime.record_checks import check_files
from blockpty.spool.layout import Layout
from blockpty.spool.stream import StreamReader
from tests.support.async_tests import async_test
from tests.support.record_lines import without_checksums

KEY = "0123456789abcdef of the user"


@async_test
async def test_a_running_conversation_is_not_repaired(tmp_path: Path) -> None:
    async with blockpty.Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        with pytest.raises(blockpty.Busy, match="runs"):
            await conversation.repair()
        with pytest.raises(blockpty.NotFound):
            await engine.verify("c2")


@async_test
async def test_a_seal_tells_a_record_from_any_other(tmp_path: Path) -> None:
    async with blockpty.Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo the evidence")
        with pytest.raises(blockpty.BadRequest):
            await conversation.seal("short")
        first = await conversation.seal(KEY)
        await conversation.run("echo more")
        found = await conversation.verify(key=KEY)
        assert found.clean and found.sealed_to == first.sealed_to
        await conversation.close()
        last = await conversation.seal(KEY)
        found = await conversation.verify(key=KEY)
        assert found.clean and found.sealed_to == last.sealed_to == StreamReader(conversation.layout.stream).size()
        other = await conversation.verify(key=f"{KEY} but another")
        assert not other.clean and "no seal" in other.differences[0]["message"]
        assert (await conversation.verify()).clean
        assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    directory = tmp_path / "conversations" / "c1"
    forged(directory)
    whole = await check_files("c1", Layout(directory), None, None)
    assert whole.clean, "who makes all of it again is known by a key only"
    found = await check_files("c1", Layout(directory), None, KEY)
    assert not found.clean and any("another record" in one["message"] for one in found.differences)


def forged(directory: Path) -> None:
    """Write the record again with other times, everything in it fitting together."""
    whole = (directory / "timeline.jsonl").read_bytes().splitlines()
    link, made = link_of(b""), []
    for number, line in enumerate(whole):
        entry = orjson.loads(line)
        digest = entry.get("sum")
        plain = without_checksums(line)
        if number < 2:
            plain["ts"] -= 1
        made.append(linked(orjson.dumps(plain), link, digest))
        link = link_of(made[-1][:-1])
    assert sum(map(len, made)) == sum(len(line) + 1 for line in whole)
    (directory / "timeline.jsonl").write_bytes(b"".join(made))
    for name in ("events.jsonl", "blocks.jsonl", "checkpoint.json"):
        (directory / name).unlink()
    shutil.rmtree(directory / "blocks")
    (directory / "blocks").mkdir()
