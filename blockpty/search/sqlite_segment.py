"""A segment of the SQLite index: the chunks of a span of time, and which four bytes in a row their pieces hold.

Rules of this file: one database, and how chunks lie in it; which segments there are is not known here. Chunks lie in
parts. A part is what was added at once, or several of these made one: its chunks, the newest first, have their pieces
numbered without gaps, and it has its own lists (`sqlite_lists`). Nothing in a part changes. Parts of about one size
become one when there are four of them, so that there are few, and a byte is packed anew only a few times.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import orjson

from blockpty.model.block import Block
from blockpty.search.index import Candidate, ChunkKey, Entry
from blockpty.search.overview import unpacked
from blockpty.search.plan import Plan
from blockpty.search.sqlite_terms import conditions, indexed, ways_of
from blockpty.search.text import CHUNK, Window

if TYPE_CHECKING:
    from blockpty.search.sqlite_lists import Row

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS parts (
    part INTEGER PRIMARY KEY, pieces INTEGER NOT NULL,
    ts INTEGER NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL, number INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS chunks (
    id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, conversation INTEGER NOT NULL, seq INTEGER NOT NULL,
    number INTEGER NOT NULL, begin INTEGER NOT NULL, size INTEGER NOT NULL, plain INTEGER NOT NULL, cuts BLOB
);
CREATE UNIQUE INDEX IF NOT EXISTS chunks_by_block ON chunks (conversation, seq, number);
CREATE TABLE IF NOT EXISTS lists (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
"""
# The place of a chunk is its part and the number of its first piece; that of a row of lists its part and four bytes.
_SHIFT: Final = 32
# Chunks that may be left out one after another, before whoever asks is given one and can see how much time is left.
_LEFT_OUT: Final = 64
# Parts of about one size that become one.
_JOINED: Final = 4
# Chunks that are looked at together, at most.
_TOGETHER: Final = 16
# Pieces of a part that are looked up at a time; at first fewer, since often these are enough.
_LOOKED_UP: Final = 1024

Found = tuple[Sequence[Any], list[tuple[int, int]] | None]
"""A row of `chunks`, and the spans of the stream where it may match; None: not known."""


def add_chunks(segment: sqlite3.Connection, entries: Sequence[Entry], numbers: Mapping[str, int]) -> None:
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
                ((part << _SHIFT) + count, key.ts, numbers[key.conversation_id], key.seq, key.number, window.begin,
                 window.end - window.begin, bool(window.number) and window.plain, _cuts(window, pieces))
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
    segment.execute("INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?)", (part, pieces, *first))
    segment.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", chunks)


