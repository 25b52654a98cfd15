"""A screen drawn on a terminal: nothing of a program but its cells and colours."""

from __future__ import annotations

import io
import os
import re

import pytest

from blockpty.model.replay_frames import Moment
from blockpty.screen.emulator import Emulator
from blockpty.surfaces.cli.picture import Picture

HOSTILE = (
    b"\x1b]0;title\x07\x1b]52;c;aGk=\x07\x1b]8;;http://x\x07link\x1b]8;;\x07\x1bP+q544e\x1b\\\x1b[6n\x1b[c\x1b[?1000h\x1b[21t"
    + "\u202eback\u200bwards \x9b31m".encode()
)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    out = io.StringIO()
    monkeypatch.setattr(out, "fileno", lambda: 1)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((20, 5)))
    monkeypatch.setattr("blockpty.surfaces.cli.picture.colours_wanted", lambda: True)
    return out


def seen(out: io.StringIO) -> list[str]:
    """What a terminal shows that got all of it."""
    emulator = Emulator(20, 5)
    emulator.feed(out.getvalue().encode())
    return ["".join(run.text for run in line.runs).rstrip() for line in emulator.frame().lines]


def test_cells_and_colours_are_shown(terminal: io.StringIO) -> None:
    picture = Picture(terminal, 20, 5)
    picture.feed(b"plain \x1b[1;31mred\x1b[0m\r\nsecond")
    picture.draw()
    assert seen(terminal)[:2] == ["plain red", "second"]
    assert "\x1b[0;1;31mred" in terminal.getvalue()


def test_only_rows_that_changed_are_written(terminal: io.StringIO) -> None:
    picture = Picture(terminal, 20, 5)
    picture.feed(b"first\r\nsecond")
    picture.draw()
    terminal.truncate(0)
    terminal.seek(0)
    picture.feed(b"!")
    picture.draw()
    assert "second!" in terminal.getvalue() and "first" not in terminal.getvalue()


def test_a_larger_screen_is_shown_around_its_cursor(terminal: io.StringIO) -> None:
    picture = Picture(terminal, 40, 12)
    picture.feed(b"\r\n".join(b"row %d %s" % (number, b"x" * 30) for number in range(11)))
    picture.draw()
    assert [row[:6].strip() for row in seen(terminal)] == ["row 6", "row 7", "row 8", "row 9", "row 10"]
    picture.resize(20, 5, fresh=True)
    picture.feed(b"\x1b[2J\x1b[Hsmall")
    picture.draw()
    assert seen(terminal)[0] == "small"


def test_nothing_of_a_program_drives_the_terminal(terminal: io.StringIO) -> None:
    picture = Picture(terminal, 20, 5)
    picture.take(Moment("screen", 0, 0, HOSTILE, cols=20, rows=5))
    picture.draw()
    picture.say("our \x1b[31m own\u202e line")
    picture.leave()
    written = terminal.getvalue()
    assert not re.search("\x1b[]P^_X]|\x9b|\x9d|\u202e|\u200b|\x07", written)
    assert set(re.findall(r"\x1b\[\??[0-9;]*([A-Za-z])", written)) <= set("mHJKhl")
    assert set(re.findall(r"\x1b\[\?([0-9]+)[hl]", written)) <= {"1049", "7", "25"}


def test_the_terminal_is_given_back(terminal: io.StringIO) -> None:
    picture = Picture(terminal, 20, 5)
    picture.feed(b"last words\r\n")
    picture.draw()
    picture.leave()
    written = terminal.getvalue()
    assert written.startswith("\x1b[?1049h")
    assert "\x1b[?1049l" in written and "last words" in written.rpartition("\x1b[?1049l")[2]
    before = len(written)
    picture.enter()
    picture.leave(keep=False)
    assert "last words" not in terminal.getvalue()[before:]
