"""Places of pieces, packed into rows and read again."""

from __future__ import annotations

import itertools
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.search import sqlite_pieces
from blockpty.search.sqlite_pieces import PackedChunk, Places, rows_of


@st.composite
def chunks(draw: st.DrawFn) -> PackedChunk:
    size = draw(st.integers(1, 0xFFFF))
    cuts = draw(st.none() | st.lists(st.integers(1, size), unique=True, max_size=6).map(sorted))
    packed = None if cuts is None else array("H", cuts).tobytes()
    return PackedChunk(draw(st.integers(0, 3)), draw(st.integers(0, 2**48)), size, draw(st.integers(0, 2)), packed)


def pieces_of(chunk: PackedChunk) -> list[tuple[int, tuple[int, int]] | None]:
    """What a chunk's pieces are: kind and span of each; None for one of which it is not known."""
    if chunk.cuts is None:
        return [None]
    places = [0, *array("H", chunk.cuts), chunk.size]
    return [(chunk.kind, (chunk.begin + at, chunk.begin + to)) for at, to in itertools.pairwise(places)]


@given(st.lists(chunks(), min_size=1, max_size=12), st.integers(1, 9))
def test_what_was_packed_is_found(packed: list[PackedChunk], row: int) -> None:
    known = [(chunk.conversation, piece) for chunk in packed for piece in pieces_of(chunk)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_pieces, "ROW", row)
        rows = [Places(first, data) for first, data in rows_of(packed)]
    assert [one.first for one in rows] == [0, *(one.end for one in rows[:-1])] and rows[-1].end == len(known)
    for one in rows:
        numbers = np.arange(one.first, one.end)
        lost, groups = one.groups(numbers)
        assert lost == [number for number in numbers.tolist() if known[number][1] is None]
        found = {
            number: (group.conversation, (kind, span))
            for group in groups
            for number, span, kind in zip(group.numbers, group.spans, group.kinds, strict=True)
        }
        assert found == {number: known[number] for number in numbers.tolist() if known[number][1] is not None}


@given(st.lists(chunks(), min_size=1, max_size=8), st.data())
def test_no_chunk_is_taken_in_part(packed: list[PackedChunk], data: st.DataObject) -> None:
    ((first, row),) = rows_of(packed)
    places = Places(first, row)
    chunk_of = [number for number, chunk in enumerate(packed) for _ in pieces_of(chunk)]
    some = data.draw(st.lists(st.integers(0, len(chunk_of) - 1), min_size=1, unique=True).map(sorted))
    end = data.draw(st.integers(1, len(some)))
    taken = places.whole(np.array(some), end)
    assert taken >= end
    assert {chunk_of[one] for one in some[:taken]}.isdisjoint(chunk_of[one] for one in some[taken:])
    # And no more than that.
    assert taken == end or chunk_of[some[taken - 1]] == chunk_of[some[end - 1]]


@pytest.mark.parametrize("packed", [b"", b"x", b"x" * 16])
def test_half_a_row_is_none(packed: bytes) -> None:
    with pytest.raises(ValueError, match="cut short"):
        Places(0, packed)
