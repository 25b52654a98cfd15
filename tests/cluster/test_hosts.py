"""The leases of a home: one who owns it no more writes nothing."""

from __future__ import annotations

import time
from pathlib import Path

from blockpty.cluster.database import Database
from blockpty.cluster.hosts import Hosts
from blockpty.cluster.postgres_index import PostgresIndex
from blockpty.search.index import IndexWatermark
from blockpty.search.ingest import batches
from blockpty.search.records import Records
from tests.support.postgres_servers import Databases
from tests.support.shared_indexes import Keep, index_of


def test_an_owner_of_before_writes_nothing(small: Path, databases: Databases, keep: Keep) -> None:
    """The disk of a home moves to another machine; the first one wakes up and goes on as if nothing had happened."""
    records = keep(Records(small))
    index = keep(index_of(databases, seconds=0.2))
    made = list(batches(records, {}, index.batch_bytes))
    index.add(made[0].entries, made[0].positions)
    taken = {lease.conversation for lease in index.hosts.held()}
    assert taken == set(made[0].positions)
    before = index.positions()
    moved = keep(PostgresIndex(Database(databases.url), Hosts("home-1", "another host", seconds=60)))
    deadline = time.monotonic() + 30
    while len(moved.hosts.held()) < len(taken):
        assert time.monotonic() < deadline
        moved.hosts._refused.clear()
        moved.add([], dict.fromkeys(taken, IndexWatermark(1, 1)))
    index.add(made[0].entries, made[0].positions)
    assert not index.hosts.held()
    fresh = keep(index_of(databases))
    assert set(fresh.positions().of.values()) == {IndexWatermark(1, 1)}
    assert fresh.positions().generation == before.generation
