"""Places of a part's pieces in the streams: packed rows, with an array for each thing that is known.

Rules of this file: pure; numpy, as in `sqlite_lists`. A search that finds little looks at thousands of pieces, and what
it needs of each of them is here, so that only what seems to match is looked up in a table.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

# Beside the kinds of a window: it is not known where the piece lies, only where its chunk does.
_NOWHERE: Final = 3
_KIND: Final = 3
_FIRST: Final = 4
_BYTES: Final = 8 + 4 + 2 + 1
ROW: Final = 64 * 1024
"""Pieces of a row, and up to a chunk more. A megabyte is read in less time than it takes to ask for a few rows."""


class PackedChunk(NamedTuple):
    """What is packed of a chunk; `cuts` are two bytes for each piece but the first, None: they are not known."""

    conversation: int
    begin: int
    size: int
    kind: int
    cuts: bytes | None


class Group(NamedTuple):
    """Pieces of one conversation: their numbers, where they lie in its stream, and of what kind they are."""

    conversation: int
    numbers: Sequence[int]
    spans: Sequence[tuple[int, int]]
    kinds: Sequence[int]


def rows_of(chunks: Iterable[PackedChunk]) -> Iterator[tuple[int, bytes]]:
    """Pack where the pieces of chunks lie: yield rows, each with the number of its first piece; a chunk is in one."""
    held: list[PackedChunk] = []
    first = count = 0
    for chunk in chunks:
        held.append(chunk)
        count += 1 + len(chunk.cuts or b"") // 2
        if count >= ROW:
            yield first, _packed(held)
            held, first, count = [], first + count, 0
    if held:
        yield first, _packed(held)


def _packed(chunks: Sequence[PackedChunk]) -> bytes:
    begins, conversations, sizes, kinds = array("q"), array("I"), array("H"), array("B")
    for conversation, begin, size, kind, cuts in chunks:
        places = [0, 0] if cuts is None else [0, *array("H", cuts), size]
        for at, after in pairwise(places):
            begins.append(begin + at)
            sizes.append(after - at)
            conversations.append(conversation)
            kinds.append((_NOWHERE if cuts is None else kind) | (0 if at else _FIRST))
    return b"".join(one.tobytes() for one in (begins, conversations, sizes, kinds))


class Places:
    """Where the pieces of a row lie, which has them from number `first` on; raises ValueError when it is none."""

    def __init__(self, first: int, packed: bytes) -> None:
        count, rest = divmod(len(packed), _BYTES)
        if rest or not count:
            raise ValueError("a row of places is cut short")
        self.first, self.end = first, first + count
        self._begins = np.frombuffer(packed, np.int64, count)
        self._conversations = np.frombuffer(packed, np.uint32, count, 8 * count)
        self._sizes = np.frombuffer(packed, np.uint16, count, 12 * count)
        self._kinds = np.frombuffer(packed, np.uint8, count, 14 * count)

    def whole(self, pieces: Numbers, end: int) -> int:
        """Return how many of some pieces to take, at least `end`, so that none of the rest is of a chunk of them."""
        while end < len(pieces) and pieces[end] < self.end:
            last, following = pieces[end - 1 : end + 1].tolist()
            if (self._kinds[last + 1 - self.first : following + 1 - self.first] & _FIRST).any():
                break
            end += 1
        return end

    def groups(self, pieces: Numbers) -> tuple[list[int], list[Group]]:
        """Return those of some pieces of which it is not known where they lie, and the others, by conversation."""
        at = pieces - self.first
        kinds, of = self._kinds[at] & _KIND, self._conversations[at]
        lost: list[int] = pieces[kinds == _NOWHERE].tolist()
        groups = []
        for conversation in dict.fromkeys(of[kinds != _NOWHERE].tolist()):
            some = (of == conversation) & (kinds != _NOWHERE)
            begins = self._begins[at[some]]
            spans = list(zip(begins.tolist(), (begins + self._sizes[at[some]]).tolist(), strict=True))
            groups.append(Group(conversation, pieces[some].tolist(), spans, kinds[some].tolist()))
        return lost, groups
