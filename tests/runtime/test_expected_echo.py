"""What of an input may still come back: known at once, so that a wait right behind many others reads little again."""

from __future__ import annotations

from blockpty.runtime.expected_echo import ExpectedEcho
from blockpty.runtime.record_reader import Position, Step
from tests.support.machines import running, stops_of

ROUNDS = 120
# Places lie some 4 KiB of the record apart, and each round is some 900 bytes of it.
MOST_STEPS = 60


def test_it_is_not_known_where_echo_may_have_passed() -> None:
    pty, _ = running()
    pty.type(b"one\n")
    pty.output(b"on")
    pty.output(b"e\r\n")
    pty.silence()
    stops, _ = stops_of(pty.recording, [len(pty.recording.stream) - 3])
    *_, typed, torn, whole, silent = [stop.echo is not None for stop in stops]
    # Half of an echo may be text as well.
    assert (typed, torn, whole, silent) == (True, False, True, False)


def test_a_reader_that_begins_behind_an_input_knows_nothing_before_the_next_silence() -> None:
    pty, _ = running()
    pty.type(b"one\n")
    pty.output(b"one\r\n")
    stop = stops_of(pty.recording, ())[0][-1]
    assert stop.state.inputs and stop.echo is not None
    echo = ExpectedEcho()
    echo.take(Step(b"", None, [], [], stop.fed, stop.applied), stop.state, Position(stop.fed, stop.applied))
    assert echo.filter is None
