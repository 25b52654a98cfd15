"""What of an input may still come back: known at once, so that a wait right behind many others reads little again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from blockpty import Engine
from blockpty.runtime import pending
from blockpty.runtime.expected_echo import ExpectedEcho
from blockpty.runtime.record_reader import Position, Step
from tests.support.async_tests import async_test
from tests.support.machines import running, stops_of

if TYPE_CHECKING:
    import pytest

ROUNDS = 120
# Places lie some 4 KiB of the record apart, and each round is some 900 bytes of it.
MOST_STEPS = 60


@async_test
async def test_who_asks_again_and_again_does_not_read_all_of_it_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0

    def counted(waiter: pending.Waiter, step: pending.Step) -> object:
        nonlocal taken
        taken += 1
        return advance(waiter, step)

    advance = pending.advance
    monkeypatch.setattr(pending, "advance", counted)
    most = 0
    async with Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.exec_interactive("cat")
        for number in range(ROUNDS):
            taken = 0
            sent = await conversation.send(f"line {number}\n")
            found = await conversation.wait_for(f"line {number}\n", from_cursor=sent.cursor)
            # The line of the program, not its echo.
            assert found.matched and found.span == (sent.cursor + len(f"line {number}\r\n"), found.cursor)
            most = max(most, taken)
        await conversation.close()
        assert (await conversation.verify()).clean
    assert 0 < most < MOST_STEPS


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
