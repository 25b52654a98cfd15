"""Answers to what programs ask of their terminal: whole, cut, and nothing of the stream in them."""

from __future__ import annotations

import random
import re

import pytest

from blockpty.screen import Emulator
from blockpty.screen.answers import Questions, answer
from blockpty.testing import every_split
from tests.screen.support import fed, random_output

ASKED: dict[bytes, bytes | None] = {
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[0c": b"\x1b[?62;22c",
    b"\x1b[>c": b"\x1b[>1;10;0c",
    b"\x1b[>0c": b"\x1b[>1;10;0c",
    b"\x1b[5n": b"\x1b[0n",
    b"\x1b[6n": b"\x1b[3;5R",
    b"\x1b[?6n": b"\x1b[?3;5;1R",
    b"\x1b[?2004$p": b"\x1b[?2004;1$y",
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",
    b"\x1b[?2027$p": b"\x1b[?2027;0$y",
    b"\x1b[4$p": b"\x1b[4;2$y",
    b"\x1b[?31337$p": None,
    b"\x1b[99$p": None,
    b"\x1b[>q": b"\x1bP>|blockpty\x1b\\",
    b"\x1b[>0q": b"\x1bP>|blockpty\x1b\\",
    b"\x1b[14t": b"\x1b[4;408;640t",
    b"\x1b[16t": b"\x1b[6;17;8t",
    b"\x1b[18t": b"\x1b[8;24;80t",
    b"\x1b[?u": b"\x1b[?5u",
    b"\x1b]11;?\x07": b"\x1b]11;rgb:1818/1818/1818\x07",
    b"\x1b]10;?\x1b\\": b"\x1b]10;rgb:d8d8/d8d8/d8d8\x1b\\",
    b"\x1b]12;?\x07": b"\x1b]12;rgb:d8d8/d8d8/d8d8\x07",
    b"\x1b]4;1;?\x07": b"\x1b]4;1;rgb:cdcd/0000/0000\x07",
    b"\x1b]4;999;?\x07": None,
}
# Not asked, or not of us: titles, clipboard, terminfo, status strings, answers of others.
UNANSWERED = [
    b"\x1b[21t", b"\x1b[19t", b"\x1b]52;c;?\x07", b"\x1bP+q544e\x1b\\", b"\x1bP$qm\x1b\\", b"\x1b[=c",
    b"\x1b[?62c", b"\x1b[0n",
    b"\x1b[1;1R", b"\x1b]11;rgb:0/0/0\x07", b"\x1b]0;?\x07", b"\x1b[?15n", b"\x1b[1c", b"\x1b]4;1;red\x07",
    b"\x1b[>1u", b"\x1b[u",
]  # fmt: skip


def screen() -> Emulator:
    return fed("\x1b[?2004h\x1b[=5u\x1b[3;5H")


@pytest.mark.parametrize("asked", ASKED, ids=repr)
def test_an_answer(asked: bytes) -> None:
    assert answer(asked, screen) == ASKED[asked]


def test_the_cursor_is_told_while_an_update_is_open() -> None:
    emulator = fed("\x1b[3;5H\x1b[?2026h\x1b[7;9H")
    assert answer(b"\x1b[6n", lambda: emulator) == b"\x1b[7;9R"


@pytest.mark.parametrize("asked", UNANSWERED, ids=repr)
def test_what_gets_no_answer(asked: bytes) -> None:
    assert Questions().feed(b"x" + asked + b"x") == []
    assert answer(asked, screen) is None


@pytest.mark.parametrize("asked", ASKED, ids=repr)
def test_a_question_is_found_however_it_is_cut(asked: bytes) -> None:
    data = b"ab\x1b[1m" + asked + b"\x1b" + asked + b"tail"
    first, second = 6 + len(asked), 7 + 2 * len(asked)
    for cuts in every_split(data):
        questions = Questions(100)
        found = []
        at = 0
        for place in [*cuts, len(data)]:
            found += questions.feed(data[at:place])
            at = place
        assert found == [(asked, 100 + first), (asked, 100 + second)], cuts


def test_nothing_of_the_stream_comes_back() -> None:
    """Answers are of a few shapes, whatever was printed; what may vary in them is digits."""
    shapes = {re.sub(rb"\d+", b"1", made) for made in ASKED.values() if made}
    shapes |= {re.sub(rb"rgb:[0-9a-f/]+", b"rgb:", shape) for shape in shapes}
    rng = random.Random(3)
    seen = 0
    for _ in range(200):
        words = [b"\x1b]0;`rm -rf`\x07", *ASKED, random_output(rng, 5)]
        data = b"".join(rng.choice(words) for _ in range(20))
        emulator = fed(data)
        for question in Questions().feed(data):
            made = answer(question.asked, lambda emulator=emulator: emulator)
            if made is not None:
                seen += 1
                assert re.sub(rb"rgb:[0-9a-f/]+", b"rgb:", re.sub(rb"\d+", b"1", made)) in {
                    re.sub(rb"rgb:[0-9a-f/]+", b"rgb:", shape) for shape in shapes
                }
                assert len(made) < 40
    assert seen > 500


def test_what_is_held_is_bounded() -> None:
    questions = Questions()
    for _ in range(1000):
        questions.feed(b"\x1b]" + b"1" * 100)
        assert len(questions._held) < 64
