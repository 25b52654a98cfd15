"""The parser: the same text and sequences however the output is cut, with controls inside of sequences."""

from __future__ import annotations

import random

import pytest

from blockpty.screen.parser import GROUND, STARTS, Parser, pieces


class Listener:
    """Collects what a parser finds, with the text between."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.strings: list[str] = []

    def dispatch(self, sequence: str) -> None:
        self.found.append(sequence)

    def swallowed(self, beginning: str) -> None:
        self.strings.append(beginning)


def parsed(chunks: list[str]) -> list[str]:
    """Return text and sequences in order; neighbouring pieces of text are one, as the emulator draws them."""
    listener = Listener()
    parser = Parser(listener)

    def take(text: str) -> None:
        each = iter([*pieces(text), ""])
        for plain, sequence in zip(each, each, strict=True):
            rest, following = plain, sequence
            if parser.state:
                rest = parser.resume(rest)
                if parser.state:
                    take_rest = parser.resume(following)
                    if take_rest:
                        take(take_rest)
                    continue
            if rest:
                text_found(rest)
            if following in STARTS:
                parser.begin(STARTS[following])
            elif following:
                listener.dispatch(following)

    def text_found(text: str) -> None:
        if listener.found and listener.found[-1].startswith("T"):
            listener.found[-1] += text
        else:
            listener.found.append("T" + text)

    for chunk in chunks:
        take(chunk)
    # A lone ST, which ends nothing, is dispatched and means nothing.
    ends = (item.removesuffix("\x07").removesuffix("\x1b\\") for item in listener.found)
    return [item for item in ends if item]


CASES = [
    ("plain", ["Tplain"]),
    ("a\x1b[31mb", ["Ta", "\x1b[31m", "Tb"]),
    ("\x1b[1;2Hx", ["\x1b[1;2H", "Tx"]),
    ("\x1b]0;title\x07x", ["\x1b]0;title", "Tx"]),
    ("\x1b]0;title\x1b\\x", ["\x1b]0;title", "Tx"]),
    ("\x1bP+q544e\x1b\\x", ["Tx"]),
    ("\x1b_secret\x1b\\x", ["Tx"]),
    ("\x1b(0x", ["\x1b(0", "Tx"]),
    ("\x1b[3\x08Cx", ["\x08", "\x1b[3C", "Tx"]),
    ("\x1b[3\x18x", ["Tx"]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_text_and_sequences(text: str, expected: list[str]) -> None:
    assert parsed([text]) == expected


@pytest.mark.parametrize("text", [text for text, _ in CASES])
def test_cuts_do_not_matter(text: str) -> None:
    expected = parsed([text])
    for at in range(len(text) + 1):
        assert parsed([text[:at], text[at:]]) == expected, at


def test_a_state_goes_on_after_dump_and_restore() -> None:
    rng = random.Random(2)
    for _ in range(300):
        text = "".join(rng.choice("\x1b[]0;31mP\\_x\x07\x18") for _ in range(12))
        one, other = Listener(), Listener()
        parser = Parser(one)
        for character in text[:6]:
            _feed(parser, character)
        copy = Parser(other)
        copy.restore(parser.dump())
        one.found.clear()
        for character in text[6:]:
            _feed(parser, character)
            _feed(copy, character)
        assert (one.found, parser.dump()) == (other.found, copy.dump())


def _feed(parser: Parser, character: str) -> None:
    if parser.state != GROUND:
        parser.resume(character)
    elif character in STARTS:
        parser.begin(STARTS[character])


def test_of_a_string_that_is_swallowed_its_beginning_is_kept() -> None:
    text = "P+q544e\x1b\\\x1b_G" + "a" * 100 + "\x1b\\\x1bX\x18\x1b^ab\x1b[m"
    for step in (1, 3, len(text)):
        listener = Listener()
        parser = Parser(listener)
        parser.begin(STARTS["\x1b"])
        for at in range(0, len(text), step):
            rest = text[at : at + step]
            while rest and (rest := parser.resume(rest)):
                parser.begin(STARTS[rest[0]])
                rest = rest[1:]
        assert listener.strings == ["P+q544e", "_G" + "a" * 14, "X", "^ab"], step
