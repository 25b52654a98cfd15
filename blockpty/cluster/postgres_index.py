"""The index of many hosts in PostgreSQL: what each has written, found by all of them.

Rules of this file: what is added is added by the owner of the conversation, or not at all; a shard that does not answer
in time is named, and the others' candidates are returned; nothing here knows what matches.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Final

import orjson
import psycopg

from blockpty.cluster import activity, statements
from blockpty.cluster.database import Connection, Database
from blockpty.cluster.hosts import Hosts
from blockpty.cluster.leases import HELD
from blockpty.cluster.migration import migrate, server_name
from blockpty.cluster.partitions import DatabaseCall, Learnt, Newest, Row, Stored, fetched, key_of
from blockpty.cluster.terms import terms_of, terms_of_block
from blockpty.model.block import Block
from blockpty.search.index import Candidate, ChunkKey, IndexEntry, IndexUnavailable, IndexWatermark, Page, Positions
from blockpty.search.overview import Asked, Overview
from blockpty.search.planner import Plan
from blockpty.search.query import COMMAND

# How long a shard may take, as a share of the time that is left; what the others have is worth more.
_SHARE: Final = 0.5
# So long a shard may take in any case, if there is as much time. Who had less may well answer the next time.
_FAIR_SECONDS: Final = 0.5
# A shard that did not answer is left out for so long, and twice as long each further time. (One that refuses is not.)
_PAUSE_SECONDS: Final = 2.0
_MAX_PAUSE_SECONDS: Final = 30.0
# Positions that another host may have changed are read again after so long.
_POSITIONS_SECONDS: Final = 1.0

_POSITION_COLUMNS: Final = "lines, seq, settled, open_seq, open_number, open_cursor"
_ADD_BLOCKS: Final = f"""
WITH {HELD}
INSERT INTO block (conversation, seq, ts, home, running, cwd, exit_status, duration_ms, author, kind, record)
SELECT new.* FROM unnest(
    %(conversation)s::text[], %(seq)s::int[], %(ts)s::bigint[], %(home)s::text[], %(running)s::bool[],
    %(cwd)s::text[], %(exit_status)s::int[], %(duration_ms)s::bigint[], %(author)s::text[], %(kind)s::text[],
    %(record)b::bytea[]
) AS new (conversation, seq, ts, home, running, cwd, exit_status, duration_ms, author, kind, record)
JOIN held ON held.conversation = new.conversation
"""
_ADD_CHUNKS: Final = f"""
WITH {HELD}
INSERT INTO chunk (conversation, seq, ts, number, begins, own, terms, folded, raw)
SELECT new.conversation, new.seq, new.ts, new.number, new.begins, new.own, new.terms::int[], new.folded, new.raw
FROM unnest(
    %(conversation)s::text[], %(seq)s::int[], %(ts)s::bigint[], %(number)s::int[], %(begins)s::bigint[], %(own)s::int[],
    %(terms)s::text[], %(folded)b::text[], %(raw)b::bytea[]
) AS new (conversation, seq, ts, number, begins, own, terms, folded, raw)
JOIN held ON held.conversation = new.conversation
ON CONFLICT DO NOTHING
"""
_POSITION: Final = f"""
WITH {HELD}
UPDATE conversation SET lines = %(lines)s, seq = %(seq)s, settled = %(settled)s, open_seq = %(open_seq)s,
    open_number = %(open_number)s, open_cursor = %(open_cursor)s
