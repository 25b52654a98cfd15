"""The activity of all hosts: counts and records of blocks that have ended, kept on the coordinator as they come.

Rules of this file: a block counts once, when it has ended, in the transaction that says that it is indexed; those who
count for a conversation are its owner alone. An overview is one answer of one server: the shards are not needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from blockpty.cluster.database import Connection
from blockpty.model.block import Block
from blockpty.search.index import IndexEntry
from blockpty.search.overview import Asked

# In place of an unknown exit status.
_UNKNOWN: Final = -1
_COUNTED: Final = "conversation, blocks, failed, last_ts, last_seq, statuses, record"
_WRITE: Final = f"""
INSERT INTO activity (home, {_COUNTED})
SELECT %(home)s, new.* FROM unnest(
    %(conversation)s::text[], %(blocks)s::int[], %(failed)s::int[], %(last_ts)s::bigint[], %(last_seq)s::int[],
    %(statuses)s::jsonb[], %(record)b::bytea[]
) AS new ({_COUNTED})
ON CONFLICT (conversation) DO UPDATE SET blocks = excluded.blocks, failed = excluded.failed, home = excluded.home,
    last_ts = excluded.last_ts, last_seq = excluded.last_seq, statuses = excluded.statuses, record = excluded.record
"""
_ADD_CONVERSATIONS: Final = "UPDATE home SET conversations = conversations + %s WHERE home = %s"
_KEEP: Final = """
INSERT INTO ended (conversation, seq, home, ts, exit_status, record)
SELECT new.conversation, new.seq, %(home)s, new.ts, new.exit_status, new.record
FROM unnest(%(conversation)s::text[], %(seq)s::int[], %(ts)s::bigint[], %(exit_status)s::int[], %(record)b::bytea[])
    AS new (conversation, seq, ts, exit_status, record)
ON CONFLICT (conversation, seq) DO UPDATE SET home = excluded.home, ts = excluded.ts,
    exit_status = excluded.exit_status, record = excluded.record
"""
_ADD_STATUSES: Final = """
INSERT INTO status (home, status, blocks)
SELECT %(home)s, new.status, new.blocks FROM unnest(%(status)s::int[], %(blocks)s::bigint[]) AS new (status, blocks)
ON CONFLICT (home, status) DO UPDATE SET blocks = status.blocks + excluded.blocks
"""


class Counted(NamedTuple):
    """Activity of a conversation; the columns of `_COUNTED` but for its name."""

    blocks: int = 0
    failed: int = 0
    last_ts: int = 0
    last_seq: int = 0
    statuses: Mapping[str, int] = {}
    record: bytes = b""

    def with_block(self, block: Block, record: bytes) -> Counted:
        """Return it with one more block, and that one's record."""
        status = str(_number(block.exit_status))
        return Counted(
            self.blocks + 1, self.failed + (block.exit_status not in (None, 0)), max(self.last_ts, block.ts_begin),
            block.seq, {**self.statuses, status: self.statuses.get(status, 0) + 1}, record,
        )  # fmt: skip


def count(connection: Connection, home: str, entries: Sequence[IndexEntry]) -> None:
    """Keep the blocks that have ended, and count those that were not; inside the transaction of their owner."""
    ended = {
        (entry.conversation_id, entry.block.seq): entry.block for entry in entries if entry.block.span[1] is not None
    }
    names = sorted({name for name, _ in ended})
    if not names:
        return
    records = {place: orjson.dumps(block.to_dict()) for place, block in sorted(ended.items())}
    connection.execute(
        _KEEP.encode(),
        {
            "home": home, "conversation": [name for name, _ in records], "seq": [seq for _, seq in records],
            "ts": [ended[place].ts_begin for place in records],
            "exit_status": [ended[place].exit_status for place in records], "record": [*records.values()],
        },
    )  # fmt: skip
    rows = connection.execute(f"SELECT {_COUNTED} FROM activity WHERE conversation = ANY(%s)".encode(), (names,))
    counted = {row[0]: Counted(*row[1:]) for row in rows.fetchall()}
    changed: dict[str, Counted] = {}
    statuses: Counter[int] = Counter()
    for (name, seq), record in records.items():
        before, block = changed.get(name) or counted.get(name, Counted()), ended[name, seq]
        if seq > before.last_seq:
            changed[name] = before.with_block(block, record)
            statuses[_number(block.exit_status)] += 1
    if not changed:
        return
    columns: dict[str, list[Any]] = {"conversation": list(changed)}
    for field in Counted._fields:
        columns[field] = [getattr(one, field) for one in changed.values()]
    columns["statuses"] = [orjson.dumps(one).decode() for one in columns["statuses"]]
    connection.execute(_WRITE.encode(), {"home": home, **columns})
    _add_statuses(connection, home, statuses)
    if new := len(changed.keys() - counted.keys()):
        connection.execute(_ADD_CONVERSATIONS, (new, home))


