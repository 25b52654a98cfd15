"""Candidates of one segment of the SQLite index: its chunks that may match, the newest first.

Rules of this file: nothing is written. The lists of a part say which of its pieces hold what is asked for; those whose
bytes do not are left out, many at a time; what is then left is looked up.
"""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import orjson

from blockpty.model.block import Block
from blockpty.search.index import Candidate, ChunkKey
from blockpty.search.overview import unpacked
from blockpty.search.planner import Plan
from blockpty.search.sqlite_segment import SHIFT, damaged
from blockpty.search.sqlite_terms import conditions, ways_of
from blockpty.search.text import CHUNK

if TYPE_CHECKING:
    from blockpty.search.sqlite_lists import Numbers
    from blockpty.search.sqlite_pieces import Places

# Pieces that are looked at together: at first few, since what is found may be enough, and more when nothing is.
_TOGETHER: Final = (8, 256)
_BLOCK: Final = (
    " CROSS JOIN catalogue.blocks AS b ON b.conversation = k.conversation AND b.seq = k.seq"
    " CROSS JOIN catalogue.conversations AS c ON c.number = k.conversation"
)


class Reading:
    """Chunks of one segment that may match, the greatest keys first, all below the given one.

    `held`: which pieces of a part the lists name, as an earlier reading for this plan has found; parts do not change.
    After `deadline` a candidate says how far was looked, and `late` is set: then no more than that should be asked.
    """

    def __init__(
        self, segment: sqlite3.Connection, plan: Plan, below: ChunkKey | None, held: dict[int, Numbers],
        deadline: float = math.inf,
    ) -> None:  # fmt: skip
        self._deadline = deadline
        self.late = False
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
        base = part << SHIFT
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
        if part not in self._held:
            self._held[part] = self._holding(part, count)
        pieces = self._held[part]
        pieces = pieces[pieces.searchsorted(lowest - base) : pieces.searchsorted(highest - base, side="right")]
        yield from self._of_pieces(base, pieces)

    def _of_pieces(self, base: int, pieces: Numbers) -> Iterator[Candidate]:
        together = _TOGETHER[0]
        places: Places | None = None
        while len(pieces):
            if places is None or pieces[0] >= places.end:
                places = self._row_of(base, int(pieces[0]))
            taken = places.whole(pieces, min(together, int(pieces.searchsorted(places.end))))
            seeming = self._seeming(places, pieces[:taken])
            self.late = self.late or monotonic() >= self._deadline
            found = False
            for row, numbers in self._looked_up(base, seeming):
                candidate = self._candidate(row, _spans(row, numbers))
                if candidate is not None:
                    found = True
                    yield candidate
            if self.late and not found:
                for row, _ in self._looked_up(base, pieces[taken - 1 : taken].tolist(), all_of_them=True):
                    candidate = self._candidate(row, [])
                    if candidate is not None:
                        yield candidate
            # What is found may be enough.
            together = _TOGETHER[0] if 2 * len(seeming) > taken else min(2 * together, _TOGETHER[1])
            pieces = pieces[taken:]

    def _row_of(self, base: int, piece: int) -> Places:
        from blockpty.search.sqlite_pieces import Places

        first, data = self._segment.execute(
            "SELECT id - ?1, data FROM places WHERE id <= ?1 + ?2 ORDER BY id DESC LIMIT 1", (base, piece)
        ).fetchone() or (0, b"")
        try:
            places = Places(first, data)
            if not places.first <= piece < places.end:
                raise ValueError("a place is missing")
        except ValueError as problem:
            raise damaged(problem) from None
        return places

    def _holding(self, part: int, count: int) -> Numbers:
        from blockpty.search.sqlite_lists import all_of, holding

        base = part << SHIFT

        def ask(low: int, high: int) -> Sequence[tuple[int, bytes]]:
            # What is before the first of them may go on with it.
            return self._segment.execute(
                "SELECT id - ?1, data FROM lists WHERE id BETWEEN"
                " (SELECT ifnull(max(id), ?1) FROM lists WHERE id BETWEEN ?1 AND ?2) AND ?3",
                (base, base + low, base + high),
            ).fetchall()

        try:
            return holding(self._ways, count, ask) if self._ways else all_of(count)
        except ValueError as problem:
            raise damaged(problem) from None

    def _seeming(self, places: Places, pieces: Numbers) -> list[int]:
        """Return those that may match, in order, as far as their bytes tell."""
        if self._seems is None:
            every: list[int] = pieces.tolist()
            return every
        found, groups = places.groups(pieces)
        numbers = [number for group in groups for number in group.numbers]
        seeming = self._seems(
            [(self._name(group.conversation), group.spans) for group in groups],
            [kind for group in groups for kind in group.kinds],
        )
        return sorted([*found, *(numbers[at] for at in seeming)])

    def _looked_up(
        self, base: int, pieces: Sequence[int], *, all_of_them: bool = False
    ) -> Iterator[tuple[tuple[Any, ...], list[int]]]:
        """Yield the chunks of these pieces that the filters admit, or all, with the numbers of the pieces in them."""
        where = [] if all_of_them else self._where
        rows = self._segment.execute(
            "SELECT f.value, k.id, k.ts, k.conversation, k.seq, k.number, k.begin, k.size, k.cuts"
            " FROM json_each(?) AS f CROSS JOIN chunks AS k ON k.id = (SELECT max(id) FROM chunks WHERE id <= f.value)"
            + (_BLOCK if where else "") + " WHERE 1" + "".join(f" AND {one}" for one in where) + " ORDER BY f.key",
            [orjson.dumps([base + piece for piece in pieces]).decode(), *(self._values if where else ())],
        ).fetchall() if pieces else []  # fmt: skip
        at = 0
        while at < len(rows):
            row, numbers = rows[at], []
            while at < len(rows) and rows[at][1] == row[1]:
                numbers.append(rows[at][0] - row[1])
                at += 1
            yield row[1:], numbers

    def _candidate(self, row: Sequence[Any], spans: list[tuple[int, int]] | None) -> Candidate | None:
        """Return the candidate of a chunk; None when its block was dropped."""
        _, ts, conversation, seq, number, begin, size, _ = row
        if self._last[:2] != (conversation, seq):
            found = self._segment.execute(
                "SELECT record FROM catalogue.blocks WHERE conversation = ? AND seq = ?", (conversation, seq)
            ).fetchone()
            self._last = (conversation, seq, None if found is None else unpacked(found[0]))
        block = self._last[2]
        if block is None:
            return None
        key = ChunkKey(ts, self._name(conversation), seq, number)
        return Candidate(key, begin, begin + size, block, pieces=spans)

    def _name(self, conversation: int) -> str:
        name = self._names.get(conversation)
        if name is None:
            row = self._segment.execute(
                "SELECT name FROM catalogue.conversations WHERE number = ?", (conversation,)
            ).fetchone()
            if row is None:
                raise sqlite3.DatabaseError("a place names a conversation that is not there")
            name = self._names[conversation] = row[0]
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


def _spans(row: Sequence[Any], pieces: Sequence[int]) -> list[tuple[int, int]] | None:
    """Return where some of a chunk's pieces lie in the stream; None when that is not known."""
    begin, size, cuts = row[5], row[6], row[7]
    if cuts is None:
        return None
    places = [0, *array("H", cuts), size]
    return [(begin + places[at], begin + places[at + 1]) for at in pieces]


def _first_of(ts: int) -> ChunkKey:
    """Return the key that is not above any chunk of a time, and above all of earlier ones."""
    return ChunkKey(ts, "", 0, 0)


def _open(opened: list[tuple[Candidate, Iterator[Candidate]]], candidates: Iterator[Candidate]) -> None:
    first = next(candidates, None)
    if first is not None:
        opened.append((first, candidates))
