"""Places from which a wait reads the record again: few for silences close together, all of them far apart."""

from __future__ import annotations

from blockpty.engine.machine_state import MachineState
from blockpty.runtime.record_reader import Position
from blockpty.runtime.waits import ResumePoints, first_point

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
