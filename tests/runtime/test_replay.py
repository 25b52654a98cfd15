"""Replay: what is given out, when, and what seeking and stepping do."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.errors import BadCursor, BadRequest, NotFound
from blockpty.model.replay_frames import MOMENT_TYPES, Moment
from blockpty.runtime.export.recording_events import Source
from blockpty.runtime.replay import Playback, Replay
from blockpty.screen.emulator import Emulator
from tests.support.async_tests import async_test
from tests.support.exports import saved, small_session
from tests.support.timed_sessions import timed_session


class Clock:
    """Stands in for the clock of every replay: a wait takes no time, and how long it would have been is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        monkeypatch.setattr(Replay, "_now", lambda replay: self.now)
        monkeypatch.setattr(Replay, "_woken_within", lambda replay, seconds: self.wait(seconds))

    async def wait(self, seconds: float) -> bool:
        self.waits.append(round(seconds, 3))
        self.now += seconds
        return False


async def played(source: Source, **options: Any) -> list[Moment]:
    async with Replay(source, speed=0, **options) as replay:
        return [moment async for moment in replay]


def shown(moments: list[Moment]) -> str:
    return b"".join(moment.data for moment in moments).decode("utf-8", "replace")


def screen_of(moments: list[Moment]) -> list[str]:
    """Return what a viewer shows that does what the documentation says."""
    emulator = Emulator(1, 1)
    for moment in moments:
        if moment.type == "screen":
            assert moment.cols is not None and moment.rows is not None
            emulator = Emulator(moment.cols, moment.rows)
        elif moment.type == "resize":
            assert moment.cols is not None and moment.rows is not None
            emulator.resize(moment.cols, moment.rows)
        emulator.feed(moment.data)
    return [line.text for line in emulator.frame().lines]


@async_test
async def test_everything_comes_once_in_order_and_with_its_time(tmp_path: Path) -> None:
    source = saved(timed_session(), tmp_path)
    moments = await played(source)
    assert moments[0].type == "screen" and (moments[0].cols, moments[0].rows, moments[0].data) == (80, 24, b"")
    assert shown(moments).count("one\r\n$ ") == 1 and "7717" not in shown(moments)
    assert [moment.at_ms for moment in moments] == sorted(moment.at_ms for moment in moments)
    assert [moment.cursor for moment in moments] == sorted(moment.cursor for moment in moments)
    steps = [
        (moment.type, moment.at_ms, None if moment.block is None else moment.block.cmd)
        for moment in moments
        if moment.type not in ("output", "screen")
    ]
    assert steps == [
        ("block_begin", 1500, "echo one"),
        ("block_end", 1500, "echo one"),
        ("block_begin", 3500, "slow"),
        ("block_end", 4510, "slow"),
        ("resize", 63500, None),
        ("block_begin", 63500, "echo four"),
        ("block_end", 63500, "echo four"),
        ("exit", 63525, None),
    ]
    assert moments[-1].exit_status == 3
    # Between begin and end of a block stands what it printed, and nothing else.
    first = next(index for index, moment in enumerate(moments) if moment.type == "block_begin")
    assert [moment.data for moment in moments[first + 1 : first + 2]] == [b"one\r\n"]
    assert moments[first + 2].type == "block_end"


def test_the_types_are_those_that_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "replay.md").read_text("utf-8")
    assert [name for name in MOMENT_TYPES if f"`{name}`" not in text] == []


@async_test
async def test_a_moment_survives_json(tmp_path: Path) -> None:
    made = small_session()
    made.output(b"\xff\xfe")
    for moment in await played(saved(made, tmp_path)):
        assert Moment.from_dict(moment.to_dict()) == moment


