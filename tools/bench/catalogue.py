"""The catalogue of many hosts: a coordinator and two shards in PostgreSQL, beside a bare `SELECT 1`."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from bench.report import Row, Run, median, percentile, skipped
from bench.search import make_home, many
from blockpty.search.executor import find
from blockpty.search.ingest import batches
from blockpty.search.overview import Asked
from blockpty.search.query import Query
from blockpty.search.records import Records
from blockpty.testing import ManualClock

BENCH = "catalogue"
NOTE = (
    "catalogue: three servers of one machine, their clients beside them; the same corpus and texts as search, from the"
    " call to the result with its lines verified in the record, or, of another host, in the bytes that the shards keep"
)
NOTE_OVERVIEW = "catalogue, overview: of all hosts, on the coordinator and both shards"
NOTE_PROCESSOR = "catalogue, processor time: of the client's thread and all server processes, for a query on average"
NOTE_INDEXING = "catalogue, indexing: cut, numbered, sent through the coordinator and committed, 4 MiB at a time"


def measure(run: Run) -> list[Row]:
    """Start servers, index a home, and ask for it and for another server's."""
    try:
        from tests.support.postgres_servers import Databases, Servers, programs
    except ImportError:
        return [skipped(BENCH, "all of it", "its library is not installed")]
    if programs() is None:
        return [skipped(BENCH, "all of it", "PostgreSQL is not installed")]
    from blockpty.cluster.database import Database
    from blockpty.cluster.hosts import Hosts
    from blockpty.cluster.postgres_index import PostgresIndex

    def index_of(databases: Databases, home: str) -> PostgresIndex:
        hosts = Hosts(home, "host", f"https://{home}:7717")
        return PostgresIndex(Database(databases.url), hosts, [Database(url) for url in databases.shards])

    size = run.megabytes * 1_000_000 if run.megabytes else run.count(20_000_000, 1_000_000)
    home = run.place / "home"
    texts = make_home(home, size, run.place / "blocks.jsonl")
    with Servers() as servers, servers.databases() as databases:
        records, index = Records(home), index_of(databases, "home-1")
        nothing, other = Records(run.place / "empty"), index_of(databases, "home-2")
        try:
            rows = [_indexing(run, index, records, home, _Processor(servers))]
            wanted = run.count(200, 10)
            rows += _round_trips(run, index)
            for what, seen, asked in (("of this host", records, index), ("of another host", nothing, other)):
                rows += _asking(f"newest 100, substring, {what}", seen, asked, texts[:wanted], _Processor(servers))
            rows += _overview(run, other)
        finally:
            for one in (records, index, nothing, other):
                one.close()
    return rows


def _indexing(run: Run, index, records: Records, home: Path, processor: _Processor) -> Row:  # type: ignore[no-untyped-def]
    size = sum(path.stat().st_size for path in home.glob("conversations/*/stream/*"))
    with processor.measured() as taken:
        for batch in batches(records, index.positions().of, index.batch_bytes):
            index.add(batch.entries, batch.positions)
    return Row(
        BENCH, f"indexing {size / 1e6:.0f} MB", size / taken.wall / 1e6, "MB/s", aim=">= 2 MB/s",
        met=size / taken.wall >= 2e6, note=f"{NOTE_INDEXING}; {size / taken.client / 1e6:.1f} MB/s of the client's"
        f" processor time, {size / max(taken.servers, 0.01) / 1e6:.1f} MB/s of the servers'",
    )  # fmt: skip


def _round_trips(run: Run, index) -> list[Row]:  # type: ignore[no-untyped-def]
    with index.database.connection() as connection:
        took = _times(lambda _: connection.execute("SELECT 1").fetchall(), range(run.count(200, 10)))
    return [Row(BENCH, "SELECT 1 on the coordinator, p95", percentile(took, 95), "ms", low=min(took), high=max(took))]


def _asking(  # type: ignore[no-untyped-def]
    what: str, records: Records, index, texts: Sequence[str], processor: _Processor
) -> list[Row]:
    def ask(text: str) -> None:
        result = find(records, index, Query(text, timeout_ms=60_000))
        assert not result.partial, text

    _times(ask, texts)
    with processor.measured() as taken:
        took = _times(ask, texts)
    p95 = percentile(took, 95)
    return [
        Row(BENCH, f"{what}, p50", median(took), "ms", low=min(took), high=max(took), note=NOTE),
        Row(BENCH, f"{what}, p95", p95, "ms", aim="< 60 ms", met=p95 < 60, note=NOTE),
        Row(BENCH, f"{what}, processor time", (taken.client + taken.servers) / len(texts) * 1000, "ms",
            against="the client's part", against_value=taken.client / len(texts) * 1000,
            ratio=taken.client / max(0.001, taken.client + taken.servers), ratio_of="part / all", note=NOTE_PROCESSOR),
    ]  # fmt: skip


def _overview(run: Run, index) -> list[Row]:  # type: ignore[no-untyped-def]
    """Add conversations of ten blocks each, and look at them."""
    count = run.count(10_000, 100)
    for entries, positions in many(count, random.Random(7), ManualClock()):
        named = [replace(entry, conversation_id=f"many-{entry.conversation_id}") for entry in entries]
        index.add(named, {f"many-{name}": position for name, position in positions.items()})
    rows = []
    for what, asked in (
        ("newest conversations, blocks and counts", Asked()),
        ("newest failed blocks", Asked(0, 50, failed=True)),
        ("blocks of one conversation", Asked(0, 50, conversation_id="many-c7")),
    ):
        index.overview(asked)
        took = _times(index.overview, [asked] * run.count(100, 5))
        rows.append(
            Row(BENCH, f"overview of {count} conversations: {what}, p95", percentile(took, 95), "ms", aim="< 5 ms",
                met=percentile(took, 95) < 5, low=min(took), high=max(took), note=NOTE_OVERVIEW)
        )  # fmt: skip
    return rows


def _times(action: Callable[..., object], arguments: Sequence[object] | range) -> list[float]:
    took = []
    for argument in arguments:
        begin = time.perf_counter()
        action(argument)
        took.append((time.perf_counter() - begin) * 1000)
    return took


class _Taken:
    wall = client = servers = 0.0


class _Processor:
    """Counts what this process and the servers take of the processor."""

    def __init__(self, servers) -> None:  # type: ignore[no-untyped-def]
        self._servers = [servers.coordinator, *servers.shards]

    @contextmanager
    def measured(self) -> Iterator[_Taken]:
        taken = _Taken()
        begin, client, there = time.perf_counter(), time.process_time(), self._used()
        yield taken
        taken.wall, taken.client = time.perf_counter() - begin, time.process_time() - client
        taken.servers = self._used() - there

    def _used(self) -> float:
        """Return seconds of all processes below the servers' directories; of those that have ended, the parents'."""
        ticks = 0
        for server in self._servers:
            pid = int((server.data / "postmaster.pid").read_text().split()[0])
            for process in (pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())):
                try:
                    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                ticks += sum(map(int, fields[11:15])) if process == pid else int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")
