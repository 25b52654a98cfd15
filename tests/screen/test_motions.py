"""Cursor motions, tab stops and margins: where the cursor is afterwards."""

from __future__ import annotations

import pytest

from blockpty.screen import Emulator


def place_after(data: str, cols: int = 20, rows: int = 6) -> tuple[int, int]:
    emulator = Emulator(cols, rows)
    emulator.feed(data.encode())
    return emulator.cursor()[:2]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ("\x1b[3;4H", (3, 2)), ("\x1b[0;0H", (0, 0)), ("\x1b[99;99H", (19, 5)), ("\x1b[;4f", (3, 0)),
        ("\x1b[3;4H\x1b[A", (3, 1)), ("\x1b[3;4H\x1b[99A", (3, 0)), ("\x1b[3;4H\x1b[2B", (3, 4)),
        ("\x1b[3;4H\x1b[2C", (5, 2)), ("\x1b[3;4H\x1b[99C", (19, 2)), ("\x1b[3;4H\x1b[2D", (1, 2)),
        ("\x1b[3;4H\x1b[E", (0, 3)), ("\x1b[3;4H\x1b[2F", (0, 0)), ("\x1b[3;4H\x1b[7G", (6, 2)),
        ("\x1b[3;4H\x1b[7`", (6, 2)), ("\x1b[3;4H\x1b[5d", (3, 4)), ("\x1b[3;4H\x1b[2a", (5, 2)),
        ("\x1b[3;4H\x1b[2e", (3, 4)), ("\x1b[3;4H\r", (0, 2)), ("\x1b[3;4H\x08", (2, 2)), ("\x08", (0, 0)),
    ],
)  # fmt: skip
def test_motions(data: str, place: tuple[int, int]) -> None:
    assert place_after(data) == place


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ("\x1b[2;4r\x1b[3;1H\x1b[99A", (0, 1)), ("\x1b[2;4r\x1b[3;1H\x1b[99B", (0, 3)),
        ("\x1b[2;4r\x1b[6;1H\x1b[99A", (0, 1)), ("\x1b[2;4r\x1b[1;1H\x1b[99A", (0, 0)),
        ("\x1b[2;4r\x1b[?6h\x1b[1;1H", (0, 1)), ("\x1b[2;4r\x1b[?6h\x1b[99;1H", (0, 3)),
        ("\x1b[2;4r\x1b[?6h\x1b[1d", (0, 0)), ("\x1b[?69h\x1b[5;9s\x1b[1;6H\r", (4, 0)),
        ("\x1b[?69h\x1b[5;9s\x1b[1;2H\r", (0, 0)), ("\x1b[?69h\x1b[5;9s\x1b[1;6H\x1b[99C", (8, 0)),
    ],
)  # fmt: skip
def test_margins_hold_the_cursor(data: str, place: tuple[int, int]) -> None:
    assert place_after(data) == place


@pytest.mark.parametrize("data", ["\x1b[4;2r", "\x1b[3;3r"])
def test_margins_of_less_than_two_rows_are_refused(data: str) -> None:
    emulator = Emulator(20, 6)
    emulator.feed(b"\x1b[5;5H" + data.encode())
    assert emulator.margins() == (0, 5, 0, 19) and emulator.cursor()[:2] == (4, 4)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ("\n", (0, 1)), ("ab\n", (2, 1)), ("ab\x1b[20h\n", (0, 1)), ("ab\x1bE", (0, 1)), ("ab\x1bD", (2, 1)),
        ("\x1b[3;4H\x1bM", (3, 1)), ("\x1bM", (0, 0)),
    ],
)  # fmt: skip
def test_line_feeds(data: str, place: tuple[int, int]) -> None:
    assert place_after(data) == place


def test_reverse_wrap_goes_back_over_a_line_end() -> None:
    assert place_after("\x1b[2;1H\x08") == (0, 1)
    assert place_after("\x1b[?45h\x1b[2;1H\x08") == (19, 0)
    assert place_after("\x1b[?45h\x1b[2;3H\x1b[4D") == (18, 0)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ("\t", (8, 0)), ("\t\t\t", (19, 0)), ("\x1b[2I", (16, 0)), ("\t\x1b[Z", (0, 0)), ("\x1b[12G\x1b[Z", (8, 0)),
        ("\x1b[5G\x1bH\r\t", (4, 0)), ("\x1b[9G\x1b[g\r\t", (16, 0)), ("\x1b[3g\r\t", (19, 0)),
        ("\x1b[3g\x1b[?5W\r\t", (8, 0)),
    ],
)  # fmt: skip
def test_tab_stops(data: str, place: tuple[int, int]) -> None:
    assert place_after(data) == place


def test_a_tab_stop_is_there_once() -> None:
    assert place_after("\x1b[5G" + "\x1bH" * 3 + "\r\t\t") == (8, 0)


def test_a_motion_ends_a_pending_wrap() -> None:
    emulator = Emulator(3, 2)
    emulator.feed(b"abc")
    assert emulator.cursor().pending
    emulator.feed(b"\x1b[C")
    assert not emulator.cursor().pending
    emulator.feed(b"x")
    assert [line.text for line in emulator.frame().lines] == ["abx", ""]
