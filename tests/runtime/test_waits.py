"""Places from which a wait reads the record again: few for silences close together, all of them far apart."""

from __future__ import annotations

from itertools import pairwise

from blockpty.engine.echo import EchoFilter
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


def test_a_place_in_between_makes_way_for_the_next_pause() -> None:
    points, state = ResumePoints(first_point(None)), MachineState()
    count = 4 * ResumePoints.RECENT
    for number in range(1, count):
        state.classified = number * NEAR
        points.pause(state, Position(state.classified, 0))
        # The newest place is always there, and the places before it are apart.
        assert points.before(state.classified).state.classified == state.classified
    kept = {points.before(number * NEAR).state.classified for number in range(count)} - {0, state.classified}
    assert min(later - one for one, later in pairwise(sorted(kept))) >= ResumePoints.APART
    assert len(kept) * ResumePoints.APART >= state.classified - ResumePoints.APART


def test_a_place_between_an_input_and_its_echo_needs_what_is_expected() -> None:
    points, state = ResumePoints(first_point(None)), MachineState()
    state.classified, state.inputs = NEAR, [(NEAR, b"x\n", True, True)]
    points.add(state, Position(NEAR, 0))
    assert points.before(NEAR).state.classified == 0
    points.add(state, Position(NEAR, 0), EchoFilter())
    assert points.before(NEAR).echo is not None and not points.sparse