def test_it_waits_as_long_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @async_test
    async def check() -> None:
        source = saved(timed_session(), tmp_path)
        for options, expected in (
            ({}, [1.5, 2.0, 1.0, 0.01, 58.99, 0.025]),
            ({"speed": 2.0}, [0.75, 1.0, 0.5, 0.005, 29.495, 0.013]),
            ({"idle_limit": 0.5}, [0.5, 0.5, 0.5, 0.01, 0.5, 0.025]),
            ({"speed": 0}, []),
        ):
            clock = Clock(monkeypatch)
            async with Replay(source, **options) as replay:
                assert [moment async for moment in replay]
            assert [seconds for seconds in clock.waits if seconds > 0.001] == pytest.approx(expected, abs=0.001)

    check()


@async_test
async def test_a_seek_shows_the_screen_as_it_was_and_goes_on(tmp_path: Path) -> None:
    source = saved(timed_session(), tmp_path)
    whole = await played(source)
    for seconds in (0.0, 1.0, 1.5, 3.5, 4.0, 4.5, 4.505, 30.0, 63.5, 99.0):
        rest = await played(source, from_seconds=seconds)
        assert rest[0].type == "screen" and all(moment.at_ms >= seconds * 1000 for moment in rest[1:] if seconds)
        before = [moment for moment in whole if moment.at_ms <= seconds * 1000]
        assert screen_of(rest[:1]) == screen_of(before if seconds else whole[:1]), seconds
        assert screen_of(rest) == screen_of(whole), seconds


def test_a_seek_does_not_depend_on_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = saved(timed_session(), tmp_path)
    # In a record as short as this one there would be neither.
    monkeypatch.setattr("blockpty.runtime.screens.SPACING", 100)
    monkeypatch.setattr("blockpty.runtime.replay._KNOWN_ENTRIES", 2)
    size = source.end - source.begin
    places: list[tuple[str, int]] = [("cursor", cursor) for cursor in range(0, size + 1, 11)]
    places += [("time", at_ms) for at_ms in range(0, 65_000, 500)]
    random.Random(1).shuffle(places)

    def sought(playback: Playback, kind: str, value: int) -> list[Moment]:
        return list(playback.from_time(value) if kind == "time" else playback.from_cursor(value))

    kept = Playback(source)
    for kind, value in places:
        fresh = Playback(source)
        assert sought(kept, kind, value) == sought(fresh, kind, value), (kind, value)
        fresh.close()
    kept.close()


@async_test
async def test_a_part_of_it(tmp_path: Path) -> None:
    made = timed_session()
    block = await played(saved(made, tmp_path, "b2"))
    assert [moment.type for moment in block if moment.type.startswith("block")] == ["block_begin", "block_end"]
    assert shown(block[1:]) == "two\r\n\x1b[31mthree\u20ac\x1b[0m\r\n"
    source = saved(made, tmp_path)
    until = await played(source, to_seconds=4.0)
    assert "two" in shown(until) and "three" not in shown(until)
    begin = made.recording.stream.index(b"three")
    part = await played(saved(made, tmp_path, begin=begin))
    assert screen_of(part[:1])[3].startswith("two") or "two" in "\n".join(screen_of(part[:1]))
    assert shown(part[1:]).startswith("three")


@async_test
async def test_no_cursor_shows_half_of_a_mark(tmp_path: Path) -> None:
    made = small_session()
    whole = screen_of(await played(saved(made, tmp_path)))
    source = saved(made, tmp_path)
    async with Replay(source, speed=0) as replay:
        for cursor in range(0, len(made.recording.stream), 3):
            replay.seek(cursor=cursor)
            moments = [moment async for moment in replay]
            assert "7717" not in shown(moments) and "__" not in shown(moments), cursor
            # A cursor may lie inside of a control sequence or character: that is cut, and nothing else.
            assert len(screen_of(moments)) == len(whole)


