"""The tables and their numbered migrations: on the coordinator, and on every shard when there are some.

    lease          who owns a conversation                                    coordinator
    home           the homes that write here, where their servers answer, and
                   how many conversations of each did something               coordinator
    conversation   what exists, in which home, and how far it is indexed      coordinator
    activity       what each conversation has done, counted                   coordinator
    status         how many blocks of each home ended with which exit status  coordinator
    ended          the records of blocks that have ended, for an overview     coordinator
    block, chunk   blocks and their text, hash-partitioned by conversation    shards, or the coordinator itself
    candidate      a view: chunks with what their blocks say                  where these are; what is asked for

Rules of this file: what is the same on every server stands in migrations/, by the number of its step. A step, once
released, is never changed, except that it may leave out what a later one drops. A step is safe to run again, because a
server can die between two of them. How many shards there are is fixed when the tables are made: to have another number,
make a new database and let the hosts index their streams again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, LiteralString

from msgspec import Struct
from psycopg import sql

from blockpty.cluster.database import SCHEMA, SHARD_OPTIONS, Connection, Database
from blockpty.errors import BadRequest, SpoolVersion

# What a single server is cut into: small enough indexes that the newest stay in memory.
LOCAL_PARTITIONS: Final = 4
_FILES: Final = Path(__file__).with_name("migrations")
_LOCK: Final = 0x626C6B70  # of all engines that would change the tables at the same time, one does
_BATCH_ROWS: Final = 200

_OF_BLOCK: Final[tuple[LiteralString, ...]] = (
    "home", "running", "cwd", "exit_status", "duration_ms", "author", "kind", "record"
)  # fmt: skip


class _StepTarget(Struct, frozen=True):
    """Place of a step: `number` of a shard, or None on the coordinator, and how many shards there are."""

    connection: Connection
    number: int | None
    shards: Sequence[Database]


def _text(name: str) -> str:
    return (_FILES / name).read_text("utf-8")


def _run_file(connection: Connection, name: str) -> None:
    """Run the statements of a file; it has no parameters."""
    connection.execute(_text(name).encode())


def _columns(name: str) -> sql.SQL:
    """Return the columns that a file lists, for a statement that makes a table of them."""
    return sql.SQL(_text(name))


def _first(place: _StepTarget) -> None:
    """Make everything."""
    run = place.connection.execute
    if place.number is not None:
        for name, columns in (("block", "1_block.sql"), ("chunk", "1_chunk.sql")):
            table = sql.Identifier(f"{name}_{place.number}")
            run(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(table, _columns(columns)))
            _index(place.connection, name, table)
        return
    _run_file(place.connection, "1_coordinator.sql")
    for name, columns in (("block", "1_block.sql"), ("chunk", "1_chunk.sql")):
        parent = sql.Identifier(name)
        run(sql.SQL("CREATE TABLE {} ({}) PARTITION BY HASH (conversation)").format(parent, _columns(columns)))
        if not place.shards:
            _index(place.connection, name, parent)
        count = len(place.shards) or LOCAL_PARTITIONS
        for number in range(count):
            parts = {
                "table": sql.Identifier(f"{name}_{number}"), "parent": parent,
                "values": sql.SQL("FOR VALUES WITH (MODULUS {}, REMAINDER {})").format(count, number),
                "server": sql.Identifier(server_name(number)), "schema": SCHEMA, "remote": f"{name}_{number}",
            }  # fmt: skip
            if place.shards:
                run(sql.SQL(
                    "CREATE FOREIGN TABLE {table} PARTITION OF {parent} {values} SERVER {server}"
                    " OPTIONS (schema_name {schema}, table_name {remote})"
                ).format(**parts))  # fmt: skip
            else:
                run(sql.SQL("CREATE TABLE {table} PARTITION OF {parent} {values}").format(**parts))


def _index(connection: Connection, name: str, table: sql.Identifier) -> None:
    wanted: dict[str, LiteralString] = {
        "key": "UNIQUE INDEX IF NOT EXISTS {index} ON {table} (conversation, seq)",
        "ts": "INDEX IF NOT EXISTS {index} ON {table} (ts DESC, conversation DESC, seq DESC)",
    }
    if name == "chunk":
        wanted = {
            "key": "UNIQUE INDEX IF NOT EXISTS {index} ON {table} (conversation, seq, number)",
            "ts": "INDEX IF NOT EXISTS {index} ON {table} (ts DESC, conversation DESC, seq DESC, number DESC)",
        }
        # Several times faster to read than the usual method, and no larger.
        connection.execute(sql.SQL("ALTER TABLE {} ALTER COLUMN raw SET COMPRESSION lz4").format(table))
    for kind, statement in wanted.items():
        index = sql.Identifier(f"{table.as_string().strip(chr(34))}_{kind}")
        connection.execute(sql.SQL("CREATE " + statement).format(index=index, table=table))


def _terms(place: _StepTarget) -> None:
    """Put the numbers of `terms` in the place of folded texts and words, and count; all is indexed again."""
    run = place.connection.execute
    coordinator, holds = place.number is None, place.number is not None or not place.shards
    names = {name: sql.Identifier(name if coordinator else f"{name}_{place.number}") for name in ("block", "chunk")}
    if holds:
        run(sql.SQL("TRUNCATE {block}, {chunk}").format(**names))
    run(sql.SQL(
        "ALTER TABLE {chunk} DROP COLUMN IF EXISTS folded, DROP COLUMN IF EXISTS words,"
        " ADD COLUMN IF NOT EXISTS terms integer[] NOT NULL"
    ).format(**names))  # fmt: skip
    parts = [f"chunk_{place.number}"] if not coordinator else [f"chunk_{number}" for number in range(LOCAL_PARTITIONS)]
    run(sql.SQL("ALTER TABLE {block} ADD COLUMN IF NOT EXISTS running boolean NOT NULL DEFAULT false").format(**names))
    if holds:
        run(sql.SQL(
            "CREATE INDEX IF NOT EXISTS {index} ON {block} (ts DESC, conversation DESC, seq DESC)"
            " WHERE exit_status <> 0"
        ).format(index=sql.Identifier(f"{names['block'].as_string().strip(chr(34))}_failed"), **names))  # fmt: skip
    for part in parts if holds else ():
        # Only their index reads the numbers. Without statistics the planner expects few, and takes it.
        run(sql.SQL(
            "ALTER TABLE {table} ALTER COLUMN terms SET STATISTICS 0, ALTER COLUMN terms SET COMPRESSION lz4"
        ).format(table=sql.Identifier(part)))  # fmt: skip
        # What came last stands in a list that every query goes through (with the usual 4 MB, 14 ms); a shorter one
        # costs those who write more (with 64 kB, three times as much as with 512).
        run(sql.SQL(
            "CREATE INDEX IF NOT EXISTS {index} ON {table} USING gin (terms) WITH (gin_pending_list_limit = 512)"
        ).format(index=sql.Identifier(f"{part}_terms"), table=sql.Identifier(part)))  # fmt: skip
    if coordinator:
        for number in range(len(place.shards)):
            run(sql.SQL("ALTER SERVER {} OPTIONS (ADD options {})").format(
                sql.Identifier(server_name(number)), sql.Literal(SHARD_OPTIONS)
            ))  # fmt: skip
        _run_file(place.connection, "2_coordinator.sql")
        _run_file(place.connection, "index_again.sql")


def _at_hand(place: _StepTarget) -> None:
    """Have on the coordinator all that an overview tells: its blocks, and how many conversations each home has."""
    if place.number is None:
        _run_file(place.connection, "3_coordinator.sql")


def _candidates(place: _StepTarget) -> None:
    """Keep the folded text of chunks, and have each shard put chunks and blocks together.

    To the coordinator it is then one table each: else it would at times join them itself, row by row (7 s instead of
    7 ms). It cannot know how many rows there are, so it asks for few at a time.
    """
    run = place.connection.execute
    columns = "conversation, seq, c.ts, number, begins, own, terms, folded, " + ", ".join(_OF_BLOCK)
    if place.number is not None or not place.shards:
        of = "" if place.number is None else f"_{place.number}"
        names = {name: sql.Identifier(f"{name}{of}") for name in ("chunk", "block", "candidate")}
        run(sql.SQL('ALTER TABLE {chunk} ADD COLUMN IF NOT EXISTS folded text COLLATE "C"').format(**names))
        parts = [f"chunk{of}"] if of else [f"chunk_{number}" for number in range(LOCAL_PARTITIONS)]
        for part in parts:
            run(sql.SQL("ALTER TABLE {} ALTER COLUMN folded SET COMPRESSION lz4, ALTER COLUMN folded SET STATISTICS 0")
                .format(sql.Identifier(part)))  # fmt: skip
        run(sql.SQL("CREATE OR REPLACE VIEW {candidate} AS SELECT {columns} FROM {chunk} c JOIN {block} b"
                    " USING (conversation, seq)").format(columns=sql.SQL(columns), **names))  # fmt: skip
        return
    run('ALTER TABLE chunk ADD COLUMN folded text COLLATE "C"')
    for number in range(len(place.shards)):
        run(sql.SQL(
            "CREATE FOREIGN TABLE {table} ({columns}) SERVER {server}"
            " OPTIONS (schema_name {schema}, table_name {remote}, fetch_size '128')"
        ).format(
            table=sql.Identifier(f"candidate_{number}"), columns=_columns("4_candidate.sql"),
            server=sql.Identifier(server_name(number)), schema=SCHEMA, remote=f"candidate_{number}",
        ))  # fmt: skip
        run(sql.SQL("ALTER SERVER {} OPTIONS (SET options {})").format(
            sql.Identifier(server_name(number)), sql.Literal(SHARD_OPTIONS)
        ))  # fmt: skip


def _cut_again(place: _StepTarget) -> None:
    """Have all indexed again: lines of more than 16 KiB are cut at other places."""
    run = place.connection.execute
    if place.number is not None or not place.shards:
        run("SET LOCAL statement_timeout = 0")
        for name in ("chunk", "block"):
            # Not TRUNCATE: the coordinator's transaction may have read the table in an earlier step, and would wait.
            table = name if place.number is None else f"{name}_{place.number}"
            run(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
    if place.number is None:
        _run_file(place.connection, "index_again.sql")


STEPS: Final[tuple[Callable[[_StepTarget], None], ...]] = (_first, _terms, _at_hand, _candidates, _cut_again)
VERSION: Final = len(STEPS)


def server_name(number: int) -> str:
    """Return how the coordinator calls a shard."""
    return f"blockpty_shard_{number}"


def migrate(coordinator: Database, shards: Sequence[Database] = ()) -> int:
    """Bring the tables to this version, and return how many shards there are.

    Many may do so at the same time. Raises BadRequest for another number of shards than the tables were made for (none
    given takes those that are there) or another encoding than UTF-8, SpoolVersion for tables of a newer version, and
    psycopg.Error.
    """
    with coordinator.connection() as connection, connection.transaction():
        _prepare(connection)
        connection.execute("CREATE TABLE IF NOT EXISTS migration (version integer PRIMARY KEY, applied timestamptz)")
        connection.execute("CREATE TABLE IF NOT EXISTS shard (number integer PRIMARY KEY, name text NOT NULL)")
        found = connection.execute("SELECT coalesce(max(version), 0), (SELECT count(*) FROM shard) FROM migration")
        version, known = found.fetchone() or (0, 0)
        if version > VERSION:
            raise SpoolVersion(
                f"the tables in {coordinator.name} are of version {version}, this program knows {VERSION}",
                hint="use a newer blockpty, or another database",
            )
        if version and shards and known != len(shards):
            raise BadRequest(
                f"the tables in {coordinator.name} were made for {known} shards, and {len(shards)} are given",
                hint="the number cannot be changed: make a new database, the hosts index their streams again",
            )
        if version < VERSION:
            if version and known and not shards:
                raise BadRequest(
                    f"the tables in {coordinator.name} have to be changed, and the shards are not given",
                    hint="set BLOCKPTY_DATABASE_SHARDS as when they were made",
                )
            _steps(connection, coordinator, shards, version)
            known = len(shards)
    return int(known)


def _prepare(connection: Connection) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    found = connection.execute("SELECT current_setting('server_encoding')").fetchone()
    if found is None or found[0] != "UTF8":
        raise BadRequest(f"the database has the encoding {found and found[0]}", hint="make it with ENCODING 'UTF8'")
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))


def _steps(connection: Connection, coordinator: Database, shards: Sequence[Database], version: int) -> None:
    if not version and shards:
        _name_shards(connection, shards)
    for number in range(version, VERSION):
        # The shards first: the coordinator's transaction says that it is done, and it may fail after theirs.
        for index, shard in enumerate(shards):
            with shard.connection() as there, there.transaction():
                _prepare(there)
                STEPS[number](_StepTarget(there, index, shards))
        STEPS[number](_StepTarget(connection, None, shards))
        connection.execute("INSERT INTO migration VALUES (%s, now())", (number + 1,))


def _name_shards(connection: Connection, shards: Sequence[Database]) -> None:
    """Make the shards known to the coordinator."""
    connection.execute("CREATE EXTENSION IF NOT EXISTS postgres_fdw WITH SCHEMA public")
    for number, shard in enumerate(shards):
        words = shard.words()
        user: dict[str, object] = {name: words.pop(name) for name in ("user", "password") if name in words}
        for name in ("options", "application_name", "client_encoding"):
            words.pop(name, None)
        words |= {"connect_timeout": 2, "async_capable": "true", "batch_size": _BATCH_ROWS, "fetch_size": 1000}
        server = sql.Identifier(server_name(number))
        connection.execute(
            sql.SQL("CREATE SERVER {} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({})").format(server, _options(words))
        )
        connection.execute(
            sql.SQL("CREATE USER MAPPING FOR CURRENT_USER SERVER {} OPTIONS ({})").format(server, _options(user))
        )
        connection.execute("INSERT INTO shard VALUES (%s, %s)", (number, shard.name))


def _options(words: dict[str, object]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(str(value))) for name, value in words.items()
    )
