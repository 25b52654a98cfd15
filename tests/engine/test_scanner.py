"""Cutting the stream into text and marks: the same pieces for every cut, and little is held back."""

from __future__ import annotations

import random

import pytest

from blockpty.engine.machine import Machine
from blockpty.engine.marks import INTRODUCER, MAX_MARK
from blockpty.engine.scanner import Scanner, StreamToken
from blockpty.model.entries import Entry
from blockpty.testing import every_split
from tests.support.machines import NONCE
from tests.support.profile import LONG

FIELDS = b"n=" + NONCE.encode() + b";i=42;s=1;c=1"
MARK = INTRODUCER + b"__BEGIN__;" + FIELDS + b"\x07"
NEAR_MISSES = 1_000_000 if LONG else 100_000
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
            _add(pieces, token, stream[token.begin : token.end])
    for token in scanner.flush():
        _add(pieces, token, stream[token.begin : token.end])
    assert b"".join(data for _, data in pieces) == stream
    return pieces


def _add(pieces: list[Piece], token: StreamToken, data: bytes) -> None:
    name = "text"
    if token.mark is not None:
        name = token.mark.kind
    elif token.malformed:
        name = "nameless" if token.nameless else "malformed"
    elif token.hint is not None:
        name = f"{token.hint.source} {token.hint.kind}"
    if name == "text" and pieces and pieces[-1][0] == "text":
        data = pieces.pop()[1] + data
    pieces.append((name, data))


LEAD = b"\x1b]133;C\x07"


def long_hint(size: int, terminator: bytes) -> bytes:
    """Return an OSC 7 of `size` bytes, its terminator included."""
    return b"\x1b]7;" + b"x" * (size - 4 - len(terminator)) + terminator


def long_mark(size: int, terminator: bytes, kind: bytes = b"__CWD__") -> bytes:
    """Return a mark of `size` bytes, its terminator included."""
    begin = INTRODUCER + kind + b";" + FIELDS + b";d="
    return begin + b"x" * (size - len(begin) - len(terminator)) + terminator


def long_begin(size: int, terminator: bytes) -> bytes:
    return long_mark(size, terminator, b"__BEGIN__")


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
    MARK.replace(NONCE.encode(), b""): ["nameless", "text"],
    MARK.replace(NONCE.encode(), b"").replace(b"i=42", b""): ["malformed", "text"],
    b"a\x1b]133;A\x07b\x1b]133;A;cl=m\x1b\\": ["text", "133 A", "text", "133 A"],
    b"\x1b]633;P;Cwd=/\xc3\xa9\x07\x1b]7;file://h/\x07\x1b]3008;start=1;user=a\x07": ["633 P", "7 cwd", "3008 start"],
    b"\x1b]133;\x07\x1b]133;A1\x07\x1b]133;A\n\x07\x1b]133;A\x18\x1b]33;A\x07\x1b]1337;A\x07": ["text"],
    b"\x1b]133;A" + MARK: ["text", "__BEGIN__"],
    b"\x1b]133;A\x1b]7;\x07": ["text", "7 cwd"],
    b"\x1b]133;A\x1b": ["text"],
    b"\x1b]0;t\x1b\\\x1b]13": ["text"],
    b"\x1b]3008;" + b"a" * 17 + b"\x07": ["text"],
    long_hint(MAX_MARK, b"\x07"): ["7 cwd"],
    long_hint(MAX_MARK + 1, b"\x1b\\"): ["7 cwd"],
    long_hint(MAX_MARK + 1, b"\x07"): ["text"],
    long_hint(MAX_MARK + 2, b"\x1b\\"): ["text"],
    b"a" + LEAD + MARK + b"b": ["text", "__BEGIN__", "text"],
    LEAD + LEAD + MARK: ["133 C", "__BEGIN__"],
    LEAD + b" " + MARK: ["133 C", "text", "__BEGIN__"],
    LEAD: ["133 C"],
    LEAD + MARK[:-1]: ["133 C", "text"],
    LEAD + MARK[:-1] + b"\x18": ["133 C", "malformed", "text"],
    LEAD + MARK.replace(NONCE.encode(), b""): ["133 C", "nameless", "text"],
    LEAD + MARK.replace(b"__BEGIN__", b"__END__"): ["133 C", "__END__"],
    LEAD[:-1] + b"\x1b\\" + MARK: ["133 C", "__BEGIN__"],
    LEAD + long_begin(MAX_MARK - 8, b"\x07"): ["__BEGIN__"],
    LEAD + long_begin(MAX_MARK - 7, b"\x07"): ["133 C", "__BEGIN__"],
    LEAD + long_begin(MAX_MARK - 8, b"\x1b\\"): ["__BEGIN__"],
    LEAD + long_begin(MAX_MARK - 7, b"\x1b\\"): ["133 C", "__BEGIN__"],
    LEAD + long_begin(MAX_MARK + 1, b"\x07"): ["133 C", "malformed", "text"],
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


def test_near_misses_pass_and_change_nothing() -> None:
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
    for _ in range(NEAR_MISSES // 10_000):
        events, _ = machine.feed(b"".join(chosen.choices(forms, k=10_000)))
        assert len(events) >= 9_999
    after = machine.snapshot()
    assert (after.shell, after.current) == (before.shell, before.current)
    assert after.next_block == before.next_block


def test_a_long_line_is_found_in_without_being_kept() -> None:
    scanner = Scanner()
    for _ in range(160):
        (token,) = scanner.feed(b"x" * 65_536)
        assert token.end - token.begin == 65_536
        assert not scanner._held
