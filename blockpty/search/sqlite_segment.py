"""A segment of the SQLite index: the chunks of a span of time, and which three characters in a row they hold.

Rules of this file: one database, and how chunks lie in it; which segments there are is not known here. Chunks lie in
runs, in each of which their keys ascend. A place is the number of its run and a number that counts the pieces of the
run's chunks without gaps: then the lists of the full-text table take a byte from one place to the next, where places
made of the time took two or three. It counts down, so that the newest is what the full-text table reads first: in the
other direction, it reads pages of each list to their ends before it has its first row. A chunk joins the run that it
continues best, so that there are as many runs as there are conversations at the same time.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from blockpty.search.index import Candidate, ChunkKey, Entry
from blockpty.search.overview import unpacked
from blockpty.search.plan import Plan
from blockpty.search.sqlite_terms import conditions, indexed, match_of
from blockpty.search.text import CHUNK, Window

# Terms are gathered up to so many bytes before they are written: all those of a batch, else they are merged at once.
_GATHERED: Final = 32 * 1024 * 1024

SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS runs (
    run INTEGER PRIMARY KEY, pieces INTEGER NOT NULL,
    ts INTEGER NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL, number INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS chunks (
    id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, conversation INTEGER NOT NULL, seq INTEGER NOT NULL,
    number INTEGER NOT NULL, begin INTEGER NOT NULL, size INTEGER NOT NULL, plain INTEGER NOT NULL, cuts BLOB
);
CREATE UNIQUE INDEX IF NOT EXISTS chunks_by_block ON chunks (conversation, seq, number);
CREATE VIRTUAL TABLE IF NOT EXISTS grams USING fts5
    (text, content='', detail=none, columnsize=0, tokenize="trigram case_sensitive 1");
INSERT INTO grams (grams, rank) VALUES ('hashsize', {_GATHERED});
"""
_RUN_SHIFT: Final = 32
# Chunks that continue none of so many runs are taken in the order in which they come.
_MOST_RUNS: Final = 64
_LOOSE: Final = 0
# Chunks that may be left out one after another, before whoever asks is given one and can see how much time is left.
_LEFT_OUT: Final = 64


def add_chunks(segment: sqlite3.Connection, entries: Sequence[Entry], numbers: Mapping[str, int]) -> None:
    """Add chunks that are not there; one that is holds the same text, since its cuts depend on the record alone."""
    fresh = sorted(_fresh(segment, entries, numbers), key=lambda one: one[0])
    runs = _runs(segment)
    chunks, texts = [], []
    for key, window in fresh:
        run = _joined(runs, key)
        pieces = window.pieces()
        count = len(pieces) + (runs[run][0] if run in runs else 0)
        place = ((run + 1) << _RUN_SHIFT) - count
        chunks.append(
            (place, key.ts, numbers[key.conversation_id], key.seq, key.number, window.begin,
             window.end - window.begin, bool(window.number) and window.plain, _cuts(window, pieces))
        )  # fmt: skip
        texts += [(place + at, indexed(piece.folded)) for at, piece in enumerate(pieces)]
        runs[run] = (count, key)
    texts.sort(key=lambda text: text[0])
    segment.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", chunks)
    segment.executemany("INSERT INTO grams (rowid, text) VALUES (?, ?)", texts)
    segment.executemany(
        "REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", [(run, count, *key) for run, (count, key) in runs.items()]
    )


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


def _runs(segment: sqlite3.Connection) -> dict[int, tuple[int, ChunkKey]]:
    """Return the runs: how many pieces each has, and the key that it ends with."""
    return {run: (count, ChunkKey(*key)) for run, count, *key in segment.execute("SELECT * FROM runs")}


def _joined(runs: Mapping[int, tuple[int, ChunkKey]], key: ChunkKey) -> int:
    """Return the run that a chunk belongs to: of those that end before it the one that ends last."""
    before = [(last, run) for run, (_, last) in runs.items() if last < key and run != _LOOSE]
    if before:
        return max(before)[1]
    return len(runs) + (_LOOSE not in runs) if len(runs) < _MOST_RUNS else _LOOSE


def _cuts(window: Window, pieces: Sequence[Window]) -> bytes | None:
    """Return where the pieces of a chunk begin in it, but for the first; None: its bytes are not all that it sees."""
    if not window.number or len(window.raw) > window.end - window.begin:
        return None
    return array("H", [piece.begin - window.begin for piece in pieces[1:]]).tobytes()


