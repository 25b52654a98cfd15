"""Follower of a record: what it reads in one turn is bounded."""

from __future__ import annotations

import asyncio
from pathlib import Path

from blockpty.host.record import Stream, Timeline
from blockpty.runtime import follower
from blockpty.runtime.follower import RecordFollower
from blockpty.runtime.scheduler import BUDGET_SECONDS, FairScheduler
from blockpty.spool.layout import Layout
from tests.support.async_tests import async_test


def recorded(directory: Path, size: int, entries: int = 0) -> Layout:
    """Write a record of so many bytes, and as many entries behind them."""
    directory.mkdir(parents=True)
    stream, timeline = Stream(str(directory), 1 << 30), Timeline(str(directory))
    stream.write(b"0123456789abcde\n" * (size // 16))
    for _ in range(entries):
        timeline.write(stream.offset, "silence", {"ms": 25})
    stream.close()
    timeline.close()
    (directory / "blocks").mkdir()
    return Layout(directory)


@async_test
async def test_what_is_taken_in_a_turn_is_bounded_in_bytes_and_in_steps(tmp_path: Path) -> None:
    records = [
        RecordFollower(name, recorded(tmp_path / name, size, entries), owner=False)
        for name, size, entries in (("bytes", 40 * follower.SLICE_BYTES, 0), ("entries", 0, 5 * follower.SLICE_STEPS))
    ]
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += BUDGET_SECONDS
        return now

    turns = FairScheduler(asyncio.get_running_loop(), clock)  # every slice takes all there is
    flood, many = records
    steps = 0
    original = many.reader.step

    def counted(*arguments: object) -> object:
        nonlocal steps
        steps += 1
        return original(*arguments)  # type: ignore[arg-type]

    many.reader.step = counted  # type: ignore[method-assign,assignment]
    for record in records:
        record._scheduler = turns
        record._clock = lambda: 0.0
        record.notified()
    # The first was alone, so far.
    assert (flood.reader.position.offset, steps) == (follower.ALONE_BYTES, 0), "the second waits for its turn"
    await asyncio.sleep(0)
    assert (flood.reader.position.offset, steps) == (follower.ALONE_BYTES + follower.SLICE_BYTES, 0)
    await asyncio.sleep(0)
    assert (flood.reader.position.offset, steps) == (follower.ALONE_BYTES + follower.SLICE_BYTES, follower.SLICE_STEPS)
    for record in records:
        await record.drain()
        record.close()
    assert flood.reader.position.offset == 40 * follower.SLICE_BYTES
    assert steps > 5 * follower.SLICE_STEPS


@async_test
async def test_a_slice_begins_no_step_when_its_time_is_over(tmp_path: Path) -> None:
    record = RecordFollower("entries", recorded(tmp_path / "entries", 0, 2 * follower.SLICE_STEPS), owner=False)
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += follower.SLICE_SECONDS / 4
        return now

    record._clock = clock
    slices = 0
    while record._slice():
        slices += 1
    record.close()
    assert slices > 2 * follower.SLICE_STEPS / 5


@async_test
async def test_a_long_timeline_is_read_some_lines_at_a_time(tmp_path: Path) -> None:
    layout = recorded(tmp_path / "long", 16, 20_000)
    record = RecordFollower("long", layout, owner=False)
    most = 0
    while record.pump():
        most = max(most, len(record.reader._pending))
    end = record.reader.position
    record.close()
    assert 0 < most < 4000
    assert end == (16, layout.timeline.stat().st_size)