def forget(connection: Connection, home: str, conversation_id: str) -> None:
    """Count a conversation of this home no more; inside a transaction."""
    rows = connection.execute(
        "DELETE FROM activity WHERE conversation = %s AND home = %s RETURNING statuses", (conversation_id, home)
    ).fetchall()
    connection.execute("DELETE FROM ended WHERE conversation = %s AND home = %s", (conversation_id, home))
    for (statuses,) in rows:
        _add_statuses(connection, home, {int(status): -number for status, number in statuses.items()})
        connection.execute(_ADD_CONVERSATIONS, (-1, home))


def drop(connection: Connection, home: str) -> None:
    """Count nothing of this home; inside a transaction."""
    for table in ("activity", "status", "ended"):
        connection.execute(f"DELETE FROM {table} WHERE home = %s".encode(), (home,))
    connection.execute("UPDATE home SET conversations = 0 WHERE home = %s", (home,))


class KnownActivity(NamedTuple):
    """Activity that the coordinator knows.

    Attributes:
        conversations: names of those that did something last, with their homes and counts.
        statuses: how many blocks ended how; of one conversation where one was asked for.
        total: how many conversations did something.
        blocks: conversation, home and record of the newest blocks that have ended.
    """

    conversations: Sequence[tuple[str, str, Counted]]
    statuses: Mapping[int | None, int]
    total: int
    blocks: Sequence[tuple[str, str, bytes]]


def seen(connection: Connection, asked: Asked) -> KnownActivity:
    """Return what there is to see; all of it is asked at once."""
    of_one = asked.conversation_id is not None
    where = "WHERE conversation = %(conversation)s" if of_one else ""
    words = {"conversation": asked.conversation_id, "limit": asked.conversations}
    with connection.pipeline():
        recent = connection.execute(
            f"SELECT home, {_COUNTED} FROM activity {where} ORDER BY last_ts DESC LIMIT %(limit)s".encode(),
            words, binary=True,
        )  # fmt: skip
        if of_one:
            known = connection.execute(f"SELECT statuses FROM activity {where}".encode(), words)
        else:
            known = connection.execute("SELECT status, sum(blocks)::bigint FROM status GROUP BY status")
        homes = connection.execute("SELECT sum(conversations)::bigint FROM home")
        newest = connection.execute(*_newest(asked), binary=True)
    counts, total = known.fetchall(), (homes.fetchone() or (0,))[0]
    if of_one:
        total = len(counts)
        counts = [(int(status), number) for row in counts for status, number in row[0].items()]
    return KnownActivity(
        [(row[1], row[0], Counted(*row[2:])) for row in recent.fetchall()],
        {None if status == _UNKNOWN else status: number for status, number in counts if number > 0},
        int(total or 0),
        newest.fetchall(),
    )


def _newest(asked: Asked) -> tuple[bytes, dict[str, Any]]:
    """Return the statement for the newest blocks."""
    where, words = ["true"], {"limit": asked.blocks, "name": asked.conversation_id, "before": asked.before}
    if asked.conversation_id is not None:
        where.append("conversation = %(name)s")
    if asked.before is not None:
        where.append("ts < %(before)s")
    if asked.failed is not None:
        where.append(f"exit_status {'<>' if asked.failed else '='} 0")
    return (
        f"SELECT conversation, home, record FROM ended WHERE {' AND '.join(where)}"
        " ORDER BY ts DESC, conversation DESC, seq DESC LIMIT %(limit)s".encode(),
        words,
    )


def _number(status: int | None) -> int:
    return _UNKNOWN if status is None else status


def _add_statuses(connection: Connection, home: str, statuses: Mapping[int, int]) -> None:
    ordered = sorted(statuses.items())
    connection.execute(
        _ADD_STATUSES,
        {"home": home, "status": [status for status, _ in ordered], "blocks": [number for _, number in ordered]},
    )