def _insert_lists(segment: sqlite3.Connection, part: int, rows: Iterator[tuple[int, bytes]]) -> None:
    segment.executemany("INSERT INTO lists VALUES (?, ?)", (((part << _SHIFT) + first, data) for first, data in rows))


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
    """Make one part of all that are not large, where nothing is likely to come any more."""
    from blockpty.search.sqlite_lists import MOST_PIECES

    small = segment.execute("SELECT part, pieces FROM parts WHERE pieces < ?", (MOST_PIECES // 8,)).fetchall()
    if len(small) > 1 and sum(pieces for _, pieces in small) <= MOST_PIECES:
        _join(segment, [part for part, _ in small])


def _join(segment: sqlite3.Connection, parts: Sequence[int]) -> None:
    from blockpty.search.sqlite_lists import numbering, rows_of_all

    chunks = []
    for part in parts:
        chunks += segment.execute(
            "SELECT k.id, k.ts, c.name, k.seq, k.number, k.conversation, k.begin, k.size, k.plain, k.cuts"
            " FROM chunks AS k JOIN catalogue.conversations AS c ON c.number = k.conversation"
            " WHERE k.id BETWEEN ? AND ?", _places(part),
        ).fetchall()  # fmt: skip
    chunks.sort(key=lambda chunk: chunk[1:5], reverse=True)
    joined, count, placed = _next_part(segment), 0, []
    moved: dict[int, list[tuple[int, int, int]]] = {part: [] for part in parts}
    for place, ts, _, seq, number, *rest in chunks:
        pieces = 1 + len(rest[-1] or b"") // 2
        moved[place >> _SHIFT].append((place & (1 << _SHIFT) - 1, count, pieces))
        placed.append(((joined << _SHIFT) + count, ts, rest[0], seq, number, *rest[1:]))
        count += pieces
    old = []
    for part in parts:
        # Packed as they are they take little, and the new ones find the room of the old ones.
        first, last = _places(part)
        rows = segment.execute("SELECT id - ?1, data FROM lists WHERE id BETWEEN ?1 AND ?2", (first, last))
        old.append((numbering(moved[part]), rows.fetchall()))
        for table in ("lists", "chunks"):
            segment.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", _places(part))
        segment.execute("DELETE FROM parts WHERE part = ?", (part,))
    try:
        _insert_lists(segment, joined, rows_of_all(old))
    except ValueError as problem:
        raise _damaged(problem) from None
    if chunks:
        _insert_part(segment, joined, count, ChunkKey(*chunks[0][1:5]), placed)


def _damaged(problem: ValueError) -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError(f"lists are damaged: {problem}")


def _places(part: int) -> tuple[int, int]:
    return part << _SHIFT, ((part + 1) << _SHIFT) - 1


def _fresh(
    segment: sqlite3.Connection, entries: Sequence[Entry], numbers: Mapping[str, int]
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


class Reading:
    """Chunks of one segment that may match, the greatest keys first, all below the given one.

    `held`: which pieces of a part the lists name, as an earlier reading for this plan has found; parts do not change.
    """

    def __init__(
        self, segment: sqlite3.Connection, plan: Plan, below: ChunkKey | None, held: dict[int, list[int]]
    ) -> None:
        self._segment = segment
        self._held = held
        self._ways = ways_of(plan)
        self._where, self._values = conditions(plan.query.filters)
        until, since = plan.query.filters.until, plan.query.filters.since
        if until is not None:
            below = min(below or _first_of(until), _first_of(until))
        self._below = below
        self._since = _first_of(since) if since is not None else None
        self._only = plan.query.filters.conversation_id
        self._seems = plan.seems
        self._names: dict[int, str] = {}
        # The block that was asked for last.
        self._last: tuple[int, int, Block | None] = (0, 0, None)

    def candidates(self) -> Iterator[Candidate]:
        """Yield them; the segment must not change meanwhile, see `unchanged`."""
        opened: list[tuple[Candidate, Iterator[Candidate]]] = []
        waiting = sorted(
            (ChunkKey(*key), part, count) for part, count, *key in self._segment.execute("SELECT * FROM parts")
        )
        while True:
            # A part is opened when its first chunk may be the next one.
            while waiting and (not opened or waiting[-1][0] > max(one.key for one, _ in opened)):
                _, part, count = waiting.pop()
                _open(opened, self._of_part(part, count))
            if not opened:
                return
            at = max(range(len(opened)), key=lambda at: opened[at][0].key) if len(opened) > 1 else 0
            found, others = opened.pop(at)
            yield found
            _open(opened, others)

    def _of_part(self, part: int, count: int) -> Iterator[Candidate]:
        """Yield what a part of so many pieces has, newest first."""
        base = part << _SHIFT
        lowest, highest = base, base + count - 1
        if self._below is not None:
            lowest = self._behind(self._below, lowest, highest) or self._first_below(self._below, lowest, highest)
        if self._since is not None:
            highest = self._first_below(self._since, lowest, highest) - 1
        if self._only is not None:
            found = self._segment.execute(
                "SELECT min(id), max(id) FROM chunks WHERE id BETWEEN ? AND ?"
                " AND conversation = (SELECT number FROM catalogue.conversations WHERE name = ?)",
                (lowest, highest, self._only),
            ).fetchone()
            if found[0] is None:
                return
            # Its last place is also one of its last chunk's later pieces.
            lowest, highest = found[0], min(highest, found[1] + CHUNK)
        if lowest > highest:
            return
        chunks = self._chunks(part, count, lowest, highest)
        left_out, together = 0, 1
        while group := list(islice(chunks, together)):
            seeming = self._seeming(group)
            # Where nothing matches more is read at once.
            together = 1 if seeming else min(2 * together, _TOGETHER)
            left_out = 0 if seeming else left_out + len(group)
            if left_out >= _LEFT_OUT:
                seeming, left_out = group[-1:], 0
            for row, spans in seeming:
                candidate = self._candidate(row, spans)
                if candidate is not None:
                    yield candidate

    def _chunks(self, part: int, count: int, lowest: int, highest: int) -> Iterator[Found]:
        """Yield the chunks with a place between these that may match, and where in the stream that is, if known."""
        rows = self._rows(part, count, lowest, highest)
        row = next(rows, None)
        while row is not None:
            pieces, following = [row[0] - row[1]], next(rows, None)
            while following is not None and following[1] == row[1]:
                pieces.append(following[0] - row[1])
                following = next(rows, None)
            yield row, _spans(row, pieces if self._ways else None)
            row = following

    def _rows(self, part: int, count: int, lowest: int, highest: int) -> Iterator[tuple[Any, ...]]:
        """Yield the places between these that may match, in order, each with its chunk, where that is admitted."""
        columns = "k.id, k.ts, k.conversation, k.seq, k.number, k.begin, k.size, k.plain, k.cuts"
        blocks = (
            " CROSS JOIN catalogue.blocks AS b ON b.conversation = k.conversation AND b.seq = k.seq"
            " CROSS JOIN catalogue.conversations AS c ON c.number = k.conversation"
        ) if self._where else ""
        where = "".join(f" AND {condition}" for condition in self._where)
        if not self._ways:
            yield from self._segment.execute(
                f"SELECT k.id, {columns} FROM chunks AS k{blocks} WHERE k.id BETWEEN ? AND ?{where} ORDER BY k.id",
                [lowest, highest, *self._values],
            )
            return
        base = part << _SHIFT
        if part not in self._held:
            self._held[part] = self._holding(part, count)
        pieces = self._held[part]
        at, end, size = bisect_left(pieces, lowest - base), bisect_right(pieces, highest - base), _LOOKED_UP // 16
        while at < end:
            yield from self._segment.execute(
                f"SELECT f.value, {columns} FROM json_each(?) AS f CROSS JOIN chunks AS k"
                f" ON k.id = (SELECT max(id) FROM chunks WHERE id <= f.value){blocks} WHERE 1{where} ORDER BY f.key",
                [orjson.dumps([base + piece for piece in pieces[at : min(at + size, end)]]).decode(), *self._values],
            ).fetchall()
            at, size = at + size, min(2 * size, _LOOKED_UP)

    def _holding(self, part: int, count: int) -> list[int]:
        from blockpty.search.sqlite_lists import Row, holding

        base = part << _SHIFT

        def ask(low: int, high: int) -> list[Row]:
            # What is before the first of them may go on with it.
            rows = self._segment.execute(
                "SELECT id, data FROM lists WHERE id BETWEEN"
                " (SELECT ifnull(max(id), ?1) FROM lists WHERE id BETWEEN ?1 AND ?2) AND ?3",
                (base, base + low, base + high),
            )
            return [Row(at - base, data) for at, data in rows]

        try:
            return holding(self._ways, count, ask)
        except ValueError as problem:
            raise _damaged(problem) from None

    def _seeming(self, group: list[Found]) -> list[Found]:
        """Return those that may match, with the spans that may, as far as can be told."""
        if self._seems is None:
            return group
        told: dict[int, tuple[list[tuple[int, int]], list[bool]]] = {}
        for row, spans in group:
            if spans is not None:
                all_spans, plain = told.setdefault(row[3], ([], []))
                all_spans += spans
                plain.append(bool(row[8]))
        seem = {
            number: set(self._seems(self._name(number), spans, all(plain))) for number, (spans, plain) in told.items()
        }
        found: list[Found] = []
        for row, spans in group:
            left = None if spans is None else [span for span in spans if span in seem[row[3]]]
            if left is None or left:
                found.append((row, left))
        return found

    def _candidate(self, row: Sequence[Any], spans: list[tuple[int, int]] | None) -> Candidate | None:
        """Return the candidate of a chunk; None when its block was dropped."""
        _, _, ts, conversation, seq, number, begin, size, plain, _ = row
        if self._last[:2] != (conversation, seq):
            found = self._segment.execute(
                "SELECT record FROM catalogue.blocks WHERE conversation = ? AND seq = ?", (conversation, seq)
            ).fetchone()
            self._last = (conversation, seq, None if found is None else unpacked(found[0]))
        block = self._last[2]
        if block is None:
            return None
        key = ChunkKey(ts, self._name(conversation), seq, number)
        return Candidate(key, begin, begin + size, block, pieces=spans, plain=bool(plain))

    def _name(self, conversation: int) -> str:
        name = self._names.get(conversation)
        if name is None:
            (name,) = self._segment.execute(
                "SELECT name FROM catalogue.conversations WHERE number = ?", (conversation,)
            ).fetchone()
            self._names[conversation] = name
        return name

    def _behind(self, key: ChunkKey, lowest: int, highest: int) -> int | None:
        """Return the place after a chunk that is between these places, which is so of one that a page ended with."""
        row = self._segment.execute(
            "SELECT id FROM chunks WHERE seq = ? AND number = ? AND id BETWEEN ? AND ?"
            " AND conversation = (SELECT number FROM catalogue.conversations WHERE name = ?)",
            (key.seq, key.number, lowest, highest, key.conversation_id),
        ).fetchone()
        if row is None:
            return None
        (after,) = self._segment.execute("SELECT min(id) FROM chunks WHERE id > ?", row).fetchone()
        return int(after) if after is not None else highest + 1

    def _first_below(self, key: ChunkKey, lowest: int, highest: int) -> int:
        """Return the first of these places of a part whose chunk's key is below the given one; one more: none is."""
        first = lowest
        while lowest <= highest:
            row = self._segment.execute(
                "SELECT k.id, k.ts, c.name, k.seq, k.number FROM chunks AS k CROSS JOIN catalogue.conversations AS c"
                " ON c.number = k.conversation WHERE k.id BETWEEN ? AND ? ORDER BY k.id DESC LIMIT 1",
                (first, middle := (lowest + highest) // 2),
            ).fetchone()
            if ChunkKey(*row[1:]) < key:
                highest = row[0] - 1
            else:
                lowest = middle + 1
        return lowest


@contextmanager
def unchanged(segment: sqlite3.Connection) -> Iterator[None]:
    """Have a segment, and the catalogue, as they are now, whatever others write meanwhile."""
    segment.execute("BEGIN")
    try:
        yield
    finally:
        if segment.in_transaction:
            segment.execute("COMMIT")


def _spans(row: Sequence[Any], pieces: Sequence[int] | None) -> list[tuple[int, int]] | None:
    """Return where some of a chunk's pieces lie in the stream, or all of them; None when that is not known."""
    begin, size, cuts = row[6], row[7], row[9]
    if cuts is None:
        return None
    if not cuts or pieces is None:
        return [(begin, begin + size)]
    places = [0, *array("H", cuts), size]
    return [(begin + places[at], begin + places[at + 1]) for at in pieces]


def _first_of(ts: int) -> ChunkKey:
    """Return the key that is not above any chunk of a time, and above all of earlier ones."""
    return ChunkKey(ts, "", 0, 0)


def _open(opened: list[tuple[Candidate, Iterator[Candidate]]], candidates: Iterator[Candidate]) -> None:
    first = next(candidates, None)
    if first is not None:
        opened.append((first, candidates))
