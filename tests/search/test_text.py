"""Chunks: where a block is cut, what each of them sees, and the way back to the stream."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.search.text import (
    AHEAD,
    CHUNK,
    COLOURED,
    MIXED,
    PIECE,
    PLAIN,
    CommandWindow,
    Window,
    fold,
    windows,
    words_of,
)


def cut(data: bytes) -> list[Window]:
    return list(windows(lambda offset, length: data[offset : offset + length], 0, len(data)))


def lines(seed: int, size: int, longest: int) -> bytes:
    rng = random.Random(seed)
    made = bytearray()
    while len(made) < size:
        made += "".join(rng.choices("ab é\u6771.-/", k=rng.randrange(longest))).encode() + b"\r\n"
    return bytes(made)


@pytest.mark.parametrize("longest", [10, 300, 3 * CHUNK])
@pytest.mark.parametrize("seed", range(4))
def test_chunks_are_the_whole_and_never_cut_a_character(seed: int, longest: int) -> None:
    data = lines(seed, 5 * CHUNK, longest)
    found = cut(data)
    assert b"".join(window.raw[: window.end - window.begin] for window in found) == data
    assert [window.number for window in found] == list(range(1, len(found) + 1))
    for window in found:
        assert 0 < window.end - window.begin <= CHUNK
        assert len(window.raw) - (window.end - window.begin) <= AHEAD
        window.raw[: window.end - window.begin].decode()


def test_a_line_that_fits_is_in_one_chunk() -> None:
    data = lines(7, 4 * CHUNK, 500)
    for window in cut(data)[:-1]:
        assert window.raw.endswith(b"\n") and len(window.raw) == window.end - window.begin


def test_a_chunk_sees_on_where_a_line_is_cut() -> None:
    data = b"x" * (2 * CHUNK) + b"\n"
    first = cut(data)[0]
    assert len(first.raw) > first.end - first.begin and first.own < len(first.text)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [(b"plain\r\n\ttext", PLAIN), (b"\x1b[31mred\x1b[K", COLOURED), (b"\x1b[2Jx", MIXED), ("é".encode(), MIXED)],
)
def test_the_kind_of_a_chunk(raw: bytes, kind: int) -> None:
    window = Window(1, 0, raw, len(raw))
    assert window.kind == kind and window.plain is (kind == PLAIN)


@pytest.mark.parametrize(
    "raw", [b"one\r\ntwo\r\nthree", b"\x1b[1mone\x1b[m\r\ntw\x1b[31mo\r\n", "é\r\nxé東y\r\n".encode(), b"a\rb\r\nc"]
)
def test_a_span_leads_back_to_its_bytes(raw: bytes) -> None:
    window = Window(1, 1000, raw, len(raw))
    for begin, character in enumerate(window.text):
        if character == "\n":
            continue
        first, last = window.span(begin, begin + 1)
        assert raw[first - 1000 : last - 1000] == character.encode()


def test_pieces_are_the_chunk_and_end_at_line_ends() -> None:
    data = lines(3, CHUNK, 90)[:CHUNK]
    data = data[: data.rfind(b"\n") + 1]
    pieces = Window(1, 5, data, len(data)).pieces()
    assert len(pieces) > 1 and b"".join(piece.raw for piece in pieces) == data
    assert all(piece.raw.endswith(b"\n") and len(piece.raw) < 2 * PIECE for piece in pieces)
    assert [piece.begin for piece in pieces] == [5 + data.index(piece.raw) for piece in pieces]


def test_the_command_is_its_own_text() -> None:
    window = CommandWindow("echo é\rx")
    assert window.text == "echo é\nx" and window.span(5, 6) == (5, 7) and window.pieces() == [window]


@given(st.text())
def test_folding_keeps_the_length_and_forgets_the_case(text: str) -> None:
    assert len(fold(text)) == len(text)
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(("text", "folded"), [("ABC", "abc"), ("ÀÉ", "àé"), ("İı", "ii"), ("ß", "ß"), ("Σς", "σσ")])
def test_folded_texts(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_words() -> None:
    assert words_of(fold("Foo_bar-42, é!")) == ["foo", "bar", "42", "é"]
