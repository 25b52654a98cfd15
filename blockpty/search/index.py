"""The interface of an index, which names the chunks that may match, so that not all of them have to be read.

Rules of this file: the interface and its data. An index is derived and disposable. It may name too many chunks, never
too few; what matches is decided by `matching` on the stream's own bytes. `tests/support/index_contract.py` takes any
of them.

Methods block and may be called from any thread, one call at a time per index object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from blockpty.model.block import Block
from blockpty.search.planner import Plan
from blockpty.search.text import Window


class IndexWatermark(NamedTuple):
    """Watermark up to which a conversation is indexed.

    Attributes:
        lines: bytes of blocks.jsonl whose blocks are in the index, with all their output.
        seq: number of the last of these blocks.
        settled: size of the timeline at which nothing was left to index and no block was open; -1: something was.
        open_seq, open_number, open_cursor: a block that still ran when chunks of it were added; the number of the
            first chunk that was not, and where that begins in the stream. 0 when there is none.
    """

    lines: int = 0
    seq: int = 0
    settled: int = -1
    open_seq: int = 0
    open_number: int = 0
    open_cursor: int = 0


class ChunkKey(NamedTuple):
    """Place of a chunk in the order of all chunks; as the beginning of `query.Key`."""

    ts: int
    conversation_id: str
    seq: int
    number: int


class IndexEntry(Struct, frozen=True):
    """A block, with chunks of it that are new.

    Attributes:
        block: its record; of a running block as far as it is known, and it comes again when it has ended.
        chunks: its command (number 0) and output, in order, as far as they are new.
    """

    conversation_id: str
    block: Block
    chunks: Sequence[Window]


class Candidate(Struct, frozen=True):
    """A chunk that may match.

    Attributes:
        key: its place.
        begin, end: its own bytes in the stream; of a command 0 and its length in UTF-8.
        block: the block's record, as it was added.
        stored: gives the bytes of the chunk with what it sees ahead, where the index keeps them (None when they have
            gone; raises IndexUnavailable); None: they are read from the conversation's stream, which must be in this
            home then.
        host: address of the host that has the conversation when that is another one, else None.
        pieces: spans of the chunk's bytes, whole lines, in which lies all of it that matches, in order; None: anywhere.
            Where there are none nothing matches, and the candidate only says how far the index was read.
    """

    key: ChunkKey
    begin: int
    end: int
    block: Block
    stored: Callable[[], bytes | None] | None = None
    host: str | None = None
    pieces: Sequence[tuple[int, int]] | None = None


class Page(Struct, frozen=True):
    """Candidates in descending order of their keys.

    Attributes:
        candidates: the greatest keys below the one that was asked for.
        more: whether there may be others below the last one.
        generation: of the index that answered; see `Positions`.
        missing: names of parts of the index (shards) that did not answer; their candidates are not here.
    """

    candidates: Sequence[Candidate]
    more: bool
    generation: str
    missing: tuple[str, ...] = ()


class Positions(Struct, frozen=True):
    """Watermarks of conversations.

    Attributes:
        generation: changes when the index is dropped, or found gone and begun anew, and positions count no more.
        of: by conversation; one that is not here is not indexed at all.
    """

    generation: str
    of: Mapping[str, IndexWatermark]


class Index(Protocol):
    """Storage of chunks. Errors of the storage behind it are raised as `IndexUnavailable`.

    Attributes:
        page: how many candidates it is worth to ask for at first.
        batch_bytes: how many raw bytes it is best given at once, where so many are there.
    """

    page: int
    batch_bytes: int

    def add(self, entries: Sequence[IndexEntry], positions: Mapping[str, IndexWatermark]) -> None:
        """Take blocks and chunks, and with them, in one transaction, how far their conversations are indexed.

        The same block or chunk may come again: the last record counts. Chunks of one block come in ascending order.
        Raises IndexUnavailable, and takes nothing, when the index is not that of the last `positions` any more.
        """

    def positions(self) -> Positions:
        """Return how far every conversation is indexed. What they say is seen by every later `candidates`."""

    def candidates(self, plan: Plan, below: ChunkKey | None, limit: int, timeout_seconds: float) -> Page:
        """Return chunks that may match, the greatest keys first, all below the given one.

        At least all chunks of which a line, folded, holds what the plan says, of blocks that the query's filters
        admit; a block that was added while it ran has to pass `exit_status`, `failed` and `min_duration_ms`, since it
        may have ended. A page may be longer than `limit`, and it may be empty with `more` set. A part of the index that
        does not answer within `timeout_seconds` is named in `missing`.
        """

    def forget(self, conversation_id: str) -> None:
        """Drop a conversation; candidates of it may still be named for a while."""

    def drop(self) -> None:
        """Drop everything and begin anew."""

    def close(self) -> None:
        """Close the storage; what was added stays."""


class IndexUnavailable(Exception):
    """The storage behind an index is not there, or is damaged; searching goes on without it.

    Attributes:
        missing: names of what cannot be looked at because of that; nothing when all conversations are in this home.
    """

    def __init__(self, problem: str, missing: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.missing = tuple(missing)
