"""Pens: what SGR makes of them, and brushes that stand for them."""

from __future__ import annotations

import pytest

from blockpty.screen.pens import (
    BLINK,
    BOLD,
    CONCEAL,
    FAINT,
    ITALIC,
    OVERLINE,
    REVERSE,
    RGB,
    STRIKE,
    Brushes,
    Pen,
)  # fmt: skip
from tests.support.emulators import cells, fed

PENS: dict[str, Pen] = {
    "1": Pen(flags=BOLD), "2": Pen(flags=FAINT), "3": Pen(flags=ITALIC), "5": Pen(flags=BLINK),
    "7": Pen(flags=REVERSE),
    "8": Pen(flags=CONCEAL), "9": Pen(flags=STRIKE), "53": Pen(flags=OVERLINE), "1;2;22": Pen(), "53;55": Pen(),
    "4": Pen(underline=1), "21": Pen(underline=2), "4:2": Pen(underline=2), "4:3": Pen(underline=3),
    "4:4": Pen(underline=4),
    "4:5": Pen(underline=5), "4:3;4:0": Pen(), "4;24": Pen(), "4:3;21": Pen(underline=3),
    "31": Pen(fg=1), "97": Pen(fg=15), "42": Pen(bg=2), "105": Pen(bg=13), "31;39": Pen(), "41;49": Pen(),
    "38;5;9": Pen(fg=9), "38:5:9": Pen(fg=9), "48;5;200": Pen(bg=200), "38;5;256": Pen(), "38;5": Pen(), "38": Pen(),
    "38;2;1;2;3": Pen(fg=RGB | 0x010203), "38:2:1:2:3": Pen(fg=RGB | 0x010203), "38:2::1:2:3": Pen(fg=RGB | 0x010203),
    "38;2;1;2;999;1": Pen(fg=RGB | 0x0102FF, flags=BOLD), "58;5;1": Pen(underline_color=1), "58;5;1;59": Pen(),
    "58:2::1:2:3": Pen(underline_color=RGB | 0x010203), "1;;31": Pen(fg=1), "1;0": Pen(), "10;73;999": Pen(),
    ":": Pen(), "000031": Pen(fg=1), "0000000038;0005;00009": Pen(fg=9), "0001": Pen(flags=BOLD),
    "4:": Pen(), "38:": Pen(), ";" * 300: Pen(),
}  # fmt: skip


@pytest.mark.parametrize("parameters", PENS, ids=lambda parameters: parameters[:20])
def test_pen(parameters: str) -> None:
    assert cells(fed(f"\x1b[{parameters}mx"), 0)[0] == PENS[parameters]


def test_a_pen_has_one_brush() -> None:
    brushes = Brushes()
    bold = brushes.of(Pen(flags=BOLD))
    assert brushes.of(Pen(flags=BOLD)) is bold
    assert brushes.pen(bold.mark) == Pen(flags=BOLD)
    assert brushes.default.mark == bold.blank == "\0"


def test_an_erased_cell_keeps_the_background_alone() -> None:
    brushes = Brushes()
    brush = brushes.of(Pen(fg=1, bg=2, flags=BOLD, underline=1))
    assert brushes.pen(brush.blank) == Pen(bg=2)


def test_what_a_sequence_makes_of_a_brush_is_remembered_within_bounds() -> None:
    brushes = Brushes()
    red = brushes.apply(brushes.default, "\x1b[31m")
    assert red.pen == Pen(fg=1)
    assert brushes.default.after["\x1b[31m"] is red
    assert brushes.apply(red, "\x1b[>4;2m") is red
    for number in range(2000):
        brushes.apply(red, f"\x1b[38;5;{number % 256};{number}m")
    assert len(red.after) <= 512
