"""A segment of the SQLite index: the chunks of a span of time, and which four bytes in a row their pieces hold.

Rules of this file: one database, and how chunks lie in it; which segments there are is not known here. Chunks lie in
parts. A part is what was added at once, or several of these made one: its chunks, the newest first, have their pieces
numbered without gaps, and it has its own lists (`sqlite_lists`). Nothing in a part changes. Parts of about one size
become one when there are four of them, so that there are few, and a byte is packed anew only a few times.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from blockpty.search.index import ChunkKey, IndexEntry
from blockpty.search.sqlite_terms import indexed
from blockpty.search.text import Window

# The place of a chunk, or of a row of places, is its part and the number of its first piece; that of a row of lists its
# part and four bytes.
SHIFT: Final = 32
# Parts of about one size that become one.
_JOINED: Final = 4


def add_chunks(segment: sqlite3.Connection, entries: Sequence[IndexEntry], numbers: Mapping[str, int]) -> None:
    """Add chunks that are not there; one that is holds the same text, since its cuts depend on the record alone."""
    from blockpty.search.sqlite_lists import MOST_PIECES, keys_of, rows_of  # numpy: not before it is needed

    fresh = sorted(_fresh(segment, entries, numbers), key=lambda one: one[0], reverse=True)
    # Of pieces that lie together two have more than `PIECE` bytes, so a chunk has no more than six.
    for at in range(0, len(fresh), MOST_PIECES // 8):
        some = fresh[at : at + MOST_PIECES // 8]
        part, count, rows, texts = _next_part(segment), 0, [], []
        for key, window in some:
            pieces = window.pieces()
            rows.append(
                ((part << SHIFT) + count, key.ts, numbers[key.conversation_id], key.seq, key.number, window.begin,
                 window.end - window.begin, window.kind, _cuts(window, pieces))
            )  # fmt: skip
            texts += [indexed(piece.folded) for piece in pieces]
            count += len(pieces)
        _insert_part(segment, part, count, some[0][0], rows)
        _insert_lists(segment, part, rows_of(keys_of(texts)))
    join_parts(segment)


def _next_part(segment: sqlite3.Connection) -> int:
    (last,) = segment.execute("SELECT ifnull(max(part), 0) FROM parts").fetchone()
    return int(last) + 1


def _insert_part(segment: sqlite3.Connection, part: int, pieces: int, first: ChunkKey, chunks: Sequence[Any]) -> None:
    from blockpty.search.sqlite_pieces import PackedChunk, rows_of

    segment.execute("INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?)", (part, pieces, *first))
    segment.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", chunks)
    places = rows_of(PackedChunk(conversation, *where) for _, _, conversation, _, _, *where in chunks)
    segment.executemany("INSERT INTO places VALUES (?, ?)", (((part << SHIFT) + at, data) for at, data in places))


def _insert_lists(segment: sqlite3.Connection, part: int, rows: Iterator[tuple[int, bytes]]) -> None:
    segment.executemany("INSERT INTO lists VALUES (?, ?)", (((part << SHIFT) + first, data) for first, data in rows))


def join_parts(segment: sqlite3.Connection) -> None:
    """Make one part of several of about one size, as often as there are enough of them."""
    from blockpty.search.sqlite_lists import MOST_PIECES

    while True:
        sizes: dict[int, list[tuple[int, int]]] = {}
        for pieces, part in segment.execute("SELECT pieces, part FROM parts ORDER BY pieces"):
            sizes.setdefault((pieces.bit_length() - 1) // 2, []).append((pieces, part))
        for alike in sizes.values():
            chosen = alike[:_JOINED]
            if len(chosen) == _JOINED and sum(pieces for pieces, _ in chosen) <= MOST_PIECES:
                _join(segment, [part for _, part in chosen])
                break
        else:
            return


def close_parts(segment: sqlite3.Connection) -> None:
    """Make as few parts of all as there can be, where nothing is likely to come any more."""
    from blockpty.search.sqlite_lists import MOST_PIECES

    chosen: list[int] = []
    count = 0
    for pieces, part in segment.execute("SELECT pieces, part FROM parts ORDER BY pieces").fetchall():
        if count + pieces > MOST_PIECES:
            _join(segment, chosen)
            chosen, count = [], 0
        chosen.append(part)
        count += pieces
    _join(segment, chosen)


def _join(segment: sqlite3.Connection, parts: Sequence[int]) -> None:
    if len(parts) < 2:
        return
    from blockpty.search.sqlite_lists import numbering, rows_of_all

    chunks = []
    for part in parts:
        chunks += segment.execute(
            "SELECT k.id, k.ts, c.name, k.seq, k.number, k.conversation, k.begin, k.size, k.kind, k.cuts"
            " FROM chunks AS k JOIN catalogue.conversations AS c ON c.number = k.conversation"
            " WHERE k.id BETWEEN ? AND ?", _places(part),
        ).fetchall()  # fmt: skip
    chunks.sort(key=lambda chunk: chunk[1:5], reverse=True)
    joined, count, placed = _next_part(segment), 0, []
    moved: dict[int, list[tuple[int, int, int]]] = {part: [] for part in parts}
    for place, ts, _, seq, number, *rest in chunks:
        pieces = 1 + len(rest[-1] or b"") // 2
        moved[place >> SHIFT].append((place & (1 << SHIFT) - 1, count, pieces))
        placed.append(((joined << SHIFT) + count, ts, rest[0], seq, number, *rest[1:]))
        count += pieces
    old = []
    for part in parts:
        # Packed as they are they take little, and the new ones find the room of the old ones.
        first, last = _places(part)
        rows = segment.execute("SELECT id - ?1, data FROM lists WHERE id BETWEEN ?1 AND ?2", (first, last))
        old.append((numbering(moved[part]), rows.fetchall()))
        for table in ("lists", "places", "chunks"):
            segment.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", _places(part))
        segment.execute("DELETE FROM parts WHERE part = ?", (part,))
    try:
        _insert_lists(segment, joined, rows_of_all(old))
    except ValueError as problem:
        raise damaged(problem) from None
    if chunks:
        _insert_part(segment, joined, count, ChunkKey(*chunks[0][1:5]), placed)


def damaged(problem: ValueError) -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError(f"lists are damaged: {problem}")


def _places(part: int) -> tuple[int, int]:
    return part << SHIFT, ((part + 1) << SHIFT) - 1


def _fresh(
    segment: sqlite3.Connection, entries: Sequence[IndexEntry], numbers: Mapping[str, int]
) -> Iterator[tuple[ChunkKey, Window]]:
    known: dict[tuple[str, int], set[int]] = {}
    for entry in entries:
        block = (entry.conversation_id, entry.block.seq)
        if block not in known:
            rows = segment.execute(
                "SELECT number FROM chunks WHERE conversation = ? AND seq = ?", (numbers[block[0]], block[1])
            )
            known[block] = {number for (number,) in rows}
        for chunk in entry.chunks:
            if chunk.number not in known[block]:
                known[block].add(chunk.number)
                yield ChunkKey(entry.block.ts_begin, *block, chunk.number), chunk


def _cuts(window: Window, pieces: Sequence[Window]) -> bytes | None:
    """Return where the pieces of a chunk begin in it, but for the first; None: its bytes are not all that it sees."""
    if not window.number or len(window.raw) > window.end - window.begin:
        return None
    return array("H", [piece.begin - window.begin for piece in pieces[1:]]).tobytes()
