"""Posting lists of four bytes in a row: made of the texts of a part's pieces, packed into rows, and read again.

Rules of this file: pure, and all of numpy is here. A key is four bytes and the number of a piece that holds them; the
keys of a part, sorted, are its lists. What is packed is how far it is from one piece to the next of a list, a byte
each, and all of it compressed: a list of half the pieces then takes little more than a bit for each of them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

GRAM: Final = 4
"""Bytes in a row that a list is kept of."""
MOST_PIECES: Final = 65_535
"""Pieces of a part; one more than the number of each is packed into two bytes."""

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
# Which half of a key its four bytes are.
_HIGH: Final = 1 if sys.byteorder == "little" else 0
# Bytes that are made keys of at a time: each takes 25 meanwhile, and so few stay in the processor's cache.
_AT_ONCE: Final = 192 * 1024
# Rows that are made at a time: each entry of them takes 60 bytes meanwhile.
_MERGED: Final = 128
# Fewer pieces are looked at sooner than another list: so many, and one more for so many packed bytes.
_FEW: Final = 8
_FEWER: Final = 700
# Bytes of a row before it is packed, more than there can be.
_LARGEST: Final = 1 << 20
# Conditions that rows are asked for at a time.
_ASKED: Final = 4
# A range of lists, and the rows that may have some of them, each with where it begins.
_Asked = tuple[int, int, Sequence[tuple[int, bytes]]]


def keys_of(texts: Sequence[bytes]) -> Keys:
    """Return the keys of pieces, sorted; a line end only counts at either end of four bytes."""
    # As many as there are bytes, at most; what is not written to takes no memory.
    keys: Keys = np.empty(sum(map(len, texts)), np.uint64)
    count = first = size = 0
    for number, text in enumerate(texts):
        size += len(text)
        if size >= _AT_ONCE or number + 1 == len(texts):
            found = _keys(texts[first : number + 1], first)
            keys[count : count + len(found)] = found
            count, first, size = count + len(found), number + 1, 0
    keys = keys[:count]
    keys.sort()
    return keys


def _keys(texts: Sequence[bytes], first: int) -> Keys:
    data = b"".join(texts)
    count = len(data) - GRAM + 1
    if count < 1:
        return np.empty(0, np.uint64)
    keys: Keys = np.empty(count, np.uint64)
    halves = keys.view(np.uint32).reshape(count, 2)
    for at in range(GRAM):
        halves[at::GRAM, _HIGH] = np.frombuffer(data, ">u4", (len(data) - at) // GRAM, at)
    pieces = np.repeat(np.arange(first, first + len(texts), dtype=np.uint32), [len(text) for text in texts])
    halves[:, 1 - _HIGH] = pieces[:count]
    # No text that is looked for has a line end inside; and so none goes on from one piece to the next.
    inside = np.frombuffer(data, np.uint8) != 10
    keys = keys[inside[1 : count + 1] & inside[2 : count + 2]]
    keys.sort()
    # Sixteen times as fast as numpy's `unique`, which makes a table of hashes.
    return keys[_changes(keys)]


def _changes(numbers: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return where a number is another one than that before it."""
    changes = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=changes[1:])
    return changes


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
    # All rows are made at once and then cut, since a call of numpy for each of them takes longer than its work.
    grams, places = (keys >> _SHIFT).astype(np.uint32), keys.astype(np.uint32).astype(np.int32)
    starts = np.flatnonzero(_changes(grams))
    gaps = np.empty(len(keys), np.int32)
    np.subtract(places[1:], places[:-1], out=gaps[1:])
    gaps[starts] = places[starts] + 1
    named = grams[starts]
    firsts = np.flatnonzero(_changes(starts // _ROW))
    steps = np.diff(named, prepend=named[:1])
    steps[firsts] = 0
    far = np.flatnonzero(gaps >= _FAR)
    planes = [*_planes(steps.astype("<u4")), *_planes(np.diff(starts, append=len(keys)).astype("<u2"))]
    near, beyond = np.minimum(gaps, _FAR).astype(np.uint8).tobytes(), gaps[far].astype("<u2").tobytes()
    lists, entries = [*firsts.tolist(), len(starts)], [*starts[firsts].tolist(), len(keys)]
    passed = (2 * np.searchsorted(far, entries)).tolist()
    for row, first in enumerate(named[firsts].tolist()):
        begin, end = lists[row], lists[row + 1]
        yield first, _compressed(end - begin, b"".join((
            *[plane[begin:end] for plane in planes],
            near[entries[row] : entries[row + 1]], beyond[passed[row] : passed[row + 1]],
        )))  # fmt: skip


def _planes(numbers: npt.NDArray[Any]) -> list[bytes]:
    """Return the bytes of numbers, all the lowest ones first: like comes to lie beside like."""
    return [plane.tobytes() for plane in numbers.view(np.uint8).reshape(len(numbers), -1).T]


class _Zstandard(threading.local):
    """What packs and unpacks, of each thread its own."""

    def __init__(self) -> None:
        # Nothing in it comes again, some of it is only more frequent: other levels make it no smaller.
        self.packer = zstandard.ZstdCompressor(level=1, write_checksum=False)
        self.unpacker = zstandard.ZstdDecompressor()


_ZSTANDARD: Final = _Zstandard()


def _compressed(lists: int, data: bytes) -> bytes:
    return lists.to_bytes(4, "little") + _ZSTANDARD.packer.compress(data)


def _decompressed(packed: bytes) -> bytes:
    """Return how many lists they are, four bytes, and what was packed of them."""
    data = packed[4:]
    try:
        if zstandard.get_frame_parameters(data).content_size > _LARGEST:
            raise ValueError("a row is too large")
        return packed[:4] + _ZSTANDARD.unpacker.decompress(data)
    except zstandard.ZstdError as problem:
        raise ValueError(str(problem)) from None


def keys_in(rows: Sequence[tuple[int, bytes]], numbers: Numbers) -> Keys:
    """Return all that rows hold, not sorted; piece n is now number `numbers[n]`. Raises ValueError for what is none."""
    texts = [_decompressed(packed) for _, packed in rows]
    sizes = [int.from_bytes(text[:4], "little") for text in texts]
    if any(not size or len(text) < 4 + 6 * size for text, size in zip(texts, sizes, strict=True)):
        raise ValueError("a row is cut short")
    planes = np.empty((6, sum(sizes)), np.uint8)
    for number, plane in enumerate(planes):
        cut = [text[4 + number * size : 4 + (number + 1) * size] for text, size in zip(texts, sizes, strict=True)]
        plane[:] = np.frombuffer(b"".join(cut), np.uint8)
    steps, counts = (np.ascontiguousarray(some.T) for some in (planes[:4], planes[4:]))
    ends = np.cumsum(counts.view("<u2").ravel(), dtype=np.int64)
    pieces = _pieces(texts, sizes, ends)
    if len(pieces) and not 0 <= pieces.min() <= pieces.max() < len(numbers):
        raise ValueError("a row names a piece that is not there")
    grams = np.cumsum(steps.view("<u4").ravel(), dtype=np.int64)
    heads = np.cumsum([0, *sizes[:-1]])
    grams += np.repeat(np.array([first for first, _ in rows]) - grams[heads], sizes)
    keys: Keys = np.repeat(grams.astype(np.uint64) << _SHIFT, np.diff(ends, prepend=0))
    keys |= numbers.astype(np.uint64)[pieces]
    return keys


def _pieces(texts: Sequence[bytes], sizes: Sequence[int], ends: Numbers) -> Numbers:
    """Return the pieces in rows that were unpacked, each with so many lists, which end there."""
    near, beyond = [], []
    entries = np.diff(ends[np.cumsum(sizes) - 1], prepend=0).tolist()
    for text, size, length in zip(texts, sizes, entries, strict=True):
        at = 4 + 6 * size
        if len(text) != at + length + 2 * text.count(_FAR, at, at + length):
            raise ValueError("a row is cut short")
        near.append(text[at : at + length])
        beyond.append(text[at + length :])
    gaps = np.frombuffer(b"".join(near), np.uint8).astype(np.int64)
    far = np.frombuffer(b"".join(beyond), "<u2")
    if len(far):
        gaps[gaps == _FAR] = far
    pieces = np.cumsum(gaps)
    before = np.zeros(len(ends), np.int64)
    before[1:] = pieces[ends[:-1] - 1]
    pieces -= np.repeat(before, np.diff(ends, prepend=0))
    pieces -= 1
    return pieces


def pieces_in(first: int, packed: bytes, low: int, high: int) -> Numbers:
    """Return the pieces in the lists of a range, list by list, of a row that begins with list `first`.

    Raises ValueError when it is no row.
    """
    data = _decompressed(packed)
    lists = int.from_bytes(data[:4], "little")
    at = 4 + 6 * lists
    if not lists or len(data) < at:
        raise ValueError("a row is cut short")
    begin, end, bounds = 0, 1, None
    if lists == 1:
        # So are most of those that are common; a call of numpy takes about as long as all of this.
        entries = int.from_bytes(data[8:10], "little")
        if not low <= first <= high:
            end = 0
    else:
        planes = np.frombuffer(data, np.uint8, 6 * lists, 4).reshape(6, lists)
        steps, counts = np.ascontiguousarray(planes[:4].T).view("<u4"), np.ascontiguousarray(planes[4:].T).view("<u2")
        grams = steps.ravel().cumsum(dtype=np.int64)
        begin, end = grams.searchsorted((low - first, high - first + 1)).tolist()
        bounds = np.zeros(lists + 1, np.int64)
        counts.ravel().cumsum(out=bounds[1:])
        entries = int(bounds[-1])
    # Where the entries of the lists are.
    start, stop = (int(bounds[begin]), int(bounds[end])) if bounds is not None else (0, entries * end)
    if len(data) != at + entries + 2 * data.count(_FAR, at, at + entries):
        raise ValueError("a row is cut short")
    gaps = np.frombuffer(data, np.uint8, stop - start, at + start)
    far = data.count(_FAR, at + start, at + stop)
    if far:
        passed = data.count(_FAR, at, at + start)
        gaps = gaps.astype(np.int64)
        gaps[gaps == _FAR] = np.frombuffer(data, "<u2", far, at + entries + 2 * passed)
    pieces: Numbers = gaps.cumsum(dtype=np.int64)
    pieces -= 1
    if bounds is not None and end - begin > 1:
        starts = bounds[begin + 1 : end] - start
        pieces -= np.repeat(np.r_[0, pieces[starts - 1] + 1], np.diff(bounds[begin : end + 1]))
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
        taken: list[list[tuple[int, bytes]]] = [[] for _ in opened]
        for _ in range(_MERGED):
            at = min((row[0], at) for at, row in enumerate(ahead) if row is not None)[1]
            taken[at].append(ahead[at])  # type: ignore[arg-type]  # it is the smallest that is one
            ahead[at] = next(opened[at][1], None)
            if all(row is None for row in ahead):
                break
        held += [keys_in(rows, numbers) for rows, (numbers, _) in zip(taken, opened, strict=True) if rows]
        # Lists that begin before any row that is still to come are whole.
        limit = min((row[0] for row in ahead if row is not None), default=None)
        keys = np.concatenate(held)
        keys.sort()
        whole = len(keys) if limit is None else int(np.searchsorted(keys, np.uint64(limit) << _SHIFT))
        yield from rows_of(keys[:whole])
        held = [keys[whole:]]


def holding(
    ways: Sequence[Sequence[Sequence[Range]]], count: int, ask: Callable[[int, int], Sequence[tuple[int, bytes]]]
) -> Numbers:
    """Return which of so many pieces may satisfy one of some ways, in order; raises ValueError when a row is none.

    A way is satisfied by what is in a list of each of its conditions, and each of these names several lists. `ask`
    gives the rows in which some of them are, as they are packed.
    """
    found = np.zeros(count, np.bool_)
    for way in ways:
        left: Numbers | None = None
        enough = False
        for at in range(0, len(way), _ASKED):
            asked = [[(first, last, ask(first, last)) for first, last in one] for one in way[at : at + _ASKED]]
            # The shortest lists first: what they leave is often so little that the others need not be unpacked.
            for condition in sorted(asked, key=_length):
                size = sum(len(packed) for _, _, rows in condition for _, packed in rows)
                enough = left is not None and len(left) <= _FEW + size // _FEWER
                if enough:
                    break
                flags = _flags(condition, count)
                left = np.flatnonzero(flags) if left is None else left[flags[left]]
            if enough:
                break
        if left is not None:
            found[left] = True
    return np.flatnonzero(found)


def _flags(condition: Sequence[_Asked], count: int) -> npt.NDArray[np.bool_]:
    flags = np.zeros(count, np.bool_)
    for first, last, rows in condition:
        for begin, packed in rows:
            pieces = pieces_in(begin, packed, first, last)
            if len(pieces) and pieces.max() >= count:
                raise ValueError("a row names a piece that is not there")
            flags[pieces] = True
    return flags


def _length(condition: Sequence[_Asked]) -> float:
    """Return what says about how long the lists of a condition are: how large their rows, and how many are in one."""
    return sum(
        len(packed) / max(1, int.from_bytes(packed[:4], "little")) for _, _, rows in condition for _, packed in rows
    )


def all_of(count: int) -> Numbers:
    """Return all of so many pieces."""
    return np.arange(count)
