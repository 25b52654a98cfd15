"""What is taken out as echo, for every cut, and that little is held."""

from __future__ import annotations

import pytest

from blockpty.engine.echo import WINDOW, EchoFilter, expectations
from blockpty.testing import every_split


def kept(typed: list[tuple[bytes, bool, bool]], output: bytes, cuts: object = ()) -> bytes:
    """Return what is output when all was typed at offset 10 and the stream goes on from there."""
    filtered, out, at = EchoFilter(), [], 0
    for data, echo, icanon in typed:
        filtered.expect(expectations(10, data, echo, icanon))
    for place in [*cuts, len(output)]:  # type: ignore[misc]
        out += filtered.feed(output[at:place], 10 + at)
        at = max(at, place)
    out += filtered.flush()
    places = [begin for begin, _ in out]
    assert places == sorted(places)
    assert all(output[begin - 10 : begin - 10 + len(data)] == data for begin, data in out)
    return b"".join(data for _, data in out)


COOKED, EDITOR, SILENT = (True, True), (False, False), (False, True)

CASES = {
    "whole": ([(b"abc\n", *COOKED)], b"abc\r\nout\r\n", b"out\r\n"),
    "CR is echoed as a line end": ([(b"abc\r", *COOKED)], b"abc\r\nout", b"out"),
    "behind some output": ([(b"abc\n", *COOKED)], b"late abc\r\nout", b"late out"),
    "only the first": ([(b"abc\n", *COOKED)], b"abc\r\nabc\r\n", b"abc\r\n"),
    "Enter alone": ([(b"\r", *COOKED)], b"\r\nout\r\n", b"out\r\n"),
    "Enter that was not echoed after all": (
        [(b"\r", *COOKED)],
        b"pasted 42\r\n>>> \r\n>>> ",
        b"pasted 42\r\n>>> \r\n>>> ",
    ),
    "Enter several times": ([(b"\r\r", *COOKED), (b"\r", *COOKED)], b"\r\n\r\n\r\n\r\nout", b"\r\nout"),
    "Enter behind a line": ([(b"abc\r\r", *COOKED)], b"late abc\r\n\r\nout\r\n", b"late out\r\n"),
    "a line behind Enter that was not echoed": (
        [(b"\r", *COOKED), (b"abc\r", *COOKED)],
        b"one\r\nabc\r\nout\r\n",
        b"one\r\nout\r\n",
    ),
    "two lines": ([(b"abc\ndef\n", *COOKED)], b"abc\r\ndef\r\nout", b"out"),
    "two inputs": ([(b"abc\n", *COOKED), (b"def\n", *COOKED)], b"abc\r\n1\r\ndef\r\n2", b"1\r\n2"),
    "beginning only": ([(b"abc\n", *COOKED)], b"abcX\r\n", b"abcX\r\n"),
    "overlapping beginnings": ([(b"aab\n", *COOKED)], b"aaab\r\nout", b"aout"),
    "controls": ([(b"\x01x\n", *COOKED)], b"^Ax\r\nout", b"out"),
    "not echoed": ([(b"abc\n", *SILENT)], b"abc\r\n", b"abc\r\n"),
    "line editor": ([(b"abc\r", *EDITOR)], b"abc\r\nout", b"out"),
    "line editor, elsewhere": ([(b"abc\r", *EDITOR)], b"x abc\r\nout", b"x abc\r\nout"),
    "editing keys are not foreseen": ([(b"ab\x7fc\n", *COOKED)], b"ab\x08 \x08c\r\n", b"ab\x08 \x08c\r\n"),
    "torn by a line of the program": (
        [(b"number 141 end\nnumber 142 end\n", *COOKED)],
        b"number 141 end\r\nnumbenumber 101 end\r\nr 142 end\r\nnumber 141 end\r\nnumber 142 end\r\n",
        b"numbenumber 101 end\r\nr 142 end\r\nnumber 141 end\r\nnumber 142 end\r\n",
    ),
    "torn twice, and the next is whole": (
        [(b"number 142 end\nnumber 143 end\n", *COOKED)],
        b"numbenumber 1 end\r\nr 14number 2 end\r\nnumber 3 end\r\n2 end\r\nnumber 143 end\r\nnumber 142 end\r\n",
        b"numbenumber 1 end\r\nr 14number 2 end\r\nnumber 3 end\r\n2 end\r\nnumber 142 end\r\n",
    ),
    "torn by a line whose end comes behind the echo": (
        [(b"number 719 end\n", *COOKED)],
        b"number 719number 654 end end\r\n\r\nnumber 655 end\r\nnumber 719 end\r\n",
        b"number 719number 654 end end\r\n\r\nnumber 655 end\r\nnumber 719 end\r\n",
    ),
    "torn before the line end": (
        [(b"abc\n", *COOKED)],
        b"abcone\r\n\r\nabc\r\n",
        b"abcone\r\n\r\nabc\r\n",
    ),
    "torn in a way that is not seen, and the next one shows it": (
        [(b"number 142 end\nnumber 143 end\nnumber 144 end\n", *COOKED)],
        b"numbenumber 1r 142 end\r\n end\r\nnumber 143 end\r\nnumber 144 end\r\nnumber 142 end\r\n",
        b"numbenumber 1r 142 end\r\n end\r\nnumber 143 end\r\nnumber 142 end\r\n",
    ),
    "lines that begin alike are no pieces": (
        [(b"number 142 end\n", *COOKED)],
        b"number 101 end\r\nnumber 102 end\r\nnumber 142 end\r\nnumber 142 end\r\n",
        b"number 101 end\r\nnumber 102 end\r\nnumber 142 end\r\n",
    ),
    "never, then another": (
        [(b"never\n", *COOKED), (b"abc\n", *COOKED)],
        b"." * (WINDOW - 2) + b"...nev.abc\r\nabc\r\n",
        b"." * (WINDOW - 2) + b"...nev.abc\r\n",
    ),
    "never, another in front of a beginning": (
        [(b"never\n", *COOKED), (b"abc\n", *COOKED)],
        # Both are looked for within WINDOW bytes of their input, and both come too late.
        b"." * WINDOW + b"..abc\r\nnev.x",
        b"." * WINDOW + b"..abc\r\nnev.x",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_is_the_same_for_every_cut(name: str) -> None:
    typed, output, expected = CASES[name]
    whole = kept(typed, output)
    if name != "never, then another":
        assert whole == expected
    cuts = (
        every_split(output)
        if len(output) < 200
        else [(p, q) for p in range(WINDOW - 4, len(output)) for q in range(p, len(output))]
    )
    for some in cuts:
        assert kept(typed, output, some) == whole


def test_little_is_held() -> None:
    filtered = EchoFilter()
    filtered.expect(expectations(0, b"a" * 70_000 + b"\n", True, True))
    at = 0
    for _ in range(200):
        filtered.feed(b"a" * 1000, at)
        at += 1000
        assert len(filtered._held) <= 80_000


def test_an_expectation_that_does_not_come_is_given_up() -> None:
    filtered = EchoFilter()
    filtered.expect(expectations(0, b"abc\n", True, True))
    filtered.feed(b"x" * (WINDOW + 100), 0)
    assert filtered._expected == []
