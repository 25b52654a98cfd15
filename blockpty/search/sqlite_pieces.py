"""Where the pieces of a part lie in the streams: one array for each thing that is known of them, packed as they are.

Rules of this file: pure; numpy, as in `sqlite_lists`. A search that finds little looks at thousands of pieces, and what
it needs of each of them is here, so that only what seems to match is looked up in a table.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

# Beside the kinds of a window: it is not known where the piece lies, only where its chunk does.
_NOWHERE: Final = 3
_KIND: Final = 3
_FIRST: Final = 4
_BYTES: Final = 8 + 4 + 2 + 1


class Chunk(NamedTuple):
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


def packed(chunks: Iterable[Chunk]) -> bytes:
    """Pack where the pieces of chunks lie, in the order of their numbers."""
    begins, conversations, sizes, kinds = array("q"), array("I"), array("H"), array("B")
    for conversation, begin, size, kind, cuts in chunks:
        places = [0] if cuts is None else [0, *array("H", cuts), size]
        for at, after in zip(places, places[1:] or [0], strict=False):
            begins.append(begin + at)
            sizes.append(after - at)
            conversations.append(conversation)
            kinds.append((_NOWHERE if cuts is None else kind) | (0 if at else _FIRST))
    return b"".join(one.tobytes() for one in (begins, conversations, sizes, kinds))


class Places:
    """What was packed; raises ValueError when it is not of so many pieces."""

    def __init__(self, data: bytes, count: int) -> None:
        if len(data) != count * _BYTES:
            raise ValueError("the places of a part are cut short")
        self._begins = np.frombuffer(data, np.int64, count)
        self._conversations = np.frombuffer(data, np.uint32, count, 8 * count)
        self._sizes = np.frombuffer(data, np.uint16, count, 12 * count)
        kinds = np.frombuffer(data, np.uint8, count, 14 * count)
        self._kinds = kinds & _KIND
        self._chunks = np.cumsum(kinds & _FIRST)

    def of_conversation(self, pieces: Numbers, conversation: int) -> Numbers:
        """Return those of some pieces that are of a conversation."""
        found: Numbers = pieces[self._conversations[pieces] == conversation]
        return found

    def whole(self, pieces: Numbers, end: int) -> int:
        """Return how many of some pieces to take, at least `end`, so that none of the rest is of a chunk of them."""
        while end < len(pieces) and self._chunks[pieces[end]] == self._chunks[pieces[end - 1]]:
            end += 1
        return min(end, len(pieces))

    def unknown(self, pieces: Numbers) -> list[int]:
        """Return those of which it is not known where they lie."""
        found: list[int] = pieces[self._kinds[pieces] == _NOWHERE].tolist()
        return found

    def groups(self, pieces: Numbers) -> Iterator[Group]:
        """Yield the others, by conversation."""
        pieces = pieces[self._kinds[pieces] != _NOWHERE]
        of = self._conversations[pieces]
        for conversation in dict.fromkeys(of.tolist()):
            some = pieces[of == conversation]
            begins = self._begins[some]
            spans = list(zip(begins.tolist(), (begins + self._sizes[some]).tolist(), strict=True))
            yield Group(conversation, some.tolist(), spans, self._kinds[some].tolist())
