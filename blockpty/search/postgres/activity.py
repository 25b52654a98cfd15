"""What all hosts have done: counts, kept on the coordinator as blocks come, and the newest blocks of the shards.

Rules of this file: a block counts once, when it has ended, in the transaction that says that it is indexed; those who
count for a conversation are its owner alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from blockpty.model.block import Block
from blockpty.search.index import Entry
from blockpty.search.overview import Asked
from blockpty.search.postgres.database import Connection

# In place of an exit status that nobody knows.
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
_ADD_STATUSES: Final = """
INSERT INTO status (home, status, blocks)
SELECT %(home)s, new.status, new.blocks FROM unnest(%(status)s::int[], %(blocks)s::bigint[]) AS new (status, blocks)
ON CONFLICT (home, status) DO UPDATE SET blocks = status.blocks + excluded.blocks
"""


class Counted(NamedTuple):
    """What a conversation has done; the columns of `_COUNTED` but for its name."""

    blocks: int = 0
    failed: int = 0
    last_ts: int = 0
    last_seq: int = 0
    statuses: Mapping[str, int] = {}
    record: bytes = b""

    def with_block(self, block: Block) -> Counted:
        """Return it with one more block."""
        status = str(_number(block.exit_status))
        return Counted(
            self.blocks + 1, self.failed + (block.exit_status not in (None, 0)), max(self.last_ts, block.ts_begin),
            block.seq, {**self.statuses, status: self.statuses.get(status, 0) + 1}, orjson.dumps(block.to_dict()),
        )  # fmt: skip


def count(connection: Connection, home: str, entries: Sequence[Entry]) -> None:
    """Count the blocks that have ended and were not counted; inside the transaction of their owner."""
    ended = {(entry.conversation_id, entry.block.seq): entry.block for entry in entries if entry.block.span[1]}
    names = sorted({name for name, _ in ended})
    if not names:
        return
    rows = connection.execute(f"SELECT {_COUNTED} FROM activity WHERE conversation = ANY(%s)".encode(), (names,))
    counted = {row[0]: Counted(*row[1:]) for row in rows.fetchall()}
    changed: dict[str, Counted] = {}
    statuses: Counter[int] = Counter()
    for (name, seq), block in sorted(ended.items()):
        before = changed.get(name) or counted.get(name, Counted())
        if seq > before.last_seq:
            changed[name] = before.with_block(block)
            statuses[_number(block.exit_status)] += 1
    if not changed:
        return
    columns: dict[str, list[Any]] = {"conversation": list(changed)}
    for field in Counted._fields:
        columns[field] = [getattr(one, field) for one in changed.values()]
    columns["statuses"] = [orjson.dumps(one).decode() for one in columns["statuses"]]
    connection.execute(_WRITE.encode(), {"home": home, **columns})
    _add_statuses(connection, home, statuses)


def forget(connection: Connection, home: str, conversation_id: str) -> None:
    """Count a conversation of this home no more; inside a transaction."""
    rows = connection.execute(
        "DELETE FROM activity WHERE conversation = %s AND home = %s RETURNING statuses", (conversation_id, home)
    ).fetchall()
    for (statuses,) in rows:
        _add_statuses(connection, home, {int(status): -number for status, number in statuses.items()})


def drop(connection: Connection, home: str) -> None:
    """Count nothing of this home; inside a transaction."""
    for table in ("activity", "status"):
        connection.execute(f"DELETE FROM {table} WHERE home = %s".encode(), (home,))


class Seen(NamedTuple):
    """What the coordinator knows: conversations with their homes and counts, and how many blocks ended how."""

    conversations: Sequence[tuple[str, str, Counted]]
    statuses: Mapping[int | None, int]
    total: int


def seen(connection: Connection, asked: Asked) -> Seen:
    """Return the conversations that did something last, and the counts of all of them, or of one."""
    where = "" if asked.conversation_id is None else "WHERE conversation = %(conversation)s"
    words = {"conversation": asked.conversation_id, "limit": asked.conversations}
    rows = connection.execute(
        f"SELECT home, {_COUNTED} FROM activity {where} ORDER BY last_ts DESC LIMIT %(limit)s".encode(), words
    ).fetchall()
    found = [(row[1], row[0], Counted(*row[2:])) for row in rows]
    if asked.conversation_id is None:
        counts = connection.execute(
            "SELECT status, sum(blocks)::bigint FROM status GROUP BY status HAVING sum(blocks) > 0"
        ).fetchall()
        row = connection.execute("SELECT count(*) FROM activity").fetchone()
        total = row[0] if row else 0
    else:
        row = connection.execute(f"SELECT statuses FROM activity {where}".encode(), words).fetchone()
        counts = [(int(status), number) for status, number in (row[0] if row else {}).items()]
        total = int(row is not None)
    return Seen(found, {None if status == _UNKNOWN else status: number for status, number in counts}, total)


def newest_blocks(connection: Connection, asked: Asked, part: str) -> list[tuple[Any, ...]]:
    """Return the newest ended blocks of a part of the tables: time, conversation, number, home and record."""
    where, words = ["NOT b.running"], {"limit": asked.blocks, "name": asked.conversation_id, "before": asked.before}
    if asked.conversation_id is not None:
        where.append("b.conversation = %(name)s")
    if asked.before is not None:
        where.append("b.ts < %(before)s")
    if asked.failed is not None:
        where.append(f"b.exit_status {'<>' if asked.failed else '='} 0")
    return connection.execute(
        f"SELECT b.ts, b.conversation, b.seq, b.home, b.record FROM block{part} b WHERE {' AND '.join(where)}"
        " ORDER BY b.ts DESC, b.conversation DESC, b.seq DESC LIMIT %(limit)s".encode(),
        words,
        binary=True,
    ).fetchall()


def _number(status: int | None) -> int:
    return _UNKNOWN if status is None else status


def _add_statuses(connection: Connection, home: str, statuses: Mapping[int, int]) -> None:
    ordered = sorted(statuses.items())
    connection.execute(
        _ADD_STATUSES,
        {"home": home, "status": [status for status, _ in ordered], "blocks": [number for _, number in ordered]},
    )
