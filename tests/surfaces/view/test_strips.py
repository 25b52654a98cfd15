"""Strips: what a program wrote is text and colours, as wide as the screen says, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color

from blockpty.screen.pens import BOLD, CONCEAL, REVERSE, RGB, Pen
from blockpty.screen.protocol import Run
from blockpty.surfaces.view import strips
from blockpty.surfaces.view.theme import DARK

PLAIN = Pen()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("two\nlines\tand a tab", "two↵lines and a tab"),
        ("zero\u200bwidth\u2060\ufeff", "zerowidth"),
        ("tag \U000e0041", "tag "),
    ],
)
def test_what_is_safe(text: str, shown: str) -> None:
    assert strips.safe(text) == shown


@given(st.text(max_size=30))
def test_no_control_character_is_left(text: str) -> None:
    safe = strips.safe(text)
    assert not any(ord(one) < 32 or 0x7F <= ord(one) < 0xA0 or 0x202A <= ord(one) <= 0x202E for one in safe)
    assert "\n" not in strips.visible(text)


@given(st.text(max_size=12), st.integers(0, 20))
def test_a_run_is_as_wide_as_it_says(text: str, width: int) -> None:
    (segment,) = strips.segments([Run(text, width, PLAIN)], DARK, DARK.term, exact=True)
    assert cell_len(segment.text) == width


@given(st.text(max_size=30), st.integers(0, 20))
def test_a_fitted_text_is_no_wider(text: str, width: int) -> None:
    safe = strips.safe(text)
    fitted = strips.fitted(safe, width)
    assert cell_len(fitted) <= width
    assert (fitted == safe) == (cell_len(safe) <= width)


def test_colours_of_a_pen() -> None:
    def looks(pen: Pen, reverse: bool = False) -> tuple[str, str]:
        found = strips.style(pen, DARK, DARK.term, reverse)
        assert found.color is not None and found.bgcolor is not None
        return found.color.name, found.bgcolor.name

    assert looks(PLAIN) == (DARK.text, DARK.term)
    assert looks(Pen(fg=1)) == (DARK.ansi[1], DARK.term)
    assert looks(Pen(fg=RGB + 0x123456, bg=4)) == ("#123456", DARK.ansi[4])
    assert looks(Pen(fg=1, flags=REVERSE)) == (DARK.term, DARK.ansi[1])
    # Reverse video of the screen and of the text: as it was.
    assert looks(Pen(fg=1, flags=REVERSE), reverse=True) == (DARK.ansi[1], DARK.term)
    hidden = looks(Pen(fg=1, flags=CONCEAL))
    assert hidden[0] == hidden[1]
    assert strips.style(Pen(flags=BOLD), DARK, DARK.term).bold
    assert strips.style(Pen(link=None), DARK, DARK.term).link is None


def test_a_line_of_our_own() -> None:
    line = strips.strip([("one", "bold red"), ("", "red"), ("two", "#00ff00")], 10, "#000000")
    assert line.text == "onetwo    "
    assert {segment.style.bgcolor for segment in line if segment.style is not None} == {Color.parse("#000000")}
