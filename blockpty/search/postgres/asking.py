"""The statement that names candidates, from a plan: SQL as text and its parameters.

Rules of this file: nothing is connected. Whatever stands in a statement can be worked out by a shard alone: no
comparison of rows and no CASE, which postgres_fdw keeps to itself, and the limit with them. It lets through at least
what the plan and the filters admit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from blockpty.search.index import ChunkKey
from blockpty.search.plan import Plan
from blockpty.search.query import COMMAND, Filters

# Letters of a word that the index sees: its longest entry is 2,046 bytes.
WORD_CHARACTERS: Final = 500

_COLUMNS: Final = "c.ts, c.conversation, c.seq, c.number, c.begins, c.own, b.record, b.home"
# Two numbers as one, because postgres_fdw hands on no comparison of rows.
_NUMBERS: Final = 1 << 24
_ORDER: Final = "c.ts DESC, c.conversation DESC, c.seq DESC, c.number DESC"


def storable(text: str) -> str:
    """Return a text as PostgreSQL can hold it: without NUL, and with nothing that is half a character."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def statement(plan: Plan, below: ChunkKey | None, limit: int, part: str) -> tuple[str, dict[str, Any]]:
    """Return the statement for a part of the tables (`""` for all of them, `_0` for the first shard's)."""
    words: dict[str, Any] = {"limit": limit}
    wanted = [*_below(below, words), *_filters(plan.query.filters, words), *_text(plan, words)]
    return (
        f"SELECT {_COLUMNS} FROM chunk{part} c JOIN block{part} b USING (conversation, seq)"
        f" WHERE {' AND '.join(wanted) or 'true'} ORDER BY {_ORDER} LIMIT %(limit)s",
        words,
    )


def bytes_of(keys: Sequence[ChunkKey], part: str) -> tuple[str, dict[str, Any]]:
    """Return the statement for the bytes of chunks; it may name some that were not asked for."""
    return (
        f"SELECT c.conversation, c.seq, c.number, c.raw FROM chunk{part} c WHERE c.conversation = ANY(%(names)s)"
        f" AND c.seq = ANY(%(seqs)s) AND c.seq::bigint * {_NUMBERS} + c.number = ANY(%(codes)s::bigint[])",
        {
            "names": sorted({key.conversation_id for key in keys}),
            "seqs": sorted({key.seq for key in keys}),
            "codes": sorted({key.seq * _NUMBERS + key.number for key in keys}),
        },
    )


def _below(below: ChunkKey | None, words: dict[str, Any]) -> list[str]:
    if below is None:
        return []
    words |= {"ts": below.ts, "name": below.conversation_id, "seq": below.seq, "number": below.number}
    return [
        "c.ts <= %(ts)s",
        "(c.ts < %(ts)s OR c.conversation < %(name)s OR (c.conversation = %(name)s AND"
        " (c.seq < %(seq)s OR (c.seq = %(seq)s AND c.number < %(number)s))))",
    ]


def _filters(filters: Filters, words: dict[str, Any]) -> list[str]:
    wanted = []
    # A block that was added while it ran may have ended since.
    for condition, name, value in (
        ("c.conversation = %(conversation)s", "conversation", filters.conversation_id),
        ("(b.exit_status = %(exit_status)s OR b.exit_status IS NULL)", "exit_status", filters.exit_status),
        ("((b.exit_status <> 0) = %(failed)s OR b.exit_status IS NULL)", "failed", filters.failed),
        ("c.ts >= %(since)s", "since", filters.since),
        ("c.ts < %(until)s", "until", filters.until),
        ("(b.duration_ms >= %(duration)s OR b.duration_ms IS NULL)", "duration", filters.min_duration_ms),
        ("b.author = %(author)s", "author", filters.author),
        ("b.kind = %(kind)s", "kind", filters.kind),
    ):
        if value is not None:
            wanted.append(condition)
            words[name] = value
    if filters.cwd is not None:
        wanted.append("b.cwd LIKE %(cwd)s")
        words["cwd"] = _escaped(storable(filters.cwd.rstrip("/"))) + "%"
    if filters.part != "any":
        wanted.append(f"c.number {'=' if filters.part == 'command' else '>'} {COMMAND}")
    return wanted


def _text(plan: Plan, words: dict[str, Any]) -> list[str]:
    wanted = []
    if plan.words:
        # Letters and digits only, so nothing in them has to be escaped.
        words["words"] = " & ".join(f"'{word[:WORD_CHARACTERS]}'" for word in plan.words)
        wanted.append("c.words @@ %(words)s::tsquery")
    ways = []
    for number, way in enumerate(plan.literals):
        texts = []
        for index, text in enumerate(way):
            name = f"text_{number}_{index}"
            words[name] = f"%{_escaped(storable(text))}%"
            texts.append(f"c.folded LIKE %({name})s")
        ways.append(" AND ".join(texts))
    if ways:
        wanted.append("(" + " OR ".join(f"({way})" for way in ways) + ")")
    return wanted


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
