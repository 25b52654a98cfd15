"""Statements for candidates, made from a plan: SQL as text and its parameters.

Rules of this file: nothing is connected. Whatever stands in a statement can be worked out by a shard alone: no
comparison of rows and no CASE, which postgres_fdw keeps to itself, and the limit with them. It lets through at least
what the plan and the filters admit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from blockpty.cluster.terms import conversation_term, time_terms, wanted_terms
from blockpty.search.index import ChunkKey
from blockpty.search.planner import Plan
from blockpty.search.query import COMMAND, Filters

# Of more numbers than these, some are asked for: they are enough to be rare, and each is looked up.
_MOST_TERMS: Final = 24

_COLUMNS: Final = "c.ts, c.conversation, c.seq, c.number, c.begins, c.own, c.record, c.home"
# Two numbers as one, because postgres_fdw hands on no comparison of rows.
_NUMBERS: Final = 1 << 24
_ORDER: Final = "c.conversation DESC, c.seq DESC, c.number DESC"


def storable(text: str) -> str:
    """Return a text as PostgreSQL can hold it: without NUL, and with nothing that is half a character."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


class Span(Struct, frozen=True):
    """Times from `first` to `last`, in ms, both of them in it; None: from the beginning, and on without an end."""

    first: int | None = None
    last: int | None = None


