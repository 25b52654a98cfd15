"""The rule of reflow.py, case by case; and that what was wrapped anew and back is what it was."""

from __future__ import annotations

import random

import pytest

from tests.support.emulators import cells, fed, text

# Size, output, new size, rows then, cursor then (column, row), history then.
CASES: dict[str, tuple[tuple[int, int], str, tuple[int, int], list[str], tuple[int, int], list[str]]] = {
    "narrower": ((10, 4), "0123456789ab\r\nc", (6, 4), ["012345", "6789ab", "c"], (1, 2), []),
    "wider": ((4, 4), "0123456789\r\nc", (10, 4), ["0123456789", "c"], (1, 1), []),
    "narrower, too long for the screen": ((10, 2), "0123456789ab", (4, 2), ["4567", "89ab"], (3, 1), ["0123"]),
    "wider, back from the history": ((4, 2), "0123456789ab", (10, 2), ["0123456789", "ab"], (2, 1), []),
    "the cursor in the middle": ((10, 4), "0123456789ab\x1b[1;4H", (3, 5), ["012", "345", "678", "9ab"], (0, 1), []),
    "lines that were not wrapped stay apart": ((4, 4), "0123\r\n4567", (8, 4), ["0123", "4567"], (4, 1), []),
    "a cursor past the end of its line": ((10, 4), "ab\x1b[1;9H", (5, 4), ["ab"], (3, 1), []),
    "wide characters": ((6, 4), "漢字漢字", (5, 4), ["漢字", "漢字"], (4, 1), []),
    "wide characters, back": ((5, 4), "漢字漢字x", (9, 4), ["漢字漢字x"], (8, 0), []),
    "fewer rows, blank below": ((4, 5), "a\r\nb", (4, 2), ["a", "b"], (1, 1), []),
    "fewer rows, full": ((4, 4), "a\r\nb\r\nc\r\nd", (4, 2), ["c", "d"], (1, 1), ["a", "b"]),
    "fewer rows, the cursor above": ((4, 4), "a\r\nb\r\nc\r\nd\x1b[1;2H", (4, 2), ["a", "b"], (1, 0), []),
    "more rows": ((4, 2), "a\r\nb\r\nc", (4, 4), ["a", "b", "c"], (1, 2), []),
    "more rows, not at the bottom": ((4, 2), "a\r\nb\r\nc\x1b[1;1H", (4, 4), ["b", "c"], (0, 0), ["a"]),
    "erased rows are not joined": ((4, 4), "012345\x1b[1;1H\x1b[Kx", (8, 4), ["x", "45"], (1, 0), []),
    "one column": ((3, 4), "ab", (1, 4), ["a", "b"], (0, 1), []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_resize(name: str) -> None:
    size, output, new, rows, cursor, history = CASES[name]
    emulator = fed(output, *size)
    emulator.resize(*new)
    assert text(emulator) == rows
    assert (emulator.x, emulator.y) == cursor
    assert [row.text.rstrip() for row in emulator.history] == history


@pytest.mark.parametrize("seed", range(80))
def test_narrower_or_wider_and_back_is_the_same(seed: int) -> None:
    rng = random.Random(seed)
    cols = rng.randrange(2, 30)
    words = ["", "a", "word " * 9 + "end", "漢字" * 8, "e\u0301x", "\x1b[31mred\x1b[m tail"]
    lines = [rng.choice(words) for _ in range(12)]
    # At the bottom row with a history that holds all, nothing is lost on the way.
    emulator = fed("\r\n".join(lines), cols, 6, history_rows=1000)
    before = emulator.frame().lines, [row.text for row in emulator.history]
    assert emulator.y == emulator.rows - 1
    cursor = emulator.x, emulator.y, emulator.pending
    emulator.resize(rng.randrange(2, 60), 6)
    emulator.resize(cols, 6)
    assert (emulator.frame().lines, [row.text for row in emulator.history]) == before
    assert (emulator.x, emulator.y) == cursor[:2]


def test_attributes_move_along() -> None:
    emulator = fed("\x1b[31m0123\x1b[32m4567", 8, 2)
    emulator.resize(4, 2)
    assert [pen.fg for pen in cells(emulator, 0)] == [1] * 4
    assert [pen.fg for pen in cells(emulator, 1)] == [2] * 4


def test_the_alternate_screen_is_cropped_and_the_main_one_wrapped() -> None:
    emulator = fed("0123456789\x1b[?1049h\x1b[1;1Hvim vim vim\x1b[2;5H", 12, 3)
    emulator.resize(6, 2)
    assert text(emulator) == ["vim vi"]
    assert (emulator.x, emulator.y) == (4, 1)
    emulator.feed(b"\x1b[?1049lc")
    assert text(emulator) == ["012345", "6789c"]


def test_the_alternate_screen_keeps_the_row_of_its_cursor() -> None:
    emulator = fed("\x1b[?1049h1\r\n2\x1b7\r\n3\r\n4\r\n5\x1b[5;2H", 6, 6)
    emulator.resize(6, 3)
    assert text(emulator) == ["3", "4", "5"]
    assert (emulator.x, emulator.y) == (1, 2)
    emulator.feed(b"\x1b8X")
    assert text(emulator)[0] == "3X"
    emulator = fed("\x1b[?1049h1\r\n2\r\n3\x1b[2;1H", 6, 6)
    emulator.resize(6, 2)
    assert text(emulator) == ["1", "2"]


@pytest.mark.parametrize("cols", [3, 4, 5, 9, 40])
def test_a_saved_cursor_stays_on_its_character(cols: int) -> None:
    emulator = fed("first line\r\n0123456789abc\x1b[2;6H\x1b7\x1b[5;1Hend", 20, 8)
    emulator.resize(cols, 8)
    emulator.feed(b"\x1b8X")
    rows = "".join(line.text for line in emulator.frame().lines)
    assert "01234X6789abc" in rows


def test_a_saved_cursor_beside_the_text_keeps_its_row_and_column() -> None:
    emulator = fed("0123456789ab\r\nx\x1b[2;6H\x1b7\x1b[6;1H", 20, 8)
    emulator.resize(10, 8)
    emulator.feed(b"\x1b8Y")
    assert text(emulator) == ["0123456789", "ab", "x    Y"]
    emulator = fed("0123456789ab\x1b[7;3H\x1b7\x1b[1;1H", 20, 8)
    emulator.resize(10, 8)
    emulator.feed(b"\x1b8Y")
    assert text(emulator)[7] == "  Y"


def test_margins_tab_stops_and_an_open_update() -> None:
    emulator = fed("\x1b[2;3r\x1b[?6h\x1b[?2026h", 10, 4)
    emulator.resize(30, 5)
    assert (emulator.top, emulator.bottom, emulator.right) == (0, 4, 29)
    assert emulator.tabs == [8, 16, 24]
    assert emulator.held_frame is None
    emulator.resize(9, 5)
    assert emulator.tabs == [8]


def test_the_same_size_changes_nothing() -> None:
    emulator = fed("\x1b[2;3r", 10, 4)
    emulator.resize(10, 4)
    assert (emulator.top, emulator.bottom) == (1, 2)
