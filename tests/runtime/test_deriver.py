"""What the engine syncs, and when, counted by file; for the recorder see tests/host/test_sync_policy.py."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import Counter
from pathlib import Path

import pytest

import blockpty
from blockpty.runtime import checkpoint_writer, deriver
from blockpty.runtime.sessions import wait_for_begin
from tests.support.async_tests import async_test

STREAM = f"{0:020d}"
DERIVED = {"events.jsonl", "blocks.jsonl"}


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch, fdatasyncs: Counter[str]) -> Counter[str]:
    """How often this process forced each file; the recorder is another one."""
    # A checkpoint comes when a test asks for it, or at the end.
    monkeypatch.setattr(checkpoint_writer, "CHECKPOINT_SECONDS", 3600.0)
    return fdatasyncs


async def run(conversation: blockpty.Conversation, command: str) -> None:
    assert (await conversation.run(command)).block.exit_status == 0


@pytest.mark.linux
@async_test
async def test_process_forces_nothing(home: Path, forced: Counter[str]) -> None:
    async with blockpty.Engine(home, durability="process") as engine:
        conversation = await engine.open("c1", shell="bash")
        await run(conversation, "seq 1 400000")
        conversation.live.deriver.save()
    assert forced == {}


@pytest.mark.linux
@async_test
async def test_an_interval_forces_what_a_checkpoint_speaks_of(home: Path, forced: Counter[str]) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await run(conversation, "echo one")
        await run(conversation, "echo two")
        # A record that nothing describes would be none: that much is forced when it begins.
        assert forced == {".meta.json.new": 1}
        conversation.live.deriver.save()
        outputs = {path.name for path in conversation.layout.outputs.iterdir()}
        assert len(outputs) == 2
        assert forced == dict.fromkeys({*DERIVED, *outputs, ".meta.json.new", ".checkpoint.json.new"}, 1)
        conversation.live.deriver.save()
        assert forced["events.jsonl"] == 1, "nothing new came"


@pytest.mark.linux
@async_test
async def test_many_bytes_do_not_wait_for_a_checkpoint(
    home: Path, forced: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deriver, "SYNC_BYTES", 1024 * 1024)
    monkeypatch.setattr(checkpoint_writer, "CHECKPOINT_SECONDS", 3600.0)
    monkeypatch.setattr(checkpoint_writer, "LATEST_SECONDS", 3600.0)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        async with asyncio.timeout(30):
            # In a thread, which may be slower than what follows; and several megabytes may be taken at once.
            while forced["events.jsonl"] < 2:
                await run(conversation, "seq 1 200000")
        assert forced[".checkpoint.json.new"] == 0


@pytest.mark.linux
@pytest.mark.parametrize("durability", ["block", "always"])
@async_test
async def test_borders_are_synced_before_clients_are_notified(
    home: Path, forced: Counter[str], durability: str
) -> None:
    async with blockpty.Engine(home, durability=durability) as engine:
        conversation = await engine.open("c1", shell="bash")
        before = forced.copy()
        assert durability == "always" or before[STREAM] == 0
        await conversation.exec_block("echo one; read x; echo two")
        await conversation.wait_for("one\n")
        begun = forced - before
        assert begun[STREAM] >= 1
        assert begun["timeline.jsonl"] >= 1
        assert begun["events.jsonl"] >= 1
        await conversation.send("x\r")
        await conversation.wait_for({"token": "PROMPT"})
        ended = forced - before - begun
        assert all(ended[name] >= 1 for name in (STREAM, "timeline.jsonl", *DERIVED))


@pytest.mark.linux
@async_test
async def test_no_client_is_notified_of_what_cannot_be_synced(
    home: Path, forced: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with blockpty.Engine(home, durability="block") as engine:
        conversation = await engine.open("c1", shell="bash")
        await run(conversation, "true")
        good = os.fdatasync

        def broken(fd: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        begun = await conversation.exec_block("read x; echo one")
        waiting = asyncio.create_task(conversation.wait_for({"token": "PROMPT"}, from_cursor=begun.cursor))
        await wait_for_begin(conversation.live, 5)
        monkeypatch.setattr(os, "fdatasync", broken)
        await conversation.send("x\r")
        async with asyncio.timeout(30):
            while conversation.live.deriver.problem is None:  # noqa: ASYNC110 - the engine looks by itself, and reports nothing
                await asyncio.sleep(0.01)
        with pytest.raises(blockpty.StorageFull):
            await conversation.exec_block("echo two")
        assert not waiting.done()
        monkeypatch.setattr(os, "fdatasync", good)
        assert (await waiting).matched
        await run(conversation, "echo three")
        assert (await conversation.verify()).clean


@async_test
async def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(blockpty.BadRequest):
        blockpty.Engine(tmp_path, durability="never")
