"""Rows with colours: the text is that of the plain rows, and nothing is left that a terminal could obey but SGR."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.screen.rendered import Drawing, Rendered
from blockpty.screen.sgr_rows import RESET, SGR_ROWS, cut_sgr, only_sgr

SGR = re.compile(r"\x1b\[[0-9;:]*m")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
PIECES = (
    b"text", b"\r\n", b"\x1b[31m", b"\x1b[1;4:3;38;2;1;2;3m", b"\x1b[48;5;7m", b"\x1b[m", b"\x1b[K", b"\x1b[2J",
    b"\x1b[5;5H", b"\x1b[A", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b]0;t\x07", b"\x1b]8;;http://a/\x1b\\", b"\x1b",
    b"\xc2\x9b31m", b"\x9b2J", b"\xe4\xb8\xad" * 7, b"\x00\x07\x08\x0b\x0e", b"<&>\"'", b"\x7f", b"\x1bP1$r\x1b\\",
    b" " * 9, b"\xc2\x85", b"e\xcc\x81", b"\x1b[3b",
)  # fmt: skip


def drawn(data: bytes, cols: int = 20, rows: int = 4, least_run: int = 8192) -> str:
    drawing = Drawing(cols, rows, SGR_ROWS, least_run)
    return drawing.feed(data) + drawing.finish()


def plain(data: bytes, cols: int = 20, rows: int = 4) -> list[str]:
    rendered = Rendered(cols, rows)
    return (rendered.feed(data) + rendered.finish()).split("\n")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one", "one\n"),
        (b"\x1b[31mred\x1b[0m plain  ", "\x1b[0;31mred\x1b[0m plain\n"),
        (b"\x1b[1;3;9mx\x1b[22;4my", "\x1b[0;1;3;9mx\x1b[0m\x1b[0;3;9;4my\x1b[0m\n"),
        (b"\x1b[38;2;1;2;3;48;5;200mx", "\x1b[0;38;2;1;2;3;48;5;200mx\x1b[0m\n"),
        (b"50%\r100%\r\n", "100%\n\n"),
        (b"\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\", "link\n"),
    ],
)
def test_what_is_written(data: bytes, expected: str) -> None:
    assert drawn(data) == expected


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=40), st.sampled_from([1, 8192]))
def test_any_bytes_leave_nothing_but_sgr(pieces: list[bytes], least_run: int) -> None:
    data = b"".join(pieces)
    text = only_sgr(drawn(data, least_run=least_run))
    bare = SGR.sub("", text)
    assert CONTROL.search(bare) is None
    # Without the colours it is what is seen; blanks at the ends may have a background.
    assert [line.rstrip(" ") for line in bare.removesuffix("\n").split("\n")] == [
        CONTROL.sub("", line).rstrip(" ") for line in plain(data)
    ]
    for line in text.split("\n"):
        codes = SGR.findall(line)
        assert not codes or codes[-1] == RESET, "a line leaves nothing set"


@given(st.text(alphabet="\x1b[]m;:0123K\x00\x07\n\x7f\x9bab", max_size=60))
def test_only_sgr_stays(text: str) -> None:
    left = only_sgr(text)
    assert CONTROL.search(SGR.sub("", left)) is None and only_sgr(left) == left
    assert [character for character in left if character in "ab\n"] == [one for one in text if one in "ab\n"]


def test_a_cut_leaves_no_half_of_a_sequence() -> None:
    line = "ab\x1b[0;31mcd\x1b[0m"
    cuts = [cut_sgr(line, length) for length in range(2, 11)]
    assert cuts == [*["ab" + RESET] * 7, line[:9] + RESET, line[:10] + RESET]
