"""What a row of the table of scenarios is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.scenarios.stage import Done, Stage


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Why a shell has no such situation; printed with the skipped test."""

    reason: str


@dataclass(frozen=True, slots=True)
class Later:
    """What goes wrong in a shell in this version; printed with the skipped test, and called so in the matrix."""

    reason: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row.

    Attributes:
        number: as in the survey; also the order.
        title: the input, in short.
        description: what must be true, in words.
        play: does it on a stage and returns what was observed.
        expected: for each shell what `play` must return, or why it cannot be played there.
        slow: takes more than a few seconds.
        variant: set for a further row with the same number, played with a real program: its name.
        needs: programs without which the row is skipped.
        later: what of it this version cannot show, and what brings it; empty when the row is whole.
    """

    number: int
    title: str
    description: str
    play: Callable[[Stage], Awaitable[Any]]
    expected: Mapping[str, Any]
    slow: bool = False
    variant: str = ""
    needs: tuple[str, ...] = ()
    later: str = ""

    @property
    def name(self) -> str:
        """Return what the row is called in identifiers and in the matrix."""
        return f"{self.number:03d}" + (f"-{self.variant}" if self.variant else "")


def as_case(scenario: Scenario, shell: str, *programs: str) -> object:
    """Return a row in one shell as a parameter of a test, which needs further programs."""
    slow = [pytest.mark.slow] if scenario.slow else []
    marks = [pytest.mark.needs(shell, *programs, *scenario.needs), *slow]
    return pytest.param(scenario, shell, id=f"{scenario.name}-{shell}", marks=marks)


def both(expected: Any) -> dict[str, Any]:
    """The shells agree."""
    return {"bash": expected, "zsh": expected}


def ok(output: bytes = b"", exit_status: int = 0) -> Done:
    """Return how a block ends that came to its end."""
    return Done(exit_status, "ended", output)
