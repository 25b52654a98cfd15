"""The overview of a home: its newest conversations and blocks, and counts, answered from counts that are kept.

Rules of this file: it reads the tables of sqlite_catalogue.sql, two of which triggers keep up to date, so that no
answer has to go through all blocks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final, Protocol, runtime_checkable

import orjson
from msgspec import Struct, field

from blockpty.model.block import Block
from blockpty.search.records import Records

BLOCK_FIELDS: Final = Block.__struct_fields__
"""The order of a block's values in the catalogue; another one makes another version of it."""
# In place of an unknown exit status, also in sqlite_catalogue.sql.
_UNKNOWN: Final = -1


class Asked(Struct, frozen=True):
    """Query of an overview.

    Attributes:
        conversations, blocks: how many of each at most.
        conversation_id: blocks and counts of this conversation only.
        failed: only blocks with an exit status other than 0, or with 0.
        before: only blocks that began before this time, in ms.
    """

    conversations: int = 20
    blocks: int = 50
    conversation_id: str | None = None
    failed: bool | None = None
    before: int | None = None


class Overview(Struct, frozen=True):
    """Contents of an overview.

    Attributes:
        conversations: name, finished blocks, failed ones, when the last one began, and its record; newest first.
        blocks: conversation and record of finished blocks, newest first.
        statuses: how many ended with each exit status; None for an unknown one.
        total_conversations, total_blocks: with a finished block, and of those.
        hosts: addresses of the hosts that have conversations of these, by conversation, but for those of this home.
        partial: parts of the catalogue did not answer, and blocks are missing.
    """

    conversations: list[tuple[str, int, int, int, Block]]
    blocks: list[tuple[str, Block]]
    statuses: Mapping[int | None, int]
    total_conversations: int
    total_blocks: int
    hosts: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False


@runtime_checkable
class Catalogue(Protocol):
    """An index that can also tell what there is."""

    def overview(self, asked: Asked) -> Overview:
        """Return what is asked for, as far as it is indexed; raises IndexUnavailable."""


def overview(catalogue: sqlite3.Connection, asked: Asked) -> Overview:
    """Ask the tables."""
    number = None
    if asked.conversation_id is not None:
        row = catalogue.execute("SELECT number FROM conversations WHERE name = ?", (asked.conversation_id,)).fetchone()
        number = row[0] if row is not None else 0
    of_one = "1" if number is None else f"conversation = {number:d}"
    if number is None:
        counts = catalogue.execute("SELECT status, blocks FROM statuses WHERE blocks > 0").fetchall()
    else:
        counts = catalogue.execute(
            f"SELECT coalesce(exit_status, {_UNKNOWN}), count(*) FROM blocks WHERE {of_one} AND NOT running GROUP BY 1"
        ).fetchall()
    recent = catalogue.execute(
        "SELECT c.name, a.blocks, a.failed, a.last_ts, (SELECT record FROM blocks AS b WHERE"
        " b.conversation = a.conversation AND NOT b.running ORDER BY seq DESC LIMIT 1)"
        f" FROM activity AS a JOIN conversations AS c ON c.number = a.conversation WHERE {of_one} AND a.blocks > 0"
        " ORDER BY a.last_ts DESC LIMIT ?",
        (asked.conversations,),
    )
    where, values = [of_one, "NOT running"], []
    if asked.before is not None:
        where.append("ts < ?")
        values.append(asked.before)
    if asked.failed is not None:
        where.append(f"exit_status {'!=' if asked.failed else '='} 0")
    newest = catalogue.execute(
        "SELECT c.name, b.record FROM blocks AS b JOIN conversations AS c ON c.number = b.conversation"
        f" WHERE {' AND '.join(where)} ORDER BY b.ts DESC, b.conversation DESC, b.seq DESC LIMIT ?",
        (*values, asked.blocks),
    )
    total = catalogue.execute(f"SELECT count(*) FROM activity WHERE blocks > 0 AND {of_one}").fetchone()
    return Overview(
        [(name, blocks, failed, ts, unpacked(record)) for name, blocks, failed, ts, record in recent],
        [(name, unpacked(record)) for name, record in newest],
        {None if status == _UNKNOWN else status: count for status, count in counts},
        total[0],
        sum(count for _, count in counts),
    )


def scanned(records: Records, asked: Asked) -> Overview:
    """Go through all blocks: what every catalogue has to say as well, and where there is none."""
    found: dict[str, list[Block]] = {}
    for name in records.names():
        if asked.conversation_id is None or name == asked.conversation_id:
            tail = records.tail(name, None)
            finished = [block for block in tail.blocks if block.span[1] is not None] if tail is not None else []
            if finished:
                found[name] = finished
    recent = sorted(
        (
            (name, len(blocks), sum(_failed(block) for block in blocks), max(_times(blocks)), blocks[-1])
            for name, blocks in found.items()
        ),
        key=lambda one: one[3],
        reverse=True,
    )
    statuses: dict[int | None, int] = {}
    newest = []
    for name, blocks in found.items():
        for block in blocks:
            statuses[block.exit_status] = statuses.get(block.exit_status, 0) + 1
            wanted = asked.failed is None or (block.exit_status is not None and _failed(block) is asked.failed)
            if wanted and (asked.before is None or block.ts_begin < asked.before):
                newest.append((name, block))
    newest.sort(key=lambda one: one[1].ts_begin, reverse=True)
    return Overview(
        recent[: asked.conversations], newest[: asked.blocks], statuses, len(found), sum(map(len, found.values()))
    )


def _failed(block: Block) -> bool:
    return block.exit_status not in (None, 0)


def _times(blocks: Iterable[Block]) -> Iterable[int]:
    return (block.ts_begin for block in blocks)


def packed(block: Block) -> bytes:
    """Return a block as it stands in the catalogue: its values without their names, which are half of a record."""
    return orjson.dumps([getattr(block, name) for name in BLOCK_FIELDS])


def unpacked(record: bytes) -> Block:
    """Return the block of `packed`."""
    values = dict(zip(BLOCK_FIELDS, orjson.loads(record), strict=True))
    values["span"] = tuple(values["span"])
    return Block(**values)
