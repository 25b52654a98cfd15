"""The tables: made once by the first host, never by two, and refused when they are not what is asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from blockpty.cluster import migration
from blockpty.cluster.database import Database
from blockpty.cluster.migration import VERSION, migrate
from blockpty.errors import BadRequest, SpoolVersion
from tests.support.postgres_servers import Databases, Servers


@pytest.fixture(params=[True, False], ids=["sharded", "single"])
def databases(postgres_servers: Servers, request: pytest.FixtureRequest) -> Iterator[Databases]:
    with postgres_servers.databases(sharded=request.param) as found:
        yield found


def test_many_make_the_tables_at_once(databases: Databases) -> None:
    counts: list[int] = []
    opened = [Database(databases.url) for _ in range(4)]
    shards = [[Database(url) for url in databases.shards] for _ in opened]

    def make(database: Database, others: list[Database]) -> None:
        counts.append(migrate(database, others))

    threads = [threading.Thread(target=make, args=pair) for pair in zip(opened, shards, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [len(databases.shards)] * 4
    with opened[0].connection() as connection:
        found = connection.execute("SELECT version FROM migration ORDER BY version").fetchall()
        parts = connection.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = 'chunk'::regclass").fetchone()
    assert [row[0] for row in found] == list(range(1, VERSION + 1))
    assert parts == (len(databases.shards) or 4,)
    for database in (*opened, *(one for some in shards for one in some)):
        database.close()


def test_other_shards_and_newer_tables_are_refused(databases: Databases) -> None:
    database = Database(databases.url)
    shards = [Database(url) for url in databases.shards]
    migrate(database, shards)
    # Who does not say which shards there are takes those that are there.
    assert migrate(database) == len(shards)
    with pytest.raises(BadRequest, match="shards"):
        migrate(database, [*shards, Database(databases.url)])
    with database.connection() as connection:
        connection.execute("INSERT INTO migration VALUES (%s, now())", (VERSION + 1,))
    with pytest.raises(SpoolVersion):
        migrate(database, shards)
    for one in (database, *shards):
        one.close()


def test_tables_of_the_first_version_are_changed(databases: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was in them is indexed again, and a host that knows the old generation is notified."""
    database, shards = Database(databases.url), [Database(url) for url in databases.shards]
    with monkeypatch.context() as before:
        before.setattr(migration, "STEPS", migration.STEPS[:1])
        before.setattr(migration, "VERSION", 1)
        migrate(database, shards)
    for number, one in enumerate(shards or [database]):
        with one.connection() as connection:
            part = f"chunk_{number}" if shards else "chunk"
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public")
            connection.execute(f"CREATE INDEX ON {part} USING gin (folded gin_trgm_ops)".encode())
    with database.connection() as connection:
        connection.execute("INSERT INTO home VALUES ('h', '', 'old')")
        connection.execute("INSERT INTO conversation VALUES ('c', 'h', 10, 1, -1, 0, 0, 0)")
        connection.execute(
            "INSERT INTO chunk (conversation, seq, ts, number, begins, own, folded, words, raw)"
            " VALUES ('c', 1, 1, 1, 0, 1, 'x', '', 'x')"
        )
    if shards:
        with pytest.raises(BadRequest, match="have to be changed"):
            migrate(database)
    migrate(database, shards)
    with database.connection() as connection:
        assert connection.execute("SELECT lines FROM conversation").fetchall() == [(None,)]
        assert connection.execute("SELECT generation FROM home WHERE generation <> 'old'").fetchall()
        assert connection.execute("SELECT conversation, terms FROM chunk").fetchall() == []
    for one in (database, *shards):
        one.close()


def test_tables_of_the_second_version_keep_what_is_counted(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an overview tells is kept, with the counts; blocks and chunks are indexed again."""
    database, shards = Database(databases.url), [Database(url) for url in databases.shards]
    with monkeypatch.context() as before:
        before.setattr(migration, "STEPS", migration.STEPS[:2])
        before.setattr(migration, "VERSION", 2)
        migrate(database, shards)
    with database.connection() as connection:
        connection.execute("INSERT INTO home VALUES ('h', '', 'old'), ('other', '', 'old')")
        for name in ("c1", "c2", "c3"):
            connection.execute("INSERT INTO activity VALUES (%s, 'h', 2, 1, 9, 2, '{}', 'r')", (name,))
            for seq, running in ((1, False), (2, False), (3, True)):
                connection.execute(
                    "INSERT INTO block (conversation, seq, ts, home, running, exit_status, author, kind, record)"
                    " VALUES (%s, %s, %s, 'h', %s, %s, 'agent', 'command', 'r')",
                    (name, seq, 10 + seq, running, None if running else seq - 1),
                )
    migrate(database, shards)
    with database.connection() as connection:
        assert connection.execute("SELECT home, conversations FROM home ORDER BY home").fetchall() == [
            ("h", 3), ("other", 0),
        ]  # fmt: skip
        kept = connection.execute("SELECT conversation, seq, ts, exit_status, home, record FROM ended ORDER BY 1, 2")
        assert kept.fetchall() == [
            (name, seq, 10 + seq, seq - 1, "h", b"r") for name in ("c1", "c2", "c3") for seq in (1, 2)
        ]
        assert connection.execute("SELECT generation FROM home WHERE generation = 'old'").fetchall() == []
        assert connection.execute("SELECT conversation FROM block").fetchall() == []
    for one in (database, *shards):
        one.close()


def test_a_step_that_fails_leaves_nothing(postgres_servers: Servers) -> None:
    with postgres_servers.databases() as databases:
        database = Database(databases.url)
        wrong = databases.shards[1].replace("/t", "/not_there_t")
        some = [Database(databases.shards[0]), Database(wrong)]
        with pytest.raises(psycopg.OperationalError):
            migrate(database, some)
        shards = [Database(url) for url in databases.shards]
        assert migrate(database, shards) == 2
        for one in (database, *some, *shards):
            one.close()
