"""Frames: rows as runs of cells drawn alike, and a picture that is held while a program updates the screen."""

from __future__ import annotations

from blockpty.screen import Emulator
from blockpty.screen.pens import BOLD


def fed(data: bytes, cols: int = 8, rows: int = 2) -> Emulator:
    emulator = Emulator(cols, rows)
    emulator.feed(data)
    return emulator


def test_runs_cover_all_columns_and_change_with_the_pen() -> None:
    line = fed(b"ab\x1b[1mcd\x1b[mef").frame().lines[0]
    assert [(run.text, run.width, bool(run.pen.flags & BOLD)) for run in line.runs] == [
        ("ab", 2, False), ("cd", 2, True), ("ef  ", 4, False),
    ]  # fmt: skip


def test_a_wide_character_is_two_columns_and_one_character() -> None:
    line = fed("a\u4e2db".encode()).frame().lines[0]
    assert line.text == "a\u4e2db" and sum(run.width for run in line.runs) == 8


def test_a_wrapped_row_says_so() -> None:
    lines = fed(b"0123456789").frame().lines
    assert (lines[0].wrapped, lines[1].wrapped) == (True, False)


def test_a_frame_does_not_change_any_more() -> None:
    emulator = fed(b"one")
    before = emulator.frame()
    emulator.feed(b"\r\x1b[2Ktwo")
    assert before.lines[0].text == "one" and emulator.frame().lines[0].text == "two"
    # A row that did not change is the same object, so that a viewer need not draw it again.
    assert emulator.frame().lines[1] is before.lines[1]


def test_an_update_that_is_open_shows_what_was_there() -> None:
    emulator = fed(b"one\x1b[?2026h\rtwo")
    assert emulator.frame().lines[0].text == "one" and emulator.frame().modes.synchronized
    assert emulator.cursor().x == 3, "the cursor is asked for as it is"
    emulator.feed(b"\x1b[?2026l")
    assert emulator.frame().lines[0].text == "two" and not emulator.frame().modes.synchronized


def test_modes_are_those_of_the_moment() -> None:
    modes = fed(b"\x1b[?1h\x1b=\x1b[?2004h\x1b[?1002h\x1b[?1006h\x1b[?5h\x1b[4h\x1b[?7l").frame().modes
    assert modes.application_cursor and modes.application_keypad and modes.bracketed_paste
    assert (modes.mouse, modes.mouse_encoding) == ("drag", "sgr")
    assert modes.reverse_video and modes.insert and not modes.autowrap
