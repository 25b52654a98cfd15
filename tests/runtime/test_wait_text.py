"""The text that a wait's result shows."""

from __future__ import annotations

import pytest

from blockpty.api.limits import SHOWN_BYTES
from blockpty.runtime.wait_text import lines_around, rendered, shown_in

SIZE = (20, 4)
PROGRESS = b"\x1b[32m 10 %\r 50 %\r100 %\x1b[0m\r\ndone\r\n"


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        ("text", " 10 %\r 50 %\r100 %\ndone\n"),
        ("ansi", "\x1b[32m 10 %\r 50 %\r100 %\x1b[0m\ndone\n"),
        ("rendered", "100 %\ndone\n"),
    ],
)
def test_each_view(view: str, shown: str) -> None:
    assert shown_in(PROGRESS, view, SIZE) == shown


@pytest.mark.parametrize("view", ["text", "ansi", "rendered"])
def test_the_end_of_much_is_shown_and_characters_are_whole(view: str) -> None:
    shown = shown_in("é12345678\r\n".encode() * 4000, view, SIZE)
    assert SHOWN_BYTES - 4 <= len(shown.encode()) <= SHOWN_BYTES + 2
    assert shown.endswith("é12345678\n")
    if view == "rendered":
        assert "\ufffd" not in shown


def test_what_begins_in_the_middle_is_drawn_from_the_next_line_on() -> None:
    data = b"31mhalf a sequence\r\nwhole \x1b[1mline\x1b[0m\r\n"
    assert shown_in(data, "rendered", SIZE, whole=False) == "whole line\n"
    assert shown_in(b"no line end", "rendered", SIZE, whole=False) == "no line end"


def test_plain_text_is_not_drawn() -> None:
    assert rendered(b"longer than twenty columns\n", SIZE) == "longer than twenty columns\n"
    assert rendered(b"12\r3\n", SIZE) == "32\n"


@pytest.mark.parametrize(
    ("count", "lines"),
    [(0, "bc match de"), (1, "b\nbc match de\ne"), (2, "a\nb\nbc match de\ne\nf"), (9, "a\nb\nbc match de\ne\nf")],
)
def test_lines_around_a_match(count: int, lines: str) -> None:
    assert lines_around("a\nb\nbc ", "match", " de\ne\nf", count) == lines
