"""How much of what is very often, very large or all at once a run of the tests plays (docs/how-to/torture.md).

What is left out of an ordinary run is chosen by its place in its table alone: never by chance, a clock or `hash()`, so
that every run, and every worker of one, has the same tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

LONG = os.environ.get("BLOCKPTY_TORTURE") == "long"

T = TypeVar("T")


def some_of(cases: Iterable[T], every: int = 3, first: int = 0) -> list[T]:
    """Return all cases in a long run, and else each n-th of them from `first` on, and the last one."""
    found = list(cases)
    if LONG:
        return found
    last = len(found) - 1
    return [one for number, one in enumerate(found) if number % every == first % every or number == last]


def in_turn(number: int, shells: Sequence[T]) -> list[T]:
    """Return in which of these shells the n-th case of a table is played.

    All of them in a long run; else the first one, which is bash, and of the others each in its turn.
    """
    first, *others = shells
    return [first, *others] if LONG or not others else [first, others[number % len(others)]]


def one_in_turn(number: int, ones: Sequence[T]) -> list[T]:
    """Return with which of these the n-th case of a table is played: all in a long run, else each in its turn."""
    return list(ones) if LONG else [ones[number % len(ones)]]
