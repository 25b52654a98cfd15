"""Conversations that have ended: suspended when nothing asks for them, resumed when they are used."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest

import blockpty
from blockpty.host.descriptors import EACH
from blockpty.runtime import engine as engine_module
from tests.support import disk, homes
from tests.support.async_tests import async_test

# Recorded entries have only what the machine looks at.
pytestmark = pytest.mark.damages_files


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.linux
@async_test(timeout_seconds=110)
async def test_ended_conversations_hold_no_files(home: Path) -> None:
    """Sixty are resumed one after the other; what is kept open is what belongs to the newest."""
    layouts = await homes.fill(home, [f"c{number}" for number in range(60)], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        await engine.list()
        base, peak = descriptors(), 0
        for layout in layouts:
            conversation = await engine.conversation(layout.directory.name)
            assert (await conversation.status()).mode == "exited"
            peak = max(peak, descriptors() - base)
        del conversation
        gc.collect()
        assert len(engine._conversations) == engine_module.ENDED_KEPT
        assert not engine._suspended, "and no memory"
        assert peak <= (engine_module.ENDED_KEPT + 1) * EACH


@async_test(timeout_seconds=110)
async def test_who_holds_one_at_rest_can_use_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "ENDED_KEPT", 0)
    await homes.fill(home, ["other"], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo one")
        await conversation.close()
        await engine.conversation("other")
        assert conversation.live.closed
        assert "one" in (await conversation.read(0)).data
        assert (await conversation.blocks()).blocks[0].cmd == "echo one"
        assert (await conversation.wait_for("one", from_cursor=0, timeout_ms=0)).matched
        assert (await conversation.status()).mode == "exited"
        assert (await conversation.verify()).clean
        with pytest.raises(blockpty.Exited):
            await conversation.run("echo two")
        again = await engine.conversation("c1")
        assert again is conversation, "the same one, as long as a caller holds it"
        await conversation.reset()
        assert (await conversation.run("echo three")).output == "three\n"
        assert [item.conversation_id for item in (await engine.list()).conversations if item.live] == ["c1"]
        assert (await conversation.verify()).clean


@async_test(timeout_seconds=110)
async def test_opened_again_from_rest(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "ENDED_KEPT", 0)
    await homes.fill(home, ["other"], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.close()
        await engine.conversation("other")
        assert conversation.live.closed
        again = await engine.open("c1", shell="bash")
        assert again is conversation and (await again.run("echo two")).output == "two\n"
        assert (await again.verify()).clean


@async_test
async def test_asked_for_twice_at_once_it_is_one(home: Path) -> None:
    await homes.fill(home, ["c1"], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        first, second = await asyncio.gather(engine.conversation("c1"), engine.conversation("c1"))
        assert first is second and (await first.status()).owner


@pytest.mark.linux
@async_test
async def test_after_an_orderly_end_nothing_is_checked_again(tmp_path: Path) -> None:
    layout = disk.store(disk.conversation(), tmp_path / "c1")
    clean = await disk.recover(layout)
    damaged = clean.events.replace(b"cursor", b"curser", 1)
    layout.events.write_bytes(damaged)
    assert (await disk.recover(layout)).events == damaged, "verify finds it"
    await disk.recover(layout, killed=True)
    layout.events.write_bytes(damaged)
    assert await disk.recover(layout) == clean


class Held:
    """A step of `Conversation.detach` that stops half-way until `go_on` is set."""

    def __init__(self, conversation: blockpty.Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        self._step = conversation.live.save_ahead
        monkeypatch.setattr(conversation.live, "save_ahead", self)

    async def __call__(self) -> None:
        self.reached.set()
        await self.go_on.wait()
        await self._step()


@async_test
async def test_what_is_asked_for_while_it_is_suspended_is_resumed_after_that(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await homes.fill(home, ["c1"], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        held = Held(conversation, monkeypatch)
        suspending = asyncio.create_task(engine._suspend_ended(0))
        await held.reached.wait()
        asking = asyncio.create_task(engine.conversation("c1"))
        await asyncio.sleep(0)
        held.go_on.set()
        await suspending
        assert await asking is conversation and not conversation.live.closed
        assert (await conversation.status()).owner


@async_test
async def test_an_engine_that_is_closed_closes_what_is_just_being_suspended(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "UNUSED_SECONDS", 0.005)
    await homes.fill(home, ["c1"], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        held = Held(conversation, monkeypatch)
        await held.reached.wait()
    assert conversation.live.closed


@async_test(timeout_seconds=110)
async def test_what_is_opened_again_is_not_suspended(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as ended until its new shell has said something."""
    monkeypatch.setattr(engine_module, "UNUSED_SECONDS", 0.005)
    async with blockpty.Engine(home) as engine:
        for number in range(4):
            conversation = await engine.open("c1", shell="bash")
            assert (await conversation.run(f"echo {number}")).output == f"{number}\n"
            await conversation.close()
        assert (await conversation.verify()).clean


@async_test
async def test_what_another_engine_owns_by_now_is_only_read_when_it_is_resumed(home: Path) -> None:
    async with blockpty.Engine(home) as first:
        conversation = await first.open("c1", shell="bash")
        await conversation.run("echo one")
        await conversation.close()
        await first._suspend_ended(0)
        async with blockpty.Engine(home) as second:
            again = await second.open("c1", shell="bash")
            assert (await first.conversation("c1")) is conversation
            assert conversation.epoch == 0
            await again.run("echo two")
            found = await conversation.wait_for("two\n", from_cursor=0)
            assert (found.matched, conversation.live.deriver.active) == (True, False)
            assert (await again.verify()).clean
            await again.close()