def ways(plan: Plan) -> list[list[int]]:
    """Return the ways to match, each as the numbers that a chunk must have; none when each chunk may match."""
    wanted = [wanted_terms(way, plan.words) for way in plan.literals or ((),)]
    if not all(wanted):
        return []
    of_one = plan.query.filters.conversation_id
    more = [] if of_one is None else [conversation_term(of_one)]
    return [sorted(way)[:: 1 + len(way) // _MOST_TERMS] + more for way in wanted]


def walk(plan: Plan, below: ChunkKey | None, limit: int, part: str) -> tuple[str, dict[str, Any]]:
    """Return the statement that goes through all chunks of a part of the tables, the newest first.

    Parts are `""` for all of them and `_0` for the first shard's.
    """
    return _statement(plan, below, limit, part, {}, [], "c.ts")


def look_up(
    plan: Plan, wanted: Sequence[Sequence[int]], below: ChunkKey | None, span: Span, limit: int, part: str
) -> tuple[str, dict[str, Any]]:
    """Return the statement for chunks of a time that have what is wanted in one of the ways."""
    words: dict[str, Any] = {}
    within = ""
    if span.first is not None and span.last is not None:
        # Again in each of the ways: the index then goes from one list to the other, and reads of the long ones only
        # what lies within this time.
        words["near"] = time_terms(span.first, span.last)
        within = " AND c.terms && %(near)s::int[]"
    arms = []
    for number, way in enumerate(wanted):
        words[f"way_{number}"] = list(way)
        arms.append(f"(c.terms @> %(way_{number})s::int[]{within})")
    conditions = ["(" + " OR ".join(arms) + ")"]
    # Not a bare column: the index of times must not be taken, since then each chunk's numbers would have to be read.
    for operator, name, value in ((">=", "first", span.first), ("<=", "last", span.last)):
        if value is not None:
            words[name] = value
            conditions.append(f"c.ts + 0 {operator} %({name})s")
    return _statement(plan, below, limit, part, words, conditions, "(c.ts + 0)")


def times(last: int | None, limit: int, part: str) -> tuple[str, dict[str, Any]]:
    """Return the statement for the newest of all chunks' times, up to the given one."""
    until = "" if last is None else " WHERE c.ts <= %(last)s"
    return f"SELECT c.ts FROM chunk{part} c{until} ORDER BY c.ts DESC LIMIT %(limit)s", {"last": last, "limit": limit}


def _statement(
    plan: Plan, below: ChunkKey | None, limit: int, part: str, words: dict[str, Any], conditions: list[str], ts: str
) -> tuple[str, dict[str, Any]]:
    words["limit"] = limit
    wanted = [*conditions, *_holds(plan, words), *_below(below, words, ts), *_filters(plan.query.filters, words, ts)]
    return (
        f"SELECT {_COLUMNS} FROM candidate{part} c"
        f" WHERE {' AND '.join(wanted) or 'true'} ORDER BY {ts} DESC, {_ORDER} LIMIT %(limit)s",
        words,
    )


def _holds(plan: Plan, words: dict[str, Any]) -> list[str]:
    """Return the condition that a chunk holds all texts of one of the ways, as far as its text is known.

    Apart from that of the numbers: together with it, the numbers themselves would be read.
    """
    ways = []
    for number, way in enumerate(plan.literals):
        texts = {f"text_{number}_{at}": storable(text) for at, text in enumerate(way)}
        ways.append(" AND ".join([f"strpos(c.folded, %({name})s) > 0" for name in texts]))
        words |= texts
    return [f"(c.folded IS NULL OR {' OR '.join(f'({way})' for way in ways)})"] if ways and all(ways) else []


def bytes_of(keys: Sequence[ChunkKey], part: str) -> tuple[str, dict[str, Any]]:
    """Return the statement for the bytes of chunks."""
    words: dict[str, Any] = {}
    by_name: dict[str, list[ChunkKey]] = {}
    for key in keys:
        by_name.setdefault(key.conversation_id, []).append(key)
    arms = []
    for number, (name, some) in enumerate(by_name.items()):
        words[f"name_{number}"] = name
        words[f"seqs_{number}"] = sorted({key.seq for key in some})
        words[f"codes_{number}"] = sorted({key.seq * _NUMBERS + key.number for key in some})
        arms.append(
            f"(c.conversation = %(name_{number})s AND c.seq = ANY(%(seqs_{number})s)"
            f" AND c.seq::bigint * {_NUMBERS} + c.number = ANY(%(codes_{number})s::bigint[]))"
        )
    return f"SELECT c.conversation, c.seq, c.number, c.raw FROM chunk{part} c WHERE {' OR '.join(arms)}", words


def _below(below: ChunkKey | None, words: dict[str, Any], ts: str) -> list[str]:
    if below is None:
        return []
    words |= {"ts": below.ts, "name": below.conversation_id, "seq": below.seq, "number": below.number}
    return [
        f"{ts} <= %(ts)s",
        f"({ts} < %(ts)s OR c.conversation < %(name)s OR (c.conversation = %(name)s AND"
        " (c.seq < %(seq)s OR (c.seq = %(seq)s AND c.number < %(number)s))))",
    ]


def _filters(filters: Filters, words: dict[str, Any], ts: str) -> list[str]:
    wanted = []
    # A block that was added while it ran may have ended since.
    for condition, name, value in (
        ("c.conversation = %(conversation)s", "conversation", filters.conversation_id),
        ("(c.exit_status = %(exit_status)s OR c.exit_status IS NULL)", "exit_status", filters.exit_status),
        ("((c.exit_status <> 0) = %(failed)s OR c.exit_status IS NULL)", "failed", filters.failed),
        (f"{ts} >= %(since)s", "since", filters.since),
        (f"{ts} < %(until)s", "until", filters.until),
        ("(c.duration_ms >= %(duration)s OR c.duration_ms IS NULL)", "duration", filters.min_duration_ms),
        ("c.author = %(author)s", "author", filters.author),
        ("c.kind = %(kind)s", "kind", filters.kind),
    ):
        if value is not None:
            wanted.append(condition)
            words[name] = value
    if filters.cwd is not None:
        wanted.append("c.cwd LIKE %(cwd)s")
        words["cwd"] = _escaped(storable(filters.cwd.rstrip("/"))) + "%"
    if filters.part != "any":
        wanted.append(f"c.number {'=' if filters.part == 'command' else '>'} {COMMAND}")
    return wanted


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
