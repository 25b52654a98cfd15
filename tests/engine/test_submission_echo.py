"""The echo of a submitted line: where it ends, whatever the line editor draws in it."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.engine.submission_echo import SubmissionEcho

TYPED: dict[str, Any] = {"line": "make all\n"}
KEYED: dict[str, Any] = {"line": "", "shown": "mak", "key": True}
UNMARKED: dict[str, Any] = {"line": " . '/h/commands/1'", "shown": " . '/h/commands/", "key": True, "unmarked": True}


def echo(data: bytes, line_end: int | None = None) -> SubmissionEcho:
    found = SubmissionEcho()
    found.start(100)
    found.data, found.line_end = data, line_end
    return found


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"make all", None),
        (b"make all\r\n", 10),
        (b"make a\r\r\nll\r\nout", 13),
        (b"make all\x1b[K\x1b[?2004l\r\nout\n", 21),
        (b"<ke all\x08 \r\n", 11),
    ],
    ids=["no line end", "plain", "broken by ash", "sequences before the line end", "scrolled by ksh"],
)
def test_a_typed_line_ends_behind_its_last_character(data: bytes, end: int | None) -> None:
    assert echo(data).ends_at(TYPED) == (None if end is None else 100 + end)


@pytest.mark.parametrize(
    ("data", "begin"),
    [
        (b"make all\r\nout\r\n", 10),
        (b"make all\r\n\x1b[?2004l\rout\r\n", 19),
        (b"x\r\nmake all\r\nout", 13),
        (b"make all", 8),
        (b"nothing like it\r\n", 0),
    ],
    ids=["plain", "behind the end of the paste mode", "behind other output", "no line end yet", "not recognised"],
)
def test_output_begins_behind_a_typed_line(data: bytes, begin: int) -> None:
    assert echo(data).behind_line(TYPED, "bash") == 100 + begin


def test_output_begins_behind_a_line_that_the_key_loaded() -> None:
    drawn = b"make all\r\n\x1b[?2004l\rout"
    assert echo(drawn, line_end=110).behind_line(KEYED, "bash") == 119
    # Its beginning is not in what came back before the line end: the line was not drawn.
    assert echo(b"\r\nmake", line_end=102).behind_line(KEYED, "bash") == 100


@pytest.mark.parametrize(
    ("data", "begin"),
    [
        (b"echo a . b\r\na . b\r\n", None),
        (b"done\r\n . '/h/commands/1'", None),
        (b"done\r\n . '/h/commands/1'\r\nout", 26),
        (b" . '/h/co \rmmands/1'\r\n\x1b[?2004l\rout", 31),
        (b" . '/h/co\r\n\rmmands/1'\r\nout", 23),
    ],
    ids=["another line", "not entered yet", "behind background output", "broken in a narrow terminal", "in an old one"],
)
def test_a_line_without_a_begin_is_found_among_what_else_is_printed(data: bytes, begin: int | None) -> None:
    drawn = echo(data, line_end=101 + data.index(b"\n") if b"\n" in data else None)
    at = None if begin is None else 100 + begin
    assert drawn.passed_line(UNMARKED) == at
    if at is not None:
        assert drawn.behind_line(UNMARKED, "bash") == drawn.behind_line({**UNMARKED, "key": False}, "bash") == at


def test_zsh_highlights_a_line_in_pieces() -> None:
    drawn = b"\x1b[4mm\x1b[24make all\x1b[?2004l\r\r\nzsh: parse error\r\n"
    begin = echo(drawn).behind_line(KEYED, "zsh") - 100
    assert drawn[begin:] == b"zsh: parse error\r\n"
