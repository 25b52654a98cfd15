"""Many conversations: told of without being taken up, laid to rest when they have ended, roused when they are used."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from pathlib import Path

import pytest

import blockpty
from blockpty.host.descriptors import EACH
from blockpty.runtime import engine as engine_module
from blockpty.runtime.listing import look
from blockpty.spool.layout import Layout
from tests.asyncio_support import async_test
from tests.runtime import homes
from tests.spool import disk

# Recorded entries have only what the machine looks at.
pytestmark = pytest.mark.damages_files


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


async def stock_taken(engine: blockpty.Engine) -> None:
    assert engine._stock is not None
    await engine._stock


@pytest.mark.linux
@async_test(timeout_seconds=110)
async def test_ended_conversations_hold_no_files(home: Path) -> None:
    """Sixty are taken up one after the other; what is kept open is what belongs to the newest."""
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
        assert not engine._resting, "and no memory"
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
        assert again is conversation, "the same one, as long as somebody holds it"
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
@pytest.mark.parametrize(("boot", "reason"), [("", "host_gone"), ("another-start", "machine_restarted")])
@async_test
async def test_what_lost_its_terminal_says_so(home: Path, boot: str, reason: str) -> None:
    """At once in the list, without having been asked for in its record, and when it is asked for."""
    (layout,) = await homes.fill(home, ["c1"], homes.recording(ended=False, boot=boot))
    async with blockpty.Engine(home) as engine:
        (told,) = (await engine.list()).conversations
        assert (told.live, told.mode, told.lost) == (False, "exited", reason)
        await stock_taken(engine)
        state, _ = look(layout)
        assert state.exit is not None and state.exit["lost"] == reason and state.block is None
        conversation = await engine.conversation("c1")
        status = await conversation.status()
        assert (status.mode, status.lost) == ("exited", reason)
        assert [block.state for block in (await conversation.blocks()).blocks] == ["ended", "ended", "lost"]
        assert (await conversation.verify()).clean
        (told,) = (await engine.list()).conversations
        assert told.lost == reason


@async_test
async def test_what_ended_in_order_was_not_lost(home: Path) -> None:
    await homes.fill(home, ["c1"], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        assert [told.lost for told in (await engine.list()).conversations] == [None]
        before = (home / "conversations" / "c1" / "timeline.jsonl").read_bytes()
        await stock_taken(engine)
        assert (home / "conversations" / "c1" / "timeline.jsonl").read_bytes() == before
        assert (await (await engine.conversation("c1")).status()).lost is None


@pytest.mark.slow
@async_test(timeout_seconds=110)
async def test_a_thousand_conversations_are_usable_soon(home: Path) -> None:
    """0.6 s on a quiet machine (`tools/torture many`); what was left in order is not read on."""
    await homes.fill(home, [f"c{number}" for number in range(1000)], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        begun = time.monotonic()
        assert len((await engine.list()).conversations) == 1000
        conversation = await engine.conversation("c500")
        assert "0" in (await conversation.read(0)).data
        assert time.monotonic() - begun < 20


@async_test
async def test_a_list_gives_others_their_turn(home: Path) -> None:
    await homes.fill(home, [f"c{number}" for number in range(100)], homes.recording(ended=True))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with blockpty.Engine(home) as engine:
        await engine.live()
        task = asyncio.create_task(other())
        await engine.list()
        task.cancel()
    assert turns >= 6


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


@async_test
async def test_nothing_is_read_on_where_nothing_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = disk.store(disk.conversation(), tmp_path / "c1")
    await disk.recover(layout)
    fresh = Layout(tmp_path / "c2")
    disk.store(disk.conversation(), fresh.directory)
    expected, end = look(fresh)
    monkeypatch.setattr("blockpty.runtime.listing.Fold", None)
    assert look(layout) == (expected, end)


@async_test(timeout_seconds=110)
async def test_what_is_opened_again_is_not_laid_to_rest(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as ended until its new shell has said something."""
    monkeypatch.setattr(engine_module, "UNUSED_SECONDS", 0.005)
    async with blockpty.Engine(home) as engine:
        for number in range(4):
            conversation = await engine.open("c1", shell="bash")
            assert (await conversation.run(f"echo {number}")).output == f"{number}\n"
            await conversation.close()
        assert (await conversation.verify()).clean
