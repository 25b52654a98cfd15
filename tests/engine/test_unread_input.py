"""Input that a program left unread is noticed on the command line after it."""

from __future__ import annotations

import pytest

from blockpty.engine.machine import Machine
from blockpty.engine.states import ShellState
from blockpty.testing import FakePty, every_split
from tests.support.machines import at_prompt


def after_a_program(given: bytes, drawn: bytes) -> FakePty:
    """Return a terminal in which a program was given input and ended, and what was drawn at the prompt after it."""
    pty = at_prompt()
    pty.submit("sleep 1")
    pty.begin()
    pty.type(given)
    pty.end()
    pty.prompt()
    pty.output(drawn)
    return pty


@pytest.mark.parametrize(
    ("given", "drawn", "left"),
    [
        (b"xyzzy", b"xyzzy", True),
        (b"one two", b"two", False),
        (b"one two", b"\x1b[?2004ho\x1b[1mne t\x1b[0mwo", True),
        (b"q", b"q", True),
        (b"yes\r", b"\x1b[K\x1b[?2004h", False),
        (b"yes\r", b"", False),
        (b"yes\r", b"[12:00:07]", False),
        (b"\r", b"anything", False),
        (b"a" * 3000, b"a" * 3000, True),
    ],
)
def test_what_shows_again_stands_on_the_line(given: bytes, drawn: bytes, left: bool) -> None:
    pty = after_a_program(given, drawn)
    pty.silence(icanon=False, echo=False, foreground="shell")
    cuts = every_split(bytes(pty.recording.stream)) if len(pty.recording.stream) < 1000 else [()]
    for cut in cuts:
        machine = Machine()
        for step in pty.recording.steps(cut):
            if isinstance(step, bytes):
                machine.feed(step)
            else:
                machine.apply(step)
        assert (machine.state.shell is ShellState.EDITING) is left
        assert machine.state.dirty is left and machine.state.unread.fed == b""


def test_until_the_silence_it_is_not_known() -> None:
    pty = after_a_program(b"xyzzy", b"xyzzy")
    machine = Machine()
    for step in pty.recording.steps():
        machine.feed(step) if isinstance(step, bytes) else machine.apply(step)
    assert machine.state.shell is ShellState.IDLE and machine.state.unread.fed


def test_at_a_silence_in_which_the_shell_is_busy_it_is_not_known() -> None:
    pty = after_a_program(b"xyzzy", b"")
    pty.silence(icanon=False, echo=False, foreground="shell", busy=True)
    pty.output(b"xyzzy")
    pty.silence(icanon=False, echo=False, foreground="shell")
    machine = Machine()
    for step in pty.recording.steps():
        machine.feed(step) if isinstance(step, bytes) else machine.apply(step)
    assert machine.state.shell is ShellState.EDITING and machine.state.dirty
