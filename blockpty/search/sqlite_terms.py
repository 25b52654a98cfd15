"""A plan and its filters in the terms of the SQLite index.

Rules of this file: pure. What is said lets too much through where it must, never too little.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any, Final

from blockpty.search.plan import Plan
from blockpty.search.query import COMMAND, Filters

_GRAM: Final = 3
_MOST_GRAMS: Final = 24
# Signs that no word has and nobody looks for by themselves, among them the NUL that a tokenizer ends at.
_SIGN: Final = "\1"
_SIGNS: Final = re.compile(r"[^\w\x20-\x7e\t\n]")
_CONTROLS: Final = dict.fromkeys((*range(9), *range(11, 32), 127), _SIGN)
# All that a word of ASCII can be followed by in an indexed text, but for letters and digits.
_BORDERS: Final = string.punctuation + " \t\n" + _SIGN


def indexed(folded: str) -> str:
    """Return a folded text as it is indexed: between line ends, so that each of its words has something around it."""
    return f"\n{_without_signs(folded)}\n"


def _without_signs(text: str) -> str:
    # The first way is the faster one, where it will do.
    return text.translate(_CONTROLS) if text.isascii() else _SIGNS.sub(_SIGN, text)


def match_of(plan: Plan) -> str:
    """Return what to ask the full-text table; nothing when all chunks have to be looked at."""
    ways = [_grams(texts) for texts in plan.literals] or [[]]
    short = [condition for word in plan.words if len(word) == _GRAM - 1 for condition in _between(word)]
    ways = [way + short for way in ways]
    if not all(ways):
        return ""
    return " OR ".join(f"({' AND '.join(way)})" for way in ways)


def _grams(texts: Sequence[str]) -> list[str]:
    known = [_without_signs(text) for text in texts]
    grams = dict.fromkeys(text[at : at + _GRAM] for text in known for at in range(len(text) - _GRAM + 1))
    return [_quoted(gram) for gram in list(grams)[:: 1 + len(grams) // _MOST_GRAMS]]


def _between(word: str) -> list[str]:
    """Return what holds where a word stands alone that is too short to be looked for itself."""
    return [
        f"({' OR '.join(_quoted(border + word) for border in _BORDERS)})",
        f"({' OR '.join(_quoted(word + border) for border in _BORDERS)})",
    ]


def _quoted(gram: str) -> str:
    return '"' + gram.replace('"', '""') + '"'


def conditions(filters: Filters) -> tuple[list[str], list[Any]]:
    """Return what the rows of a chunk `k`, its block `b` and its conversation `c` must fulfil, and the values."""
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
    return where, values
