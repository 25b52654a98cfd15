"""Modes, the two screens, saved cursors, resets and keyboard flags: what each sequence changes, and nothing else."""

from __future__ import annotations

import pytest

from blockpty.screen import Emulator
from blockpty.screen.pens import BOLD


def after(data: str, cols: int = 8, rows: int = 3) -> Emulator:
    emulator = Emulator(cols, rows)
    emulator.feed(data.encode())
    return emulator


def rows_of(emulator: Emulator) -> list[str]:
    return [line.text for line in emulator.frame().lines]


def test_a_mode_that_is_not_known_is_not_kept() -> None:
    emulator = after("\x1b[?31337h\x1b[777h")
    assert emulator.mode(31337) is None and emulator.mode(777, private=False) is None


@pytest.mark.parametrize(("number", "private"), [(1, True), (2004, True), (7, True), (4, False), (20, False)])
def test_a_mode_is_set_and_reset(number: int, private: bool) -> None:
    mark = "?" if private else ""
    assert after(f"\x1b[{mark}{number}h").mode(number, private=private) is True
    assert after(f"\x1b[{mark}{number}h\x1b[{mark}{number}l").mode(number, private=private) is False


def test_saved_modes_come_back() -> None:
    assert after("\x1b[?7l\x1b[?7s\x1b[?7h\x1b[?7r").mode(7) is False
    assert after("\x1b[?7r").mode(7) is True, "one that was not saved stays"


def test_only_the_last_mouse_mode_counts() -> None:
    assert after("\x1b[?1000h\x1b[?1003h").frame().modes.mouse == "motion"
    assert after("\x1b[?1000h\x1b[?1003h\x1b[?1000l").frame().modes.mouse == "off"
    assert after("\x1b[?1006h\x1b[?1015h").frame().modes.mouse_encoding == "urxvt"


@pytest.mark.parametrize(
    ("number", "main", "alternate"),
    [(47, ["main", "", ""], ["    alt", "", ""]), (1047, ["main", "", ""], ["    alt", "", ""])],
)
def test_the_alternate_screen_is_another_one(number: int, main: list[str], alternate: list[str]) -> None:
    emulator = after(f"main\x1b[?{number}halt")
    assert emulator.frame().alt and rows_of(emulator) == alternate
    emulator.feed(f"\x1b[?{number}l".encode())
    assert not emulator.frame().alt and rows_of(emulator) == main


def test_1049_saves_the_cursor_and_clears_the_alternate_screen() -> None:
    emulator = after("ab\x1b[?47hleft over\x1b[?47l\x1b[1;3H\x1b[?1049h")
    assert rows_of(emulator) == ["", "", ""]
    emulator.feed(b"\x1b[3;3Hx\x1b[?1049lc")
    assert rows_of(emulator) == ["abc", "", ""]


def test_a_saved_cursor_has_rendition_origin_and_place() -> None:
    emulator = after("\x1b[1m\x1b[2;3H\x1b7\x1b[m\x1b[3;1Hx\x1b8y")
    cursor = emulator.cursor()
    assert (cursor.x, cursor.y) == (3, 1)
    assert emulator.frame().pen.flags & BOLD
    # Each screen has a slot of its own.
    assert after("\x1b[2;3H\x1b7\x1b[?47h\x1b8").cursor()[:2] == (0, 0)


def test_a_soft_reset_leaves_what_is_shown() -> None:
    emulator = after("ab\x1b[4h\x1b[?6h\x1b[?25l\x1b[2;3r\x1b[1m\x1b[!p")
    assert rows_of(emulator)[0] == "ab"
    assert emulator.mode(4, private=False) is False and emulator.mode(6) is False and emulator.mode(25) is True
    assert emulator.margins() == (0, 2, 0, 7) and not emulator.frame().pen.flags


def test_a_full_reset_leaves_nothing_but_the_title() -> None:
    emulator = after("ab\x1b]2;title\x07\x1b[?1049h\x1b[4h\x1bc")
    assert rows_of(emulator) == ["", "", ""] and not emulator.frame().alt
    assert emulator.mode(4, private=False) is False and emulator.frame().title == "title"


def test_protected_cells_survive_selective_erasing_only() -> None:
    protected = 'a\x1b[1"qb\x1b[0"qc\r'
    assert rows_of(after(protected + "\x1b[?2K"))[0] == " b"
    assert rows_of(after(protected + "\x1b[2K"))[0] == ""
    # After SPA, the ordinary erasing functions leave what is guarded as well.
    assert rows_of(after("a\x1bVb\x1bWc\r\x1b[2K"))[0] == " b"


@pytest.mark.parametrize(("style", "shape"), [(1, "block"), (4, "underline"), (6, "bar"), (9, "block")])
def test_the_shape_of_the_cursor(style: int, shape: str) -> None:
    assert after(f"\x1b[{style} q").cursor().shape == shape


@pytest.mark.parametrize(
    ("data", "flags"),
    [
        ("\x1b[>5u", 5), ("\x1b[>5u\x1b[>1u\x1b[<u", 5), ("\x1b[>5u\x1b[<9u", 0),
        ("\x1b[=3u", 3), ("\x1b[=3u\x1b[=4;2u", 7), ("\x1b[=7u\x1b[=2;3u", 5),
        ("\x1b[>5u\x1b[?1049h", 0),
    ],
    ids=["push", "pop", "pop too many", "set", "add", "take away", "of the other screen"],
)  # fmt: skip
def test_keyboard_flags_are_a_stack_for_each_screen(data: str, flags: int) -> None:
    assert after(data).frame().modes.keyboard == flags


def test_the_stack_of_keyboard_flags_is_bounded() -> None:
    emulator = after("".join(f"\x1b[>{number % 32}u" for number in range(100)))
    assert emulator.frame().modes.keyboard == 99 % 32
    emulator.feed(b"\x1b[<15u")
    assert emulator.frame().modes.keyboard == 84 % 32, "the last 16 are kept"
