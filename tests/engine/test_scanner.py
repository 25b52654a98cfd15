"""Cutting the stream into text and marks: the same pieces for every cut, and little is held back."""

from __future__ import annotations

import random

import pytest

from blockpty.engine.machine import Machine
from blockpty.engine.marks import INTRODUCER, MAX_MARK, Mark
from blockpty.engine.scanner import Scanner
from blockpty.model.entries import Entry
from blockpty.testing import every_split
from tests.engine.support import NONCE

FIELDS = b"n=" + NONCE.encode() + b";i=42;s=1;c=1"
MARK = INTRODUCER + b"__BEGIN__;" + FIELDS + b"\x07"
Piece = tuple[str, bytes]


def scanned(stream: bytes, cuts: object = ()) -> list[Piece]:
    """Return what the scanner makes of a stream: neighbouring text in one, marks and near misses by themselves."""
    scanner = Scanner()
    pieces: list[Piece] = []
    at = 0
    for place in [*sorted({*cuts}), len(stream)]:  # type: ignore[misc]
        data, at = stream[at:place], max(at, place)
        tokens = scanner.feed(data)
        assert len(scanner._held) <= MAX_MARK
        assert scanner.classified == at - len(scanner._held)
        for token in tokens:
            _add(pieces, token.mark, token.malformed, stream[token.begin : token.end])
    last = scanner.flush()
    if last is not None:
        _add(pieces, last.mark, last.malformed, stream[last.begin : last.end])
    assert b"".join(data for _, data in pieces) == stream
    return pieces


def _add(pieces: list[Piece], mark: Mark | None, malformed: bool, data: bytes) -> None:
    name = mark.kind if mark is not None else "malformed" if malformed else "text"
    if name == "text" and pieces and pieces[-1][0] == "text":
        data = pieces.pop()[1] + data
    pieces.append((name, data))


def long_mark(size: int, terminator: bytes) -> bytes:
    """Return a mark of `size` bytes, its terminator included."""
    begin = INTRODUCER + b"__CWD__;" + FIELDS + b";d="
    return begin + b"x" * (size - len(begin) - len(terminator)) + terminator


# stream: names of the pieces
CASES: dict[bytes, list[str]] = {
    b"": [],
    b"text": ["text"],
    MARK: ["__BEGIN__"],
    MARK[:-1] + b"\x1b\\": ["__BEGIN__"],
    b"a" + MARK + b"b" + MARK + MARK: ["text", "__BEGIN__", "text", "__BEGIN__", "__BEGIN__"],
    MARK[:-1]: ["text"],
    MARK[:-1] + b"\x1b": ["text"],
    MARK[:-1] + b"\x18" + MARK: ["malformed", "text", "__BEGIN__"],
    MARK[:-1] + b"\x1a": ["malformed", "text"],
    MARK[:-1] + b"\x1bX": ["malformed", "text"],
    MARK[:-1] + MARK: ["malformed", "text", "__BEGIN__"],
    b"\x1b]0;title" + MARK: ["text", "__BEGIN__"],
    b"\x1b[" + MARK: ["text", "__BEGIN__"],
    b"\x1b" + MARK: ["text", "__BEGIN__"],
    b"\x1b]77" + MARK: ["text", "__BEGIN__"],
    INTRODUCER + MARK: ["malformed", "__BEGIN__"],
    INTRODUCER + b"\x07": ["malformed", "text"],
    MARK.replace(b"__BEGIN__", b"__BEGIM__"): ["malformed", "text"],
    MARK.replace(b"n=", b"n =") + b"x": ["malformed", "text"],
    MARK.replace(b"s=1", b"s=\n1"): ["malformed", "text"],
    b"\xff" + MARK + b"\x1b]7717": ["text", "__BEGIN__", "text"],
    long_mark(MAX_MARK, b"\x07"): ["__CWD__"],
    long_mark(MAX_MARK + 1, b"\x1b\\"): ["__CWD__"],
    long_mark(MAX_MARK + 1, b"\x07"): ["malformed", "text"],
    long_mark(MAX_MARK + 2, b"\x1b\\"): ["malformed", "text"],
}


@pytest.mark.parametrize("stream", CASES, ids=lambda stream: repr(stream[-40:]))
def test_pieces_are_the_same_for_every_cut(stream: bytes) -> None:
    expected = scanned(stream)
    assert [name for name, _ in expected] == CASES[stream]
    for cuts in every_split(stream, pairs=50):
        assert scanned(stream, cuts) == expected


def test_bytes_of_a_token_are_the_stream_s() -> None:
    scanner = Scanner(1000)
    scanner.feed(b"ab\x1b]77")
    (token,) = scanner.feed(b"cd")
    assert (token.begin, token.end) == (1002, 1008)
    assert scanner.bytes_of(token, 3) == b"\x1b]7"
    assert scanner.bytes_of(token, 99) == b"\x1b]77cd"


def test_a_million_near_misses_pass_quickly_and_change_nothing() -> None:
    chosen = random.Random(1)
    forms = [
        MARK.replace(b"__BEGIN__", b"__BEGIM__"),
        MARK[:-1] + b"\x18",
        INTRODUCER + b"\x07",
        INTRODUCER,
        MARK.replace(NONCE.encode(), b"B" * 22),
        MARK.replace(b"i=42", b"i=43"),
        MARK.replace(b"s=1", b"s=7"),
        MARK.replace(b"__BEGIN__", b"__END__").replace(b"s=1;c=1", b"s=5;c=9"),
    ]
    machine = Machine()
    machine.apply(Entry(0, 1, "spawn", {"nonce": NONCE, "pid": 42}))
    machine.feed(MARK.replace(b"__BEGIN__", b"__PROMPT__").replace(b"s=1;c=1", b"s=0;c=0;p=1;x=0"))
    before = machine.snapshot()
    for _ in range(100):
        events, _ = machine.feed(b"".join(chosen.choices(forms, k=10_000)))
        assert len(events) >= 9_999
    after = machine.snapshot()
    assert (after.shell, after.seq, after.count, after.prompt) == (
        before.shell,
        before.seq,
        before.count,
        before.prompt,
    )
    assert after.next_block == before.next_block


def test_a_long_line_is_found_in_without_being_kept() -> None:
    scanner = Scanner()
    for _ in range(160):
        (token,) = scanner.feed(b"x" * 65_536)
        assert token.end - token.begin == 65_536
        assert not scanner._held
