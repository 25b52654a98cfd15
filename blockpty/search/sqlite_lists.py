"""Which four bytes in a row the pieces of a part hold: made of their texts, packed into rows, and asked again.

Rules of this file: pure, and all of numpy is here. A key is four bytes and the number of a piece that holds them; the
keys of a part, sorted, are its lists. What is packed is how far it is from one piece to the next of a list, a byte
each, and all of it deflated: a list of half the pieces then takes little more than a bit for each of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

GRAM: Final = 4
"""Bytes in a row that a list is kept of."""
MOST_PIECES: Final = 32_768
"""Pieces of a part; their numbers are packed into two bytes."""

Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Range = tuple[int, int]
"""The first and the last of the lists that are meant, each named by its four bytes, big-endian."""

_SHIFT: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)
# Entries of a row: it is unpacked as a whole for each list that is asked for.
_ROW: Final = 2048
# A distance that does not fit into a byte.
_FAR: Final = 255
# Pieces that are made keys of at a time: each byte of them takes 40 meanwhile.
_AT_ONCE: Final = 128
# Rows that are made at a time: each entry of them takes 60 bytes meanwhile.
_MERGED: Final = 128
# Fewer pieces are looked at sooner than another list.
_FEW: Final = 4


def keys_of(texts: Sequence[bytes]) -> Keys:
    """Return the keys of pieces, sorted; a line end only counts at either end of four bytes."""
    found = [_keys(texts[at : at + _AT_ONCE], at) for at in range(0, len(texts), _AT_ONCE)]
    if len(found) == 1:
        return found[0]
    keys = np.concatenate(found) if found else np.empty(0, np.uint64)
    keys.sort()
    return keys


def _keys(texts: Sequence[bytes], first: int) -> Keys:
    data = np.frombuffer(b"".join(texts), np.uint8)
    count = len(data) - GRAM + 1
    if count < 1:
        return np.empty(0, np.uint64)
    grams = np.zeros(count, np.uint32)
    for at in range(GRAM):
        grams <<= np.uint32(8)
        grams |= data[at : at + count]
    pieces = np.repeat(np.arange(first, first + len(texts), dtype=np.uint64), [len(text) for text in texts])
    # No text that is looked for has a line end inside; and so none goes on from one piece to the next.
    kept = (data[1 : count + 1] != 10) & (data[2 : count + 2] != 10)
    keys: Keys = (grams[kept].astype(np.uint64) << _SHIFT) | pieces[:count][kept]
    keys.sort()
    # Sixteen times as fast as numpy's `unique`, which makes a table of hashes.
    return keys[np.r_[True, keys[1:] != keys[:-1]]] if len(keys) else keys


def rows_of(keys: Keys) -> Iterator[tuple[int, bytes]]:
    """Pack sorted keys: yield rows, each with the four bytes that its first list is of."""
    at = 0
    while at < len(keys):
        end = at + _MERGED * _ROW
        if end < len(keys):
            # Up to where a list ends.
            end = int(np.searchsorted(keys, keys[end] | _LOW, side="right"))
        yield from _rows(keys[at:end])
        at = end


def _rows(keys: Keys) -> Iterator[tuple[int, bytes]]:
    grams, places = (keys >> _SHIFT).astype(np.uint32), (keys & _LOW).astype(np.int64)
    starts = np.flatnonzero(np.r_[True, grams[1:] != grams[:-1]])
    ends = np.r_[starts[1:], len(keys)]
    gaps = np.diff(places, prepend=-1)
    gaps[starts] = places[starts] + 1
    firsts = np.flatnonzero(np.r_[True, np.diff(starts // _ROW) > 0])
    for first, after in zip(firsts.tolist(), [*firsts[1:].tolist(), len(starts)], strict=True):
        of_row = grams[starts[first:after]]
        yield int(of_row[0]), _packed(of_row, (ends - starts)[first:after], gaps[starts[first] : ends[after - 1]])


def _packed(grams: npt.NDArray[np.uint32], counts: Numbers, gaps: Numbers) -> bytes:
    steps = np.diff(grams, prepend=grams[:1])
    parts = (
        np.array([len(grams)], "<u4"), _planes(steps.astype("<u4")), _planes(counts.astype("<u2")),
        np.minimum(gaps, _FAR).astype(np.uint8), gaps[gaps >= _FAR].astype("<u2"),
    )  # fmt: skip
    # Nothing in it comes again, some of it is only more frequent: a twentieth smaller than with a search for repeats.
    packer = zlib.compressobj(1, strategy=zlib.Z_HUFFMAN_ONLY)
    return packer.compress(b"".join(part.tobytes() for part in parts)) + packer.flush()


def _planes(numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the bytes of numbers, all the lowest ones first: like comes to lie beside like."""
    return np.ascontiguousarray(numbers.view(np.uint8).reshape(len(numbers), -1).T)


