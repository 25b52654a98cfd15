"""What is done again and again while many programs print a little: places to resume from, checkpoints."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from blockpty.engine.snapshot import MachineState
from blockpty.runtime import saving
from blockpty.runtime.fold import Position
from blockpty.runtime.saving import Saving
from blockpty.runtime.waits import ResumePoints, first_point
from blockpty.spool.layout import Layout
from blockpty.spool.sink import FileSink

NEAR = ResumePoints.NEAR


def places(stream_step: int, timeline_step: int) -> list[tuple[int, int]]:
    """Where a reader resumes for each of many silences, as (silence, place)."""
    points, state, found = ResumePoints(first_point(None)), MachineState(), []
    for number in range(200):
        state.classified = number * stream_step
        points.pause(state, Position(state.classified, number * timeline_step))
        found.append((number, points.before(state.classified).timeline // max(1, timeline_step)))
    return found


def test_silences_that_are_near_each_other_share_a_place() -> None:
    found = places(600, 100)
    assert {place for _, place in found} == {*range(0, 200, -(-NEAR // 700))}
    assert max((number - place) * 700 for number, place in found) < NEAR


def test_silences_that_are_far_from_each_other_do_not() -> None:
    assert all(number == place for number, place in places(NEAR, 100))


def test_a_long_timeline_has_places_as_well() -> None:
    # One byte now and then, and thousands of entries between them.
    assert len({place for _, place in places(1, 1000)}) == -(-200 // -(-NEAR // 1001))


class Clock:
    """A loop whose time stands still."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.due: list[float] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[..., Any], *arguments: Any) -> None:
        self.due.append(when)


def test_the_checkpoints_of_many_records_are_spread(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    sink = FileSink(layout)
    clock = Clock()
    many = [Saving(clock, layout, False, lambda last: None) for _ in range(300)]  # type: ignore[arg-type]
    for one in many:
        one.soon(sink)
    waits = [when - clock.now for when in clock.due]
    assert waits[0] == saving.CHECKPOINT_SECONDS, "one alone does not wait for longer"
    apart = [round(later - before, 6) for before, later in itertools.pairwise(waits)]
    assert apart[:80] == [saving.APART_SECONDS] * 80
    assert max(waits) <= saving.LATEST_SECONDS
    # 91 times until then, for 300.
    assert max(Counter(round(wait, 6) for wait in waits).values()) == 4
    sink.close()
