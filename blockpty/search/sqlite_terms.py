"""A plan and its filters in the terms of the SQLite index.

Rules of this file: pure. What is said lets too much through where it must, never too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from blockpty.search.plan import Plan
from blockpty.search.query import COMMAND, Filters

# A chunk's place is its block's time in units of 64 ms, or the next one that is free. Close numbers keep the lists of
# the full-text tables short (a byte or two from one to the next); what is displaced is put in order when it is read.
_SHIFT: Final = 6
_GRAM: Final = 3
_MOST_GRAMS: Final = 24


def natural_place(ts: int) -> int:
    """Return the place of a chunk whose block began at a time, when nobody has it."""
    return ts >> _SHIFT


def match_of(plan: Plan) -> tuple[str, str]:
    """Return the table to ask and what to ask it; nothing when all chunks have to be looked at."""
    if plan.words:
        return "words", " AND ".join(f'"{word}"' for word in plan.words)
    ways = [" AND ".join(_grams(texts)) for texts in plan.literals]
    if not ways or not all(ways):
        return "", ""
    return "grams", " OR ".join(f"({way})" for way in ways)


def _grams(texts: Sequence[str]) -> list[str]:
    grams = dict.fromkeys(
        text[at : at + _GRAM] for text in texts for at in range(len(text) - _GRAM + 1) if "\0" not in text
    )
    some = list(grams)[:: 1 + len(grams) // _MOST_GRAMS]
    return ['"' + gram.replace('"', '""') + '"' for gram in some]


def conditions(filters: Filters) -> tuple[list[str], list[Any]]:
    where: list[str] = []
    values: list[Any] = []
    for condition, value in (
        ("c.name = ?", filters.conversation_id),
        ("b.ts >= ?", filters.since),
        ("b.ts < ?", filters.until),
        ("b.author = ?", filters.author),
        ("b.kind = ?", filters.kind),
        ("(b.running OR b.exit_status = ?)", filters.exit_status),
        ("(b.running OR b.duration_ms >= ?)", filters.min_duration_ms),
        ("(b.running OR (b.exit_status != 0) = ?)", filters.failed),
    ):
        if value is not None:
            where.append(condition)
            values.append(value)
    if filters.cwd is not None:
        directory = filters.cwd.rstrip("/")
        where.append("(rtrim(b.cwd, '/') = ? OR (b.cwd >= ? AND b.cwd < ?))")
        values += [directory, directory + "/", directory + "0"]
    if filters.part != "any":
        where.append(f"k.number {'=' if filters.part == 'command' else '!='} {COMMAND}")
    if filters.since is not None:
        where.append("k.id >= ?")
        values.append(natural_place(filters.since))
    return where, values