FROM held WHERE conversation.conversation = held.conversation
"""


class PostgresIndex:
    """An index in PostgreSQL; implements `Index`. Nothing is connected until something is asked.

    Args:
        database: the coordinator, or the only server.
        shards: those that the tables are to be made on, if they are not there yet.
        hosts: what this home is among the others.
    """

    # To ask again costs more than some more of them do.
    page = 64
    batch_bytes = 4 * 1024 * 1024

    def __init__(self, database: Database, hosts: Hosts, shards: Sequence[Database] = ()) -> None:
        self.database = database
        self._shards = shards
        self.hosts = hosts
        # Of few rows the planner would read all, with what they hold, rather than their index; and it would put in
        # order here what a shard finds, so that the shard had to find everything.
        self._reading = Database(database.url, {"enable_sort": "off", "enable_seqscan": "off"})
        self._parts: list[str] | None = None
        self._took = False
        self._pool: ThreadPoolExecutor | None = None
        self._paused: dict[str, tuple[float, float]] = {}
        self._addresses: dict[str, str] = {}
        self._known: tuple[float, Positions] | None = None
        # From one page of a search to the next.
        self._learnt: tuple[Plan | None, dict[str, Learnt]] = (None, {})
        self._lock = threading.RLock()

    # Writing

    def add(self, entries: Sequence[IndexEntry], positions: Mapping[str, IndexWatermark]) -> None:
        """Take what belongs to conversations that this home owns; others stay unindexed."""
        known = self.positions()
        names = {entry.conversation_id for entry in entries} | set(positions)

        def work(connection: Connection) -> None:
            self.hosts.renew(connection)
            self._took = True
            leases = self.hosts.claim(connection, names)
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock_shared(hashtext(%s))", (self.hosts.home,))
                held = f"WITH {HELD} SELECT conversation FROM held"
                ours = {row[0] for row in connection.execute(held.encode(), self.hosts.leases.named(leases)).fetchall()}
                self.hosts.lost(lease for lease in leases if lease.conversation not in ours)
                # Locked by that statement until the transaction ends, so no other host takes them over before.
                fence = self.hosts.leases.named([lease for lease in leases if lease.conversation in ours])
                written = [entry for entry in entries if entry.conversation_id in ours]
                self._add_entries(connection, fence, written, known)
                activity.count(connection, self.hosts.home, written)
                for name, position in positions.items():
                    if name in ours:
                        one = self.hosts.leases.named([lease for lease in leases if lease.conversation == name])
                        connection.execute(_POSITION.encode(), {**one, **position._asdict()})
            with self._lock:
                if self._known is not None:
                    of = {**self._known[1].of, **{name: positions[name] for name in positions if name in ours}}
                    self._known = (time.monotonic(), Positions(self._known[1].generation, of))

        with self._available():
            self.database.run(work)

    def _add_entries(
        self, connection: Connection, fence: dict[str, object], entries: Sequence[IndexEntry], known: Positions
    ) -> None:
        blocks = {(entry.conversation_id, entry.block.seq): entry.block for entry in entries}
        by_name: dict[str, list[int]] = {}
        for name, seq in blocks:
            by_name.setdefault(name, []).append(seq)
        for name, seqs in by_name.items():
            # Also one that the coordinator does not know: a shard may have kept what it lost.
            connection.execute("DELETE FROM block WHERE conversation = %s AND seq = ANY(%s)", (name, seqs))
        for entry in entries:
            before = known.of.get(entry.conversation_id, IndexWatermark())
            if entry.chunks and entry.block.seq <= max(before.seq, before.open_seq):
                numbers = [entry.chunks[0].number, entry.chunks[-1].number]
                connection.execute(
                    "DELETE FROM chunk WHERE conversation = %s AND seq = %s AND number BETWEEN %s AND %s",
                    (entry.conversation_id, entry.block.seq, *numbers),
                )
        if blocks:
            connection.execute(_ADD_BLOCKS.encode(), {**fence, **self._block_columns(blocks)})
        if any(entry.chunks for entry in entries):
            connection.execute(_ADD_CHUNKS.encode(), {**fence, **_chunk_columns(entries)})

    def _block_columns(self, blocks: Mapping[tuple[str, int], Block]) -> dict[str, list[Any]]:
        return {
            "conversation": [name for name, _ in blocks],
            "seq": [seq for _, seq in blocks],
            "ts": [block.ts_begin for block in blocks.values()],
            "home": [self.hosts.home] * len(blocks),
            "running": [block.span[1] is None for block in blocks.values()],
            "cwd": [None if block.cwd is None else statements.storable(block.cwd) for block in blocks.values()],
            "exit_status": [block.exit_status for block in blocks.values()],
            "duration_ms": [block.duration_ms for block in blocks.values()],
            "author": [block.author for block in blocks.values()],
            "kind": [block.kind for block in blocks.values()],
            "record": [orjson.dumps(block.to_dict()) for block in blocks.values()],
        }

    def forget(self, conversation_id: str) -> None:
        """Drop a conversation of this home."""

        def work(connection: Connection) -> None:
            with connection.transaction():
                # As `add` does it, in its order: else one waits for the other.
                connection.execute("SELECT pg_advisory_xact_lock_shared(hashtext(%s))", (self.hosts.home,))
                activity.forget(connection, self.hosts.home, conversation_id)
                connection.execute(
                    "UPDATE conversation SET lines = NULL WHERE conversation = %s AND home = %s",
                    (conversation_id, self.hosts.home),
                )
            for table in ("chunk", "block"):
                connection.execute(
                    f"DELETE FROM {table} WHERE conversation = %s".encode(), (conversation_id,)
                )

        with self._available():
            self.database.run(work)
        self._forget_positions()

    def drop(self) -> None:
        """Drop what this home has written."""
        home = self.hosts.home

        def work(connection: Connection) -> None:
            # Nothing new is added until the old is gone.
            connection.execute("SELECT pg_advisory_lock(hashtext(%s))", (home,))
            try:
                # First, and for everybody to see: who finds rows missing then knows why.
                with connection.transaction():
                    connection.execute(
                        "UPDATE home SET generation = %s WHERE home = %s", (secrets.token_hex(8), home)
                    )
                    connection.execute("UPDATE conversation SET lines = NULL WHERE home = %s", (home,))
                    activity.drop(connection, home)
                names = connection.execute("SELECT conversation FROM conversation WHERE home = %s", (home,)).fetchall()
                for (name,) in names:
                    for table in ("chunk", "block"):
                        connection.execute(f"DELETE FROM {table} WHERE conversation = %s".encode(), (name,))
            finally:
                if not connection.closed:
                    connection.execute("SELECT pg_advisory_unlock(hashtext(%s))", (home,))

        with self._available():
            self.database.run(work)
        self._forget_positions()

    # Asking

    def positions(self) -> Positions:
        """Return how far the conversations of this home are indexed."""
        with self._available(), self._lock:
            if self._known is None or time.monotonic() - self._known[0] > _POSITIONS_SECONDS:
                self.database.run(self.hosts.renew)
                self._known = (time.monotonic(), self.database.run(self._read_positions))
            return self._known[1]

    def _read_positions(self, connection: Connection) -> Positions:
        # Nothing is both newly indexed and of an old generation: `drop` changes both in one transaction.
        rows = connection.execute(
            f"SELECT home.generation, conversation.conversation, {_POSITION_COLUMNS} FROM home LEFT JOIN conversation"
            " ON conversation.home = home.home AND lines IS NOT NULL WHERE home.home = %s".encode(),
            (self.hosts.home,),
        ).fetchall()
        return Positions(rows[0][0], {row[1]: IndexWatermark(*row[2:]) for row in rows if row[1] is not None})

    def _forget_positions(self) -> None:
        with self._lock:
            self._known = None

    def candidates(self, plan: Plan, below: ChunkKey | None, limit: int, timeout_seconds: float) -> Page:
        """Return candidates of all homes; shards that do not answer in time are named."""
        with self._available():
            parts = self._asked(plan.query.filters.conversation_id)
            rows, missing = self._ask_all(plan, below, limit, parts, timeout_seconds)
            # Last: rows that a drop took away were taken after this had changed.
            generation = self.database.run(self._read_generation)
        if self._known is not None and generation != self._known[1].generation:
            self._forget_positions()
        # What a part has below its last row is not known, so no part's rows from there on can be put in order.
        full = [key_of(part[-1]) for part in rows.values() if len(part) >= limit]
        floor = max(full, default=None)
        candidates = []
        for part, found in rows.items():
            kept = [row for row in found if floor is None or key_of(row) >= floor]
            others = [key_of(row) for row in kept if row[-1] != self.hosts.home and row[3] != COMMAND]
            stored = Stored(functools.partial(self._fetched, part), others)
            candidates += [self._candidate(row, stored) for row in kept]
        candidates.sort(key=lambda candidate: candidate.key, reverse=True)
        return Page(candidates, bool(full), generation, tuple(missing))

    def _fetched(self, part: str, keys: Sequence[ChunkKey]) -> dict[ChunkKey, bytes]:
        with self._available():
            return DatabaseCall(self._reading, lambda connection: fetched(connection, keys, part)).run()

    def _read_generation(self, connection: Connection) -> str:
        row = connection.execute("SELECT generation FROM home WHERE home = %s", (self.hosts.home,)).fetchone()
        return str(row[0]) if row else ""

    def _asked(self, conversation_id: str | None) -> list[str]:
        """Return the parts of the tables that can have candidates."""
        assert self._parts is not None
        if conversation_id is None or self._parts == [""]:
            return self._parts
        count = len(self._parts)

        def work(connection: Connection) -> int:
            row = connection.execute(
                "SELECT number FROM generate_series(0, %s) AS number"
                " WHERE satisfies_hash_partition('chunk'::regclass, %s, number, %s::text)",
                (count - 1, count, conversation_id),
            ).fetchone()
            return int(row[0]) if row else 0

        return [f"_{self.database.run(work)}"]

    def _ask_all(
        self, plan: Plan, below: ChunkKey | None, limit: int, parts: Sequence[str], timeout_seconds: float
    ) -> tuple[dict[str, list[Row]], list[str]]:
        if self._learnt[0] is not plan:
            self._learnt = (plan, {})
        learnt = self._learnt[1]
        return self._ask_parts(
            parts, lambda part: Newest(plan, below, limit, part, learnt.setdefault(part, Learnt())), timeout_seconds
        )

    def _ask_parts(
        self, parts: Sequence[str], work: Callable[[str], Callable[[Connection], list[Row]]], timeout_seconds: float
    ) -> tuple[dict[str, list[Row]], list[str]]:
        """Return what parts say, and the names of those that do not answer; IndexUnavailable when none does."""
        share = timeout_seconds if parts == [""] else max(timeout_seconds * _SHARE, _FAIR_SECONDS)
        allowed = min(timeout_seconds, share)
        now = time.monotonic()
        missing = [self._name(part) for part in parts if self._paused.get(part, (0.0, 0.0))[0] > now]
        calls = {part: DatabaseCall(self._reading, work(part)) for part in parts if self._name(part) not in missing}
        futures = {part: self._threads().submit(call.run) for part, call in calls.items()}
        wait(futures.values(), timeout=allowed)
        rows: dict[str, list[Row]] = {}
        for part, future in futures.items():
            if not future.done():
                calls[part].abandon()
                if allowed >= _FAIR_SECONDS:
                    pause = min(max(_PAUSE_SECONDS, 2 * self._paused.get(part, (0.0, 0.0))[1]), _MAX_PAUSE_SECONDS)
                    self._paused[part] = (time.monotonic() + pause, pause)
                missing.append(self._name(part))
                continue
            try:
                rows[part] = future.result()
                self._paused.pop(part, None)
            except psycopg.Error:
                missing.append(self._name(part))
        if not rows:
            # Where the coordinator is the one that does not answer, this says so.
            self.database.run(self._read_generation)
            self._forget_positions()
            raise IndexUnavailable("nothing of the catalogue answers", missing)
        return rows, missing

    def _name(self, part: str) -> str:
        return server_name(int(part[1:])) if part else self.database.name

    def overview(self, asked: Asked) -> Overview:
        """Return what all hosts have done, as far as it is indexed."""
        with self._available():
            seen = self.database.run(lambda connection: activity.seen(connection, asked))
            homes = {name: home for name, home, _ in (*seen.conversations, *seen.blocks)}
            hosts = {name: self._address(home) for name, home in homes.items() if home != self.hosts.home}
        return Overview(
            [(name, one.blocks, one.failed, one.last_ts, _block(one.record)) for name, _, one in seen.conversations],
            [(name, _block(record)) for name, _, record in seen.blocks],
            seen.statuses,
            seen.total,
            sum(seen.statuses.values()),
            hosts,
        )

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(4 * len(self._parts or [""]), "blockpty-shard")
            return self._pool

    def _candidate(self, row: Row, stored: Stored) -> Candidate:
        *_, begins, own, record, home = row
        key, block = key_of(row), _block(record)
        if home == self.hosts.home:
            return Candidate(key, begins, begins + own, block)
        return Candidate(key, begins, begins + own, block, functools.partial(stored.of, key), self._address(home))

    def _address(self, home: str) -> str:
        with self._lock:
            if home not in self._addresses:
                rows = self.database.run(
                    lambda connection: connection.execute("SELECT home, address FROM home").fetchall()
                )
                self._addresses = {name: address or name for name, address in rows}
            return self._addresses.get(home, home)

    # The connection to it all

    @contextlib.contextmanager
    def _available(self) -> Iterator[None]:
        try:
            self._prepare()
            yield
        except psycopg.Error as problem:
            self._forget_positions()
            raise IndexUnavailable(str(problem).strip(), (self.database.name,)) from problem

    def _prepare(self) -> None:
        """Make the tables and say who we are, when that has not been done."""
        with self._lock:
            if self._parts is not None:
                return
            count = migrate(self.database, self._shards)
            self.database.run(self._appear)
            self._parts = [f"_{number}" for number in range(count)] or [""]

    def _appear(self, connection: Connection) -> None:
        connection.execute(
            "INSERT INTO home VALUES (%s, %s, %s) ON CONFLICT (home) DO UPDATE SET address = excluded.address",
            (self.hosts.home, self.hosts.address, secrets.token_hex(8)),
        )

    def close(self) -> None:
        """Release the leases that this index has taken, and close the connections."""
        with contextlib.suppress(psycopg.Error):
            if self._took:
                self.database.run(self.hosts.release)
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        self.database.close()
        self._reading.close()
        for shard in self._shards:
            shard.close()


def _block(record: bytes) -> Block:
    return Block.from_dict(orjson.loads(record))


def _chunk_columns(entries: Sequence[IndexEntry]) -> dict[str, list[Any]]:
    pairs = [(entry, chunk) for entry in entries for chunk in entry.chunks]
    terms = []
    for entry in entries:
        of_block = terms_of_block(entry.conversation_id, entry.block.ts_begin)
        # As PostgreSQL writes an array: those of many chunks have many lengths, and no array of arrays holds them.
        terms += [f"{{{str(sorted(of_block | terms_of(chunk.folded)))[1:-1]}}}" for chunk in entry.chunks]
    return {
        "conversation": [entry.conversation_id for entry, _ in pairs],
        "seq": [entry.block.seq for entry, _ in pairs],
        "ts": [entry.block.ts_begin for entry, _ in pairs],
        "number": [chunk.number for _, chunk in pairs],
        "begins": [chunk.begin for _, chunk in pairs],
        "own": [chunk.end - chunk.begin for _, chunk in pairs],
        "terms": terms,
        "folded": [statements.storable(chunk.folded) for _, chunk in pairs],
        "raw": [chunk.raw for _, chunk in pairs],
    }