@async_test
async def test_steps_from_block_to_block(tmp_path: Path) -> None:
    async with Replay(saved(timed_session(), tmp_path), speed=0) as replay:
        found: list[str] = []

        async def here() -> str:
            first = await anext(replay)
            assert first.type == "screen"
            async for moment in replay:
                if moment.block is not None:
                    return moment.block.block_id
            return "end"

        for steps in (1, 1, 0, -1, 2, 1, -1):
            replay.step(steps)
            found.append(await here())
        assert found == ["b1", "b2", "b2", "b1", "b3", "end", "b2"]
        replay.step(1)
        replay.step(-2)
        assert await here() == "b1"


@async_test
async def test_steps_from_change_to_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # So that a step back has to read from before an earlier place that is known.
    monkeypatch.setattr("blockpty.runtime.replay._KNOWN_ENTRIES", 2)
    source = saved(timed_session(), tmp_path)
    async with Replay(source, speed=0) as replay:
        replay.pause()
        seen = [(await anext(replay)).cursor]
        while seen[-1] < source.end:
            replay.step(changes=1)
            seen.append((await anext(replay)).cursor)
            assert len(seen) < 100
        assert seen == sorted(set(seen)) and seen[0] == source.begin and len(seen) > 6
        back = [seen[-1]]
        while back[-1] > source.begin:
            replay.step(changes=-1)
            back.append((await anext(replay)).cursor)
        assert back[::-1] == seen
        replay.step(changes=2)
        replay.step(changes=1)
        assert (await anext(replay)).cursor == seen[3]
        replay.step(changes=-100)
        assert (await anext(replay)).cursor == source.begin


@async_test
async def test_pause_resume_and_another_speed(tmp_path: Path) -> None:
    async with Replay(saved(timed_session(), tmp_path), speed=0) as replay:
        assert (await anext(replay)).type == "screen"
        replay.pause()
        coming = asyncio.ensure_future(anext(replay))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not coming.done() and replay.paused
        # What was looked for while it stands still is shown.
        replay.seek(4.2)
        assert (await coming).type == "screen" and replay.position_seconds == 4.2
        coming = asyncio.ensure_future(anext(replay))
        await asyncio.sleep(0)
        replay.resume()
        assert (await coming).at_ms == 4500
        replay.speed = 1
        coming = asyncio.ensure_future(anext(replay))
        await asyncio.sleep(0)
        replay.speed = 0
        rest = [await coming, *[moment async for moment in replay]]
        assert [moment.type for moment in rest].count("exit") == 1
        assert await replay.duration_seconds() == 63.525
        with pytest.raises(StopAsyncIteration):
            await anext(replay)
        replay.seek(0)
        assert (await anext(replay)).at_ms == 0


@async_test
async def test_what_cannot_be_asked(tmp_path: Path) -> None:
    source = saved(small_session(), tmp_path)
    for options in ({"speed": -1}, {"speed": float("nan")}, {"speed": float("inf")}, {"idle_limit": -1}):
        with pytest.raises(BadRequest):
            Replay(source, **options)  # type: ignore[arg-type]
    async with Replay(source) as replay:
        with pytest.raises(BadRequest):
            replay.seek()
        with pytest.raises(BadRequest):
            replay.seek(1, cursor=1)


@pytest.mark.needs("bash")
@async_test
async def test_a_live_conversation_is_replayed_up_to_now(tmp_path: Path) -> None:
    async with blockpty.Engine(tmp_path) as engine:
        conversation = await engine.open("c", shell="bash")
        await conversation.run("echo one")
        replay = conversation.replay(speed=0)
        await conversation.run("echo two")
        async with replay:
            moments = [moment async for moment in replay]
        assert "one" in shown(moments) and "two" not in shown(moments)
        async with conversation.replay(speed=0, block_id="b2") as replay:
            moments = [moment async for moment in replay]
        assert shown(moments[1:]) == "two\r\n"
        assert [moment.type for moment in moments] == ["screen", "block_begin", "output", "block_end"]
        with pytest.raises(NotFound):
            conversation.replay(block_id="b9")
        with pytest.raises(BadCursor):
            conversation.replay(from_cursor=10**9)
