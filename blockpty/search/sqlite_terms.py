"""A plan and its filters in the terms of the SQLite index.

Rules of this file: pure. What is said lets too much through where it must, never too little.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any, Final

from blockpty.search.planner import Plan
from blockpty.search.query import COMMAND, Filters

_GRAM: Final = 4
# Signs that no word has and that are not searched for by themselves.
_SIGN: Final = "\1"
_SIGNS: Final = re.compile(r"[^\w\x20-\x7e\t\n]")
_CONTROLS: Final = dict.fromkeys((*range(9), *range(11, 32), 127), _SIGN)
# All that a word of ASCII can be preceded by in an indexed text, but for letters and digits.
_BORDERS: Final = string.punctuation + " \t\n" + _SIGN

Range = tuple[int, int]
"""Four bytes in a row, as a number, and the last such number that is meant as well."""


def indexed(folded: str) -> bytes:
    """Return a folded text as it is indexed: between line ends, so that each of its words has something around it."""
    return f"\n{_without_signs(folded)}\n".encode("utf-8", "replace")


def _without_signs(text: str) -> str:
    # The first way is the faster one, where it will do.
    return text.translate(_CONTROLS) if text.isascii() else _SIGNS.sub(_SIGN, text)


def ways_of(plan: Plan) -> list[list[list[Range]]]:
    """Return what a piece must hold: of one way, of each condition, one of some ranges; [] when all may match."""
    words = [word for word in plan.words if len(word.encode()) == _GRAM - 2]
    short = [[_range((border + word).encode()) for border in _BORDERS] for word in words]
    ways = [[[one] for one in _grams(texts)] + short for texts in plan.literals or [()]]
    return ways if all(ways) else []


def _grams(texts: Sequence[str]) -> list[Range]:
    """Return what holds these texts; first what overlaps least, so that few of them do."""
    found: dict[Range, None] = {}
    known = [data for text in texts if len(data := _without_signs(text).encode("utf-8", "replace")) >= _GRAM - 1]
    for begin in (0, 2, 1, 3):
        for data in known:
            for at in range(begin, max(1, len(data) - _GRAM + 1), _GRAM):
                found[_range(data[at : at + _GRAM])] = None
    return list(found)


def _range(data: bytes) -> Range:
    if len(data) >= _GRAM:
        number = int.from_bytes(data[:_GRAM], "big")
        return number, number
    shift = 8 * (_GRAM - len(data))
    number = int.from_bytes(data, "big") << shift
    return number, number | (1 << shift) - 1


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