class Reading:
    """Chunks of one segment that may match, the greatest keys first, all below the given one."""

    def __init__(self, segment: sqlite3.Connection, plan: Plan, below: ChunkKey | None) -> None:
        self._segment = segment
        self._match = match_of(plan)
        self._where, self._values = conditions(plan.query.filters)
        until, since = plan.query.filters.until, plan.query.filters.since
        if until is not None:
            below = min(below or _first_of(until), _first_of(until))
        self._below = below
        self._since = _first_of(since) if since is not None else None
        self._only = plan.query.filters.conversation_id
        self._seems = plan.seems
        self._last: tuple[bytes, Any] = (b"", None)

    def candidates(self) -> Iterator[Candidate]:
        """Yield them."""
        runs = _runs(self._segment)
        opened: list[tuple[Candidate, Iterator[Candidate]]] = []
        if runs.pop(_LOOSE, None) is not None:
            loose = sorted(self._of_run(_LOOSE, None), key=lambda one: one.key, reverse=True)
            _open(opened, iter([one for one in loose if self._below is None or one.key < self._below]))
        waiting = sorted((last, run, count) for run, (count, last) in runs.items())
        while True:
            # A run is opened when its last chunk may be the next one.
            while waiting and (not opened or waiting[-1][0] > max(one.key for one, _ in opened)):
                _, run, count = waiting.pop()
                _open(opened, self._of_run(run, count))
            if not opened:
                return
            at = max(range(len(opened)), key=lambda at: opened[at][0].key) if len(opened) > 1 else 0
            found, others = opened.pop(at)
            yield found
            _open(opened, others)

    def _of_run(self, run: int, count: int | None) -> Iterator[Candidate]:
        """Yield what a run of so many pieces has, newest first; None: it is in no order, and all of it is read."""
        lowest, highest = run << _RUN_SHIFT, ((run + 1) << _RUN_SHIFT) - 1
        if count is not None:
            lowest = highest - count + 1
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
        if self._match:
            source = "grams AS f CROSS JOIN chunks AS k ON k.id = (SELECT max(id) FROM chunks WHERE id <= f.rowid)"
            where, values, place = ["grams MATCH ?"], [self._match], "f.rowid"
        else:
            source, where, values, place = "chunks AS k", [], [], "k.id"
        where += [f"{place} BETWEEN ? AND ?", *self._where]
        rows = self._segment.execute(
            f"SELECT {place}, k.id, k.ts, c.name, k.seq, k.number, k.begin, k.size, k.plain, k.cuts, b.record"
            f" FROM {source}"
            " CROSS JOIN catalogue.blocks AS b ON b.conversation = k.conversation AND b.seq = k.seq"
            " CROSS JOIN catalogue.conversations AS c ON c.number = k.conversation"
            f" WHERE {' AND '.join(where)} ORDER BY {place}",
            [*values, lowest, highest, *self._values],
        )
        left_out = 0
        try:
            row = rows.fetchone()
            while row is not None:
                pieces, following = [row[0] - row[1]], rows.fetchone()
                while following is not None and following[1] == row[1]:
                    pieces.append(following[0] - row[1])
                    following = rows.fetchone()
                spans = _spans(row, pieces if self._match else None)
                seeming = self._seeming(row, spans)
                if seeming is None or seeming or left_out >= _LEFT_OUT:
                    left_out = 0
                    yield self._candidate(row, seeming or spans)
                else:
                    left_out += 1
                row = following
        finally:
            rows.close()

    def _seeming(self, row: Sequence[Any], spans: list[tuple[int, int]] | None) -> list[tuple[int, int]] | None:
        """Return the spans that may match, as far as can be told; None when it cannot."""
        if spans is None or self._seems is None:
            return spans
        return self._seems(row[3], spans, bool(row[8]))

    def _candidate(self, row: Sequence[Any], spans: list[tuple[int, int]] | None) -> Candidate:
        _, _, ts, name, seq, number, begin, size, plain, _, record = row
        if record != self._last[0]:
            self._last = (record, unpacked(record))
        key = ChunkKey(ts, name, seq, number)
        return Candidate(key, begin, begin + size, self._last[1], pieces=spans, plain=bool(plain))

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
        """Return the first of these places of a run whose chunk's key is below the given one; one more: none is."""
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
