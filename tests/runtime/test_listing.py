"""Listing of a home: thousands of conversations are known without reading their records again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import blockpty
from blockpty.engine.machine_state import MachineState
from blockpty.runtime.listing import RecordLooks, look
from blockpty.spool.layout import Layout
from tests.support import disk, homes
from tests.support.async_tests import async_test
from tests.support.counting import turns_beside
from tests.support.profile import LONG

# Recorded entries have only what the machine looks at.
pytestmark = pytest.mark.damages_files

MANY = 1000 if LONG else 200


async def stock_taken(engine: blockpty.Engine) -> None:
    assert engine._stock is not None
    await engine._stock


@pytest.mark.linux
@pytest.mark.parametrize(("boot", "reason"), [("", "host_gone"), ("another-start", "machine_restarted")])
@async_test
async def test_what_lost_its_terminal_says_so(home: Path, boot: str, reason: str) -> None:
    """At once in the list, without having been asked for in its record, and when it is asked for."""
    (layout,) = await homes.fill(home, ["c1"], homes.recording(ended=False, boot=boot))
    async with blockpty.Engine(home) as engine:
        (listed,) = (await engine.list()).conversations
        assert (listed.live, listed.mode, listed.lost) == (False, "exited", reason)
        await stock_taken(engine)
        state, _ = look(layout)
        assert state.exit is not None and state.exit["lost"] == reason and state.block is None
        conversation = await engine.conversation("c1")
        status = await conversation.status()
        assert (status.mode, status.lost) == ("exited", reason)
        assert [block.state for block in (await conversation.blocks()).blocks] == ["ended", "ended", "lost"]
        assert (await conversation.verify()).clean
        (listed,) = (await engine.list()).conversations
        assert listed.lost == reason


@async_test
async def test_what_ended_in_order_was_not_lost(home: Path) -> None:
    await homes.fill(home, ["c1"], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        assert [one.lost for one in (await engine.list()).conversations] == [None]
        before = (home / "conversations" / "c1" / "timeline.jsonl").read_bytes()
        await stock_taken(engine)
        assert (home / "conversations" / "c1" / "timeline.jsonl").read_bytes() == before
        assert (await (await engine.conversation("c1")).status()).lost is None


@pytest.mark.slow
@async_test(timeout_seconds=110)
async def test_conversations_are_listed_without_reading_their_records(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were left in order: 0.6 s for a thousand of them on a quiet machine (`tools/torture many`)."""
    monkeypatch.setattr("blockpty.runtime.listing.RecordReader", None)
    await homes.fill(home, [f"c{number}" for number in range(MANY)], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        assert len((await engine.list()).conversations) == MANY
        conversation = await engine.conversation(f"c{MANY // 2}")
        assert "0" in (await conversation.read(0)).data
        await stock_taken(engine)


@async_test
async def test_a_list_gives_others_their_turn(home: Path) -> None:
    await homes.fill(home, [f"c{number}" for number in range(100)], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine:
        await engine.live()
        turns = await turns_beside(engine.list())
    assert turns >= 6


@async_test
async def test_nothing_is_read_on_where_nothing_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = disk.store(disk.conversation(), tmp_path / "c1")
    await disk.recover(layout)
    fresh = Layout(tmp_path / "c2")
    disk.store(disk.conversation(), fresh.directory)
    expected, end = look(fresh)
    monkeypatch.setattr("blockpty.runtime.listing.RecordReader", None)
    assert look(layout) == (expected, end)


@async_test
async def test_live_conversations_come_first(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        for name in ("one", "two", "three"):
            await engine.open(name, shell="bash")
        await (await engine.conversation("three")).close()
        assert [info.conversation_id for info in (await engine.list()).conversations] == ["two", "one", "three"]


@async_test
async def test_a_record_that_was_not_left_in_order_is_read_once_and_beside_the_loop(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (layout,) = await homes.fill(home, ["c1"], homes.recording(ended=True))
    layout.checkpoint.unlink()
    read_in: list[str] = []

    def noted(layout: Layout, pace: Callable[[], None]) -> tuple[MachineState, int]:
        read_in.append(threading.current_thread().name)
        return look(layout, pace)

    monkeypatch.setattr("blockpty.runtime.listing.look", noted)
    looks = RecordLooks()
    first = await looks.look(layout)
    assert await looks.look(layout) is first
    assert first == look(layout) and len(read_in) == 1 and read_in[0].startswith("blockpty-long")
    with layout.timeline.open("ab") as timeline:
        timeline.write(b"\n")
    assert await looks.look(layout) == first and len(read_in) == 2
