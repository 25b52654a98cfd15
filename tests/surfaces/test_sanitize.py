"""Text that is safe to show: no control sequence but colours, and nothing that hides or reorders what is beside it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.surfaces.sanitize import RESET, one_line, sanitize

COLOUR = re.compile(r"\x1b\[[0-9;:]{0,64}m")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\tand\nlines", "plain\tand\nlines"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a^Mb"),
        ("\x1b]0;title\x07", "^[]0;title^G"),
        ("\x1b[2J", "^[[2J"),
        ("\x1b[31mred", "\x1b[31mred" + RESET),
        ("\x7f\x00", "^?^@"),
        ("\x9b31m", "<U+009B>31m"),
        ("safe\u202eexe.txt", "safe<U+202E>exe.txt"),
        ("\u2028", "<U+2028>"),
        ("\ud800", "<U+D800>"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert sanitize(text) == shown


def test_without_colours_none_pass() -> None:
    assert sanitize("\x1b[1;31mred\x1b[m", colour=False) == "red"


def test_a_colour_with_too_many_parameters_is_none() -> None:
    assert sanitize(f"\x1b[{'1;' * 40}m").startswith("^[[")


@given(st.text(st.one_of(st.sampled_from("\x1b[]0;m\x07\r\n\u202e\x9b"), st.characters())))
def test_no_text_drives_a_terminal(text: str) -> None:
    rest = COLOUR.sub("", sanitize(text))
    assert not [c for c in rest if (ord(c) < 0x20 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066"]
    assert "\x1b" not in sanitize(text, colour=False)


def test_one_line_has_no_line_end() -> None:
    assert one_line("a\r\nb\n\tc\x1b[1m") == "a↵b↵ c"
