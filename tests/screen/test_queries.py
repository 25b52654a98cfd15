"""Answers to what programs ask of their terminal: whole, cut, and nothing of the stream in them."""

from __future__ import annotations

import random
import re

import pytest

from blockpty.engine.records import is_answer
from blockpty.screen import Emulator
from blockpty.screen.queries import Questions, answer
from blockpty.testing import every_split
from tests.support.emulators import fed, random_output

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
    b"\x1b[?2027$p": b"\x1b[?2027;2$y",
    b"\x1b[?2048$p": b"\x1b[?2048;0$y",
    b"\x1b[4$p": b"\x1b[4;2$y",
    b"\x1b[?31337$p": b"\x1b[?31337;0$y",
    b"\x1b[99$p": b"\x1b[99;0$y",
    b"\x1bP$qm\x1b\\": b"\x1bP1$r0m\x1b\\",
    b"\x1bP$q q\x1b\\": b"\x1bP1$r2 q\x1b\\",
    b"\x1bP$qr\x1b\\": b"\x1bP1$r1;24r\x1b\\",
    b"\x1bP$qs\x1b\\": b"\x1bP0$r\x1b\\",
    b'\x1bP$q"q\x1b\\': b'\x1bP1$r0"q\x1b\\',
    b'\x1bP$q"p\x1b\\': b'\x1bP1$r62;1"p\x1b\\',
    b"\x1bP$q*|\x1b\\": b"\x1bP0$r\x1b\\",
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
    b"\x1b[21t", b"\x1b[19t", b"\x1b]52;c;?\x07", b"\x1bP+q544e\x1b\\", b"\x1bP$q0123456789m\x1b\\", b"\x1b[=c",
    b"\x1b[?62c", b"\x1b[0n",
    b"\x1b[1;1R", b"\x1b]11;rgb:0/0/0\x07", b"\x1b]0;?\x07", b"\x1b[?15n", b"\x1b[1c", b"\x1b]4;1;red\x07",
    b"\x1b[>1u", b"\x1b[u",
]  # fmt: skip


def screen() -> Emulator:
    return fed("\x1b[?2004h\x1b[=5u\x1b[3;5H")


@pytest.mark.parametrize("asked", ASKED, ids=repr)
def test_an_answer(asked: bytes) -> None:
    assert answer(asked, screen) == ASKED[asked]


def test_an_answer_is_known_as_one_when_it_is_input() -> None:
    """The engine does not look for its echo."""
    for asked, made in ASKED.items():
        assert made is None or is_answer("engine", made), asked
    colours = fed("\x1b[1;2;3;4:5;5;7;8;9;53;38;2;255;255;255;48;2;255;255;255;58:2::255:255:255m")
    made = answer(b"\x1bP$qm\x1b\\", lambda: colours)
    assert made is not None and is_answer("engine", made)


def test_the_cursor_is_reported_while_an_update_is_open() -> None:
    emulator = fed("\x1b[3;5H\x1b[?2026h\x1b[7;9H")
    assert answer(b"\x1b[6n", lambda: emulator) == b"\x1b[7;9R"


@pytest.mark.parametrize(
    ("output", "asked", "made"),
    [
        ("\x1b[1;4:3;38;5;9;48;2;1;2;3m", b"m", b"0;1;4:3;38;5;9;48;2;1;2;3m"),
        ("\x1b[5 q", b" q", b"5 q"),
        ("\x1b[3;7r", b"r", b"3;7r"),
        ("\x1b[?69h\x1b[3;7s", b"s", b"3;7s"),
        ('\x1b[1"q', b'"q', b'1"q'),
    ],
    ids=repr,
)
def test_settings_are_reported(output: str, asked: bytes, made: bytes) -> None:
    emulator = fed(output)
    reported = answer(b"\x1bP$q" + asked + b"\x1b\\", lambda: emulator)
    assert reported == b"\x1bP1$r" + made + b"\x1b\\"


def test_the_cursor_beyond_the_origin_is_reported_from_the_edge_of_the_screen() -> None:
    emulator = fed("\x1b[6;11r\x1b[?69h\x1b[5;10s\x1b[?6h\x1b[2`\x1b[2d")
    assert answer(b"\x1b[6n", lambda: emulator) == b"\x1b[2;2R"


def test_the_cursor_is_reported_from_the_margins_in_origin_mode() -> None:
    emulator = fed("\x1b[?69h\x1b[5;20s\x1b[3;10r\x1b[?6h\x1b[2;4H")
    assert answer(b"\x1b[6n", lambda: emulator) == b"\x1b[2;4R"
    emulator.feed(b"\x1b[?6l\x1b[2;4H")
    assert answer(b"\x1b[?6n", lambda: emulator) == b"\x1b[?2;4;1R"


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

    def shape(made: bytes) -> bytes:
        made = re.sub(rb"rgb:[0-9a-f/]+", b"rgb:", made)
        # SGR has as many numbers as it needs.
        return re.sub(rb"[\d;:]+m", b"1m", re.sub(rb"\d+", b"1", made))

    shapes = {shape(made) for made in ASKED.values() if made}
    shapes.add(shape(b"\x1bP1$r1;80s\x1b\\"))
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
                assert shape(made) in shapes
                assert len(made) < 80
    assert seen > 500


def test_what_is_held_is_bounded() -> None:
    questions = Questions()
    for _ in range(1000):
        questions.feed(b"\x1b]" + b"1" * 100)
        assert len(questions._held) < 64