class Row:
    """A row, unpacked; raises ValueError when it is none."""

    def __init__(self, first: int, packed: bytes) -> None:
        try:
            data = zlib.decompress(packed)
        except zlib.error as problem:
            raise ValueError(str(problem)) from None
        if len(data) < 4 or len(data) < 4 + 6 * (count := int.from_bytes(data[:4], "little")):
            raise ValueError("a row is cut short")
        at = 4 + 6 * count
        planes = np.frombuffer(data, np.uint8, 6 * count, 4)
        steps = np.ascontiguousarray(planes[: 4 * count].reshape(4, count).T).view("<u4").ravel()
        counts = np.ascontiguousarray(planes[4 * count :].reshape(2, count).T).view("<u2").ravel()
        self._grams = first + np.cumsum(steps, dtype=np.int64)
        self._bounds = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        entries = int(self._bounds[-1])
        if len(data) < at + entries or (len(data) - at - entries) % 2:
            raise ValueError("a row is cut short")
        self._near = np.frombuffer(data, np.uint8, entries, at)
        self._far = np.frombuffer(data, "<u2", -1, at + entries)
        if np.count_nonzero(self._near == _FAR) != len(self._far):
            raise ValueError("a row is cut short")

    def pieces(self, first: int, last: int) -> Numbers:
        """Return the pieces in the lists of a range, list by list."""
        begin, end = np.searchsorted(self._grams, (first, last + 1)).tolist()
        return self._unpacked(begin, end)

    def keys(self, numbers: Numbers) -> Keys:
        """Return all that it holds, not sorted; piece n is now number `numbers[n]`."""
        counts = np.diff(self._bounds)
        pieces = self._unpacked(0, len(self._grams))
        if len(pieces) and pieces.max() >= len(numbers):
            raise ValueError("a row names a piece that is not there")
        keys: Keys = np.repeat(self._grams.astype(np.uint64) << _SHIFT, counts)
        keys |= numbers[pieces].astype(np.uint64)
        return keys

    def _unpacked(self, begin: int, end: int) -> Numbers:
        first, after = self._bounds[begin], self._bounds[end]
        near = self._near[first:after]
        gaps = near.astype(np.int64)
        far = np.flatnonzero(near == _FAR)
        if len(far):
            passed = np.count_nonzero(self._near[:first] == _FAR)
            gaps[far] = self._far[passed : passed + len(far)]
        pieces = np.cumsum(gaps) - 1
        if end - begin > 1:
            starts = self._bounds[begin + 1 : end] - first
            pieces -= np.repeat(np.r_[0, pieces[starts - 1] + 1], np.diff(self._bounds[begin : end + 1]))
        return pieces


def numbering(moved: Sequence[tuple[int, int, int]]) -> Numbers:
    """Return the new number of each piece of a part: `(old, new, how many)` of pieces that stay together."""
    numbers = np.zeros(max((old + count for old, _, count in moved), default=0), np.int64)
    for old, new, count in moved:
        numbers[old : old + count] = range(new, new + count)
    return numbers


def rows_of_all(parts: Sequence[tuple[Numbers, Iterable[tuple[int, bytes]]]]) -> Iterator[tuple[int, bytes]]:
    """Pack the lists of several parts as those of one: of each the new numbers of its pieces, and its rows in order.

    Of every part only few rows are unpacked at a time. Raises ValueError when one of them is damaged.
    """
    opened = [(numbers, iter(rows)) for numbers, rows in parts]
    ahead = [next(rows, None) for _, rows in opened]
    held: list[Keys] = []
    while any(row is not None for row in ahead):
        for _ in range(_MERGED):
            at = min((row[0], at) for at, row in enumerate(ahead) if row is not None)[1]
            first, packed = ahead[at]  # type: ignore[misc]  # it is the smallest that is one
            held.append(Row(first, packed).keys(opened[at][0]))
            ahead[at] = next(opened[at][1], None)
            if all(row is None for row in ahead):
                break
        # Lists that begin before any row that is still to come are whole.
        limit = min((row[0] for row in ahead if row is not None), default=None)
        keys = np.concatenate(held)
        keys.sort()
        whole = len(keys) if limit is None else int(np.searchsorted(keys, np.uint64(limit) << _SHIFT))
        yield from rows_of(keys[:whole])
        held = [keys[whole:]]


def holding(ways: Sequence[Sequence[Sequence[Range]]], count: int, ask: Callable[[int, int], list[Row]]) -> list[int]:
    """Return which of so many pieces may satisfy one of some ways, in order.

    A way is satisfied by what is in a list of each of its conditions, and each of these names several lists. `ask`
    gives the rows in which some of them are.
    """
    found = np.zeros(count, np.bool_)
    for way in ways:
        left: Numbers | None = None
        for condition in way:
            flags = np.zeros(count, np.bool_)
            for first, last in condition:
                for row in ask(first, last):
                    pieces = row.pieces(first, last)
                    if len(pieces) and pieces.max() >= count:
                        raise ValueError("a row names a piece that is not there")
                    flags[pieces] = True
            left = np.flatnonzero(flags) if left is None else left[flags[left]]
            if len(left) <= _FEW:
                break
        if left is not None:
            found[left] = True
    pieces = np.flatnonzero(found)
    numbers: list[int] = pieces.tolist()
    return numbers
