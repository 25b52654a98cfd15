"""What a person typed: from the echo of bash, played on a line, and from the marks of zsh."""

from __future__ import annotations

from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.engine.command_line import MAX_DRAWN
from blockpty.engine.line_emulator import ANCHOR, column_after, entered
from blockpty.testing import FakePty, derive, every_split
from tests.support.machines import NONCE, at_prompt, blocks_of, property_settings

LINES = [
    (b"echo one", "echo one"),
    (b"echo ab\b\x1b[Kc", "echo ac"),
    (b"ab\b\b\x1b[1@x\x1b[C", "xab"),
    (b"abc\b\b\x1b[1Pd", "ad"),
    (b"abc\b\b\b\x1b[2P", "c"),
    (b"abc\x1b[2Dx", "axc"),
    (b"abc\x1b[3Gx", "xbc"),
    (b"junk\r\x1b[2C\x1b[Kls", "ls"),
    (b"junk\r$ \x1b[Kls", "ls"),
    ("é日x".encode(), "é日x"),
    ("日本\b\b\x1b[K語".encode(), "日語"),
    ("e\u0301a\b\x1b[K".encode(), "e\u0301"),
    (b"\x1b[1;31mred\x1b[0m\x1b]0;title\x07", "red"),
    (b"echo p1\r\necho p2", "echo p1\necho p2"),
    (b"12345678 \r90", "1234567890"),
    (b"12345678 \r90\x1b[A\rXX\x1b[3C", "1234567890"),
    (b"abc\x1b[H\x1b[2J$ " + ANCHOR + b"abc", "abc"),
    (b"ab\r\nabc abd\r\n$ " + ANCHOR + b"ab", "ab"),
    (b"\x07ab\x00\x01\x7f", "ab"),
    (b"\xffab\xfe", "ab\ufffd"),
    (b"abc\b\b\x1b[1Xd", "adc"),
    (b"abcd\b\b\x1b[J", "ab"),
]


@pytest.mark.parametrize(("drawn", "text"), LINES)
def test_the_line_is_what_stands_there(drawn: bytes, text: str) -> None:
    # A prompt of two columns on a terminal of ten; the prompt's own cells are never part of the line.
    assert entered(drawn + b"\r\n", 2, 10) == text


@pytest.mark.parametrize(
    ("prompt", "column"),
    [(b"$ ", 2), (b"two\r\nlines $ ", 8), (b"\x1b[?2004h\x1b[1m$\x1b[0m ", 2), ("日 ".encode(), 3), (b"", 0)],
)
def test_where_a_prompt_ends(prompt: bytes, column: int) -> None:
    assert column_after(prompt, 80) == column


@property_settings(400)
@given(st.binary(max_size=200), st.integers(0, 40), st.integers(0, 20))
def test_no_bytes_raise(drawn: bytes, column: int, width: int) -> None:
    assert isinstance(entered(drawn, column, width), str)
    assert 0 <= column_after(drawn, width) <= max(2, width)


def typed(pty: FakePty, drawn: bytes, *, output: bytes = b"out\r\n") -> None:
    pty.type(b"keys", echo=False, icanon=False, author="user")
    pty.output(drawn)
    pty.begin()
    pty.output(output)
    pty.end()
    pty.prompt()


def commands(pty: FakePty) -> list[str]:
    expected = derive(pty.recording)
    for cuts in every_split(pty.recording.stream):
        assert derive(pty.recording, cuts) == expected
    return [block["cmd"] for block in blocks_of(pty.recording) if block["kind"] == "user"]


def test_bash_tells_by_its_echo() -> None:
    pty = at_prompt()
    typed(pty, b"echo ab\b\x1b[Kc\r\n\x1b[?2004l\r\x1b]133;C\x07")
    typed(pty, b"ls\r\n")
    assert commands(pty) == ["echo ac", "ls"]


def test_a_continued_command_has_all_its_lines() -> None:
    pty = at_prompt()
    pty.output(b"for x in 1; do\r\n> " + pty.mark("PS2") + b"echo $x\r\n> " + pty.mark("PS2"))
    typed(pty, b"done\r\n")
    assert commands(pty) == ["for x in 1; do\necho $x\ndone"]


def test_a_prompt_drawn_again_is_not_typed() -> None:
    pty = at_prompt()
    pty.output(b"ab\r\nabc  abd\r\n$ " + pty.mark("PROMPT", x=0) + b"ab")
    typed(pty, b"c\r\n")
    assert commands(pty) == ["abc"]


def test_background_output_is_not_typed() -> None:
    pty = at_prompt()
    pty.silence(icanon=False, echo=False, foreground="shell")
    pty.output(b"late\r\n")
    typed(pty, b"ls\r\n")
    assert commands(pty) == ["ls"]


def test_an_abandoned_line_is_forgotten() -> None:
    pty = at_prompt()
    pty.output(b"for x in 1; do\r\n> " + pty.mark("PS2") + b"^C\r\n")
    pty.end(130)
    pty.prompt(130)
    typed(pty, b"ls\r\n")
    assert commands(pty) == ["ls"]


def test_what_is_too_long_is_not_guessed() -> None:
    pty = at_prompt()
    typed(pty, b"x" * MAX_DRAWN + b"\r\n")
    typed(pty, b"ls\r\n")
    assert [block["cmd"] for block in blocks_of(pty.recording)] == ["", "ls"]


def zsh() -> FakePty:
    pty = FakePty()
    pty.entry("spawn", instance=1, nonce=NONCE, pid=pty.pid, shell="zsh", cols=80, rows=24)
    pty.nonce = NONCE
    pty.prompt()
    return pty


def test_zsh_tells_by_marks() -> None:
    pty = zsh()
    text = quote_from_bytes("echo é; ls".encode(), safe="")
    typed(pty, b"keys as zle draws them\r\n" + pty.mark("CMD", d=text))
    half = len(text) // 2
    typed(pty, pty.mark("CMD", d=f"1/2:{text[:half]}") + pty.mark("CMD", d=f"2/2:{text[half:]}", t=1))
    typed(pty, pty.mark("CMD", d="1/2:half"))
    typed(pty, b"nothing reported\r\n")
    assert commands(pty) == ["echo é; ls", "echo é; ls…", "", ""]


def test_a_reported_text_belongs_to_the_next_command_only() -> None:
    pty = zsh()
    pty.output(pty.mark("CMD", d="stale"))
    pty.end()
    pty.prompt()
    typed(pty, b"")
    assert commands(pty) == [""]


def test_no_secret_gets_in() -> None:
    pty = zsh()
    pty.entry("input", author="user", req=None, redacted=True, echo=False, icanon=True)
    typed(pty, pty.mark("CMD", d="secret"))
    typed(pty, pty.mark("CMD", d=f"echo%20{NONCE}"))
    assert commands(pty) == ["", "echo " + "*" * len(NONCE)]
    plain = at_prompt()
    typed(plain, f"echo {NONCE}\r\n".encode())
    assert commands(plain) == ["echo " + "*" * len(NONCE)]
