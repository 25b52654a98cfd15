"""The query planner: the texts that a chunk must hold, or it cannot match.

Rules of this file: a plan may let too much through, never too little. Everything in it is folded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from blockpty.search.query import Query
from blockpty.search.text import fold, words_of

try:
    from re import _constants as op  # type: ignore[attr-defined]  # the parser of patterns has no public name
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # then a regular expression is looked for everywhere
    parser = None

Seems = Callable[[Sequence[tuple[str, Sequence[tuple[int, int]]]], Sequence[int]], Sequence[int]]
"""See `Plan.seems`."""
# More ways than these to satisfy an expression, and asking the index costs more than it saves.
_WAYS: Final = 16
_DEPTH: Final = 32
# Where `regex` reads more into a pattern than the parser of `re`: fuzzy parts, POSIX classes, operations on sets.
_BEYOND: Final = re.compile(r"\{[^0-9,]|\[:|\[[^\]]*(?:\[|--|&&|\|\||~~)")


class Plan(Struct, frozen=True):
    """A query in the terms of an index.

    Attributes:
        query: the query itself, with its filters.
        literals: ways to match: the folded text of a chunk must hold all texts of at least one of them. Empty when
            every chunk may match. Texts are 1 character or more; an index may leave out short ones.
        words: folded words, all of which must stand in the chunk, with no letter or digit touching them.
        seems: returns which of some spans may match, given for each conversation with its name, and of all of them, one
            after another, the kinds, as `Window.kind`. Each is whole lines. It returns their places in this order, in
            none themselves. For an index that wants to leave out what does not match; None: that is not known.
        found: what an index has found out for one page of candidates and will need for the next; it alone knows it.
    """

    query: Query
    literals: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    seems: Seems | None = None
    found: dict[Any, Any] = field(default_factory=dict)


def plan(query: Query) -> Plan:
    """Return the plan of a query."""
    if query.mode == "regex":
        ways = _required(query.text, query.folds)
        return Plan(query, tuple(tuple(sorted(way)) for way in ways) if all(ways) else (), ())
    if query.mode == "substring":
        return Plan(query, ((fold(query.text),),), ())
    terms = fold(query.text).split()
    return Plan(query, (tuple(terms),), tuple(dict.fromkeys(word for term in terms for word in words_of(term))))


def _required(pattern: str, folds: bool) -> list[frozenset[str]]:
    """Return the ways to match a pattern, each as the texts it needs; one empty way when nothing is known."""
    if parser is None or _BEYOND.search(pattern):
        return [frozenset()]
    try:
        parsed = parser.parse(pattern, re.IGNORECASE if folds else 0)
    except (re.error, RecursionError, OverflowError):
        # What only `regex` understands.
        return [frozenset()]
    return _sequence(parsed, 0)


def _sequence(items: Iterable[Any], depth: int) -> list[frozenset[str]]:
    ways: list[frozenset[str]] = [frozenset()]
    run: list[str] = []

    def end_run() -> None:
        nonlocal ways
        if run:
            text = fold("".join(run))
            ways = [way | {text} for way in ways]
            run.clear()

    for kind, value in items:
        if kind is op.LITERAL and not 0xD800 <= value < 0xE000:
            run.append(chr(value))
        elif kind is not op.AT:  # a place between two characters keeps them neighbours
            end_run()
            ways = _both(ways, _item(kind, value, depth + 1))
    end_run()
    return ways


def _item(kind: Any, value: Any, depth: int) -> list[frozenset[str]]:
    if depth <= _DEPTH:
        if kind is op.SUBPATTERN:
            return _sequence(value[3], depth)
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT) and value[0] > 0:
            return _sequence(value[2], depth)
        if kind is op.ATOMIC_GROUP:
            return _sequence(value, depth)
        if kind is op.BRANCH:
            ways = [way for branch in value[1] for way in _sequence(branch, depth)]
            return ways if all(ways) and len(ways) <= _WAYS else [frozenset()]
    return [frozenset()]


def _both(first: Sequence[frozenset[str]], second: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    ways = list(dict.fromkeys(one | other for one in first for other in second))
    return ways if len(ways) <= _WAYS else list(first)
