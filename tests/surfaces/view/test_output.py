"""Lines of an output: how they are drawn, and how many are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment

from blockpty.screen.pens import BOLD, Pen
from blockpty.surfaces.view.output import LONGEST, draw, shown, split
from blockpty.surfaces.view.strips import fitted, safe, segments, visible
from blockpty.surfaces.view.theme import DARK, LIGHT
from tests.support.cli_terminal import unsafe
from tests.support.hostile_output import HOSTILE


def text(raw: str) -> str:
    return "".join(run.text for run in draw(raw))


def test_colours_go_on_in_the_next_line() -> None:
    output = split("a \x1b[31mred\nstill\x1b[1m bold\n\x1b[mplain\n")
    assert [[(run.text, run.pen) for run in output.line(number)] for number in range(3)] == [
        [("a ", Pen()), ("red", Pen(fg=1))],
        [("still", Pen(fg=1)), (" bold", Pen(fg=1, flags=BOLD))],
        [("plain", Pen())],
    ]
    assert output.plain() == "a red\nstill bold\nplain"


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("plain\r", "plain"), ("10%\r20%", "20%"), ("100%\r20%\x1b[K", "20%"), ("ab\x08c", "ac"),
        ("a\tb", "a       b"), ("\x1b[32ma\x1b[m\tb", "a       b"), ("\x1b]0;title\x07x", "x"), ("x\x1b", "x"),
        ("\x1bP$qm\x1b\\y", "y"), ("a\x0bb", "ab"), ("", ""),
    ],
)  # fmt: skip
def test_what_moves_inside_a_line_is_applied(raw: str, seen: str) -> None:
    assert text(raw) == seen


def test_a_long_line_is_cut_and_says_so() -> None:
    assert text("x" * (LONGEST + 5)).endswith("… 5 more characters")


@given(st.text())
def test_any_output_becomes_safe_text(raw: str) -> None:
    output = split(raw)
    for number in range(len(output.raw)):
        for part in segments(output.line(number), DARK, DARK.surface, exact=False):
            assert isinstance(part, Segment)
            assert not unsafe(part.text) and "\n" not in part.text
            assert part.style is not None and part.style.link is None


def test_hostile_output_becomes_safe_text() -> None:
    hostile = HOSTILE.decode()
    assert not unsafe(safe(hostile)) and not unsafe(visible(hostile))
    for part in segments(draw(hostile), LIGHT, LIGHT.surface, exact=True):
        assert not unsafe(part.text)


def test_a_short_output_is_shown_whole_and_of_a_long_one_its_end() -> None:
    assert [shown(12, state) for state in ("ok", "fail", "run")] == [12, 12, 12]
    assert [shown(400, state) for state in ("ok", "fail", "run", "stop", "unknown")] == [1, 12, 16, 12, 12]


def test_what_does_not_fit_ends_with_a_mark() -> None:
    assert (fitted("abc", 3), fitted("abcd", 3), fitted("a漢字", 4), fitted("abc", 0)) == ("abc", "ab…", "a漢…", "")
