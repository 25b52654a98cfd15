"""Erasing, inserting, deleting, repeating and scrolling: the rows that each function leaves."""

from __future__ import annotations

import pytest

from blockpty.screen import Emulator

FULL = "abcde\r\nfghij\r\nklmno"


def rows_after(data: str, text: str = FULL) -> list[str]:
    emulator = Emulator(5, 3)
    emulator.feed((text + data).encode())
    return [line.text for line in emulator.frame().lines]


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ("\x1b[2;3H\x1b[K", ["abcde", "fg", "klmno"]),
        ("\x1b[2;3H\x1b[1K", ["abcde", "   ij", "klmno"]),
        ("\x1b[2;3H\x1b[2K", ["abcde", "", "klmno"]),
        ("\x1b[2;3H\x1b[3K", ["abcde", "fghij", "klmno"]),
        ("\x1b[2;3H\x1b[J", ["abcde", "fg", ""]),
        ("\x1b[2;3H\x1b[1J", ["", "   ij", "klmno"]),
        ("\x1b[2;3H\x1b[2J", ["", "", ""]),
        ("\x1b[2;3H\x1b[2X", ["abcde", "fg  j", "klmno"]),
        ("\x1b[2;3H\x1b[99X", ["abcde", "fg", "klmno"]),
    ],
)
def test_erasing(data: str, rows: list[str]) -> None:
    assert rows_after(data) == rows


def test_a_pending_wrap_keeps_the_last_character() -> None:
    """`grep --color` erases behind a match that ends in the last column."""
    assert rows_after("\x1b[K", "abcde") == ["abcde", "", ""]
    assert rows_after("\x1b[J", "abcde") == ["abcde", "", ""]
    assert rows_after("\x1b[Kx", "abcde") == ["abcde", "x", ""]


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ("\x1b[2;2H\x1b[@", ["abcde", "f ghi", "klmno"]),
        ("\x1b[2;2H\x1b[9@", ["abcde", "f", "klmno"]),
        ("\x1b[2;2H\x1b[2P", ["abcde", "fij", "klmno"]),
        ("\x1b[2;2H\x1b[L", ["abcde", "", "fghij"]),
        ("\x1b[2;2H\x1b[M", ["abcde", "klmno", ""]),
        ("\x1b[2;2H\x1b[9M", ["abcde", "", ""]),
        ("\x1b[1;2r\x1b[3;1H\x1b[L", ["abcde", "fghij", "klmno"]),
    ],
    ids=["a character", "more than fit", "delete", "a line", "delete a line", "delete all", "outside the margins"],
)
def test_inserting_and_deleting(data: str, rows: list[str]) -> None:
    assert rows_after(data) == rows


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ("\x1b[S", ["fghij", "klmno", ""]),
        ("\x1b[2T", ["", "", "abcde"]),
        ("\x1b[1;2;3;4;5T", ["abcde", "fghij", "klmno"]),
        ("\x1b[1;1H\x1b[ @", ["bcde", "ghij", "lmno"]),
        ("\x1b[1;1H\x1b[ A", [" abcd", " fghi", " klmn"]),
        ("\x1b[1;3H\x1b['}", ["ab cd", "fg hi", "kl mn"]),
        ("\x1b[1;3H\x1b['~", ["abde", "fgij", "klno"]),
        ("\x1b[1;1H\x1b6", [" abcd", " fghi", " klmn"]),
        ("\x1b[1;5H\x1b9", ["bcde", "ghij", "lmno"]),
    ],
    ids=["SU", "SD", "mouse tracking", "SL", "SR", "DECIC", "DECDC", "DECBI", "DECFI"],
)
def test_scrolling(data: str, rows: list[str]) -> None:
    assert rows_after(data) == rows


def test_scrolling_stays_between_the_margins() -> None:
    assert rows_after("\x1b[?69h\x1b[2;4s\x1b[2;3r\x1b[S") == ["abcde", "flmnj", "k   o"]


def test_repeat_draws_the_last_character_again() -> None:
    assert rows_after("\x1b[2b", "ab") == ["abbb", "", ""]
    assert rows_after("\r\x1b[2b", "ab") == ["ab", "", ""], "a motion forgets it"
    # More than a screen of them could not be seen.
    assert rows_after("\x1b[999999999b", "x")[2] == "x"


def test_the_alignment_display_is_full() -> None:
    assert rows_after("\x1b[2;3r\x1b#8") == ["EEEEE"] * 3
