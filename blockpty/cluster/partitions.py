"""Queries to one part of the tables (a shard, or all of them): its newest candidates, and the bytes of some.

Rules of this file: a part is asked on one connection, in a thread, and can be given up from another; what it costs
depends on how many candidates are wanted, not on how much there is.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import psycopg
from msgspec import Struct

from blockpty.cluster import statements
from blockpty.cluster.database import Connection, Database
from blockpty.search.index import ChunkKey
from blockpty.search.planner import Plan

T = TypeVar("T")

# How many chunks are looked at first, for each candidate that is wanted.
_FIRST: Final = 4
# After that as many as hold this many times what is still wanted, if they are like those before.
_ENOUGH: Final = 2
# Of a text that is so rare that more than this many times the first ones would be looked at, all candidates are named.
_RARE: Final = 64
# Candidates of other hosts whose bytes are fetched together; then twice as many, up to the second.
_FETCHED_FIRST: Final = 8
_FETCHED_TOGETHER: Final = 128

Row = tuple[Any, ...]


def key_of(row: Row) -> ChunkKey:
    """Return the place of a candidate."""
    return ChunkKey(*row[:4])


class DatabaseCall(Generic[T]):
    """One piece of work with a database in a thread, which can be given up from another."""

    def __init__(self, database: Database, work: Callable[[Connection], T]) -> None:
        self._database = database
        self._work = work
        self._connection: Connection | None = None
        self._abandoned = False
        self._lock = threading.Lock()

    def run(self) -> T:
        """Return what the work returns; it is safe to do twice. Raises psycopg.Error."""
        try:
            return self._database.run(self._run)
        except psycopg.OperationalError:
            # The coordinator finds out that a shard was restarted when it uses a connection of before; it has a new
            # one now.
            if self._abandoned:
                raise
            return self._database.run(self._run)

    def _run(self, connection: Connection) -> T:
        with self._lock:
            if self._abandoned:
                raise psycopg.OperationalError("given up")
            self._connection = connection
        try:
            return self._work(connection)
        finally:
            with self._lock:
                self._connection = None

    def abandon(self) -> None:
        """Have `run` end now, without waiting for the server: its connection is cut."""
        with self._lock:
            self._abandoned = True
            if self._connection is not None and not self._connection.closed:
                cut = socket.socket(fileno=os.dup(self._connection.fileno()))
                with contextlib.suppress(OSError):
                    cut.shutdown(socket.SHUT_RDWR)
                cut.close()


class Learnt(Struct):
    """Knowledge of a part from the pages before; it need not be true any more.

    Attributes:
        spacing: milliseconds from one chunk to the next; 0: not known.
        rate: candidates in a chunk.
    """

    spacing: float = 0.0
    rate: float = 0.0


class Newest(Struct, frozen=True):
    """Names the newest candidates of a part, below a key; a call of it asks.

    The index of what chunks hold knows no order. So it is asked for the candidates of a time in which only some chunks
    came, and of the time before that, until there are enough. How long such a time is, follows from how close
    together the chunks before it were, and how many of them were candidates; it need not be exact.
    """

    plan: Plan
    below: ChunkKey | None
    limit: int
    part: str
    learnt: Learnt

    def __call__(self, connection: Connection) -> list[Row]:
        """Return candidates, the newest first: `limit` of them, or all when there are fewer."""
        ways = statements.ways(self.plan)
        if not ways:
            return _rows(connection, *statements.walk(self.plan, self.below, self.limit, self.part))
        # Else the shard gets a transaction, and of its end, for each of the statements.
        with connection.transaction():
            return self._of_spans(connection, ways)

    def _of_spans(self, connection: Connection, ways: Sequence[Sequence[int]]) -> list[Row]:
        found: list[Row] = []
        last, learnt = self._last(), self.learnt
        while True:
            wanted = self.limit - len(found)
            chunks = _FIRST * self.limit if not learnt.rate else _ENOUGH * wanted / learnt.rate
            span = self._span(connection, last, chunks)
            rows = _rows(connection, *statements.look_up(self.plan, ways, self.below, span, wanted, self.part))
            found += rows
            if span.first is None or len(rows) >= wanted:
                return found
            assert span.last is not None
            chunks = (span.last - span.first) / learnt.spacing if learnt.spacing else chunks
            learnt.rate = (len(rows) + 1) / max(1.0, chunks)
            if not rows:
                learnt.spacing = 0.0  # as in a time in which nothing was recorded
            last = span.first - 1

    def _span(self, connection: Connection, last: int | None, chunks: float) -> statements.Span:
        """Return the time in which about so many chunks came last."""
        first, since = _FIRST * self.limit, self.plan.query.filters.since
        if chunks > _RARE * first:
            return statements.Span(None, last)
        if last is None or not self.learnt.spacing:
            times = [row[0] for row in _rows(connection, *statements.times(last, first, self.part))]
            if len(times) < first:
                return statements.Span(None, last)
            last, self.learnt.spacing = times[0], (times[0] - times[-1]) / first
        begin = last - int(self.learnt.spacing * chunks)
        return statements.Span(None, last) if since is not None and since >= begin else statements.Span(begin, last)

    def _last(self) -> int | None:
        until, below = self.plan.query.filters.until, self.below
        ends = [*([] if until is None else [until - 1]), *([] if below is None else [below.ts])]
        return min(ends, default=None)


class Stored:
    """Bytes of candidates that other hosts have, fetched as they are asked for, in the order of the candidates."""

    def __init__(self, fetch: Callable[[Sequence[ChunkKey]], dict[ChunkKey, bytes]], keys: Sequence[ChunkKey]) -> None:
        self._fetch = fetch
        self._keys = keys
        self._at = 0
        self._together = _FETCHED_FIRST
        self._bytes: dict[ChunkKey, bytes] = {}

    def of(self, key: ChunkKey) -> bytes | None:
        """Return the bytes of a chunk, None when it has gone; raises IndexUnavailable."""
        while key not in self._bytes and self._at < len(self._keys):
            some = self._keys[self._at : self._at + self._together]
            self._bytes = self._fetch(some)
            self._at += len(some)
            self._together = min(2 * self._together, _FETCHED_TOGETHER)
        return self._bytes.get(key)


def fetched(connection: Connection, keys: Sequence[ChunkKey], part: str) -> dict[ChunkKey, bytes]:
    """Return the bytes of those of these chunks that are there."""
    of = {key[1:]: key for key in keys}
    rows = _rows(connection, *statements.bytes_of(keys, part))
    return {of[row[:3]]: row[3] for row in rows if row[:3] in of}


def _rows(connection: Connection, statement: str, words: dict[str, Any]) -> list[Row]:
    return connection.execute(statement.encode(), words, binary=True).fetchall()
