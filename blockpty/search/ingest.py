"""Ingest: the tails of the records in batches, and how far each batch brings an index.

Rules of this file: it reads records and yields data; the caller writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple

from blockpty.search.index import IndexEntry, IndexWatermark
from blockpty.search.records import Records
from blockpty.search.text import AHEAD, CHUNK, Window

# A block that still runs is indexed when so much of it is not indexed.
OPEN_BYTES: Final = 256 * 1024


class Batch(NamedTuple):
    """Entries, and how far the index is when it has them."""

    entries: list[IndexEntry]
    positions: dict[str, IndexWatermark]


def batches(
    records: Records,
    positions: Mapping[str, IndexWatermark],
    batch_bytes: int,
    names: Collection[str] | None = None,
    rest: Callable[[], None] = lambda: None,
) -> Iterator[Batch]:
    """Yield everything of a home, or of these conversations only, that is not indexed, as of now.

    A batch has about so many raw bytes; a block with more is split over several. `rest` is called between chunks.
    """
    batch, size = Batch([], {}), 0
    for name in records.unsettled(positions, names):
        for entry, position in conversation(records, name, positions.get(name, IndexWatermark()), batch_bytes, rest):
            if entry is not None:
                batch.entries.append(entry)
                size += sum(len(chunk.raw) for chunk in entry.chunks)
            batch.positions[name] = position
            if size >= batch_bytes:
                yield batch
                batch, size = Batch([], {}), 0
    if batch.positions:
        yield batch


def conversation(
    records: Records,
    name: str,
    position: IndexWatermark,
    batch_bytes: int,
    rest: Callable[[], None] = lambda: None,
) -> Iterator[tuple[IndexEntry | None, IndexWatermark]]:
    """Yield what of one conversation is not indexed, piece by piece, each with the position that it leads to."""
    tail = records.tail(name, position, rest)
    if tail is None:
        return
    record = records.record(name)
    lines_of = {block.seq: after for block, after in tail.finished}
    for block in tail.blocks:
        running = block.span[1] is None
        begin = (position.open_number, position.open_cursor) if position.open_seq == block.seq else (0, 0)
        if running and tail.cursor - (begin[1] or block.span[0]) < OPEN_BYTES:
            break
        chunks: list[Window] = []
        size = 0
        for chunk in record.chunks(block, tail.cursor, begin):
            rest()
            if running and chunk.number and chunk.begin + CHUNK + AHEAD > tail.cursor:
                break  # with what comes next it may look different
            chunks.append(chunk)
            size += len(chunk.raw)
            position = position._replace(
                settled=-1,
                open_seq=block.seq,
                open_number=chunk.number + 1,
                open_cursor=chunk.end if chunk.number else block.span[0],
            )
            if size >= batch_bytes:
                yield IndexEntry(name, block, chunks), position
                chunks, size = [], 0
        if not running:
            position = IndexWatermark(lines_of.get(block.seq, position.lines), block.seq)
        if chunks or not running:
            yield IndexEntry(name, block, chunks), position
    settled = tail.timeline if tail.quiet else -1
    if settled != position.settled:
        yield None, position._replace(settled=settled)
