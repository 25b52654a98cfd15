"""Screen matching: the conditions on what the terminal shows, and when they are tried.

Rules of this file: a screen is matched at places that the record names, never at those of the reader: at silences, at
prompts and ends, and while a program draws without a pause at the ticks of the timeline, `SCREEN_MATCH_MS` apart. So
the answer is the same live and on replay. What draws the screen is behind `ScreenSource`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from blockpty.engine.matchers import PatternTimeout, compile_pattern
from blockpty.model.conditions import Changed, Condition, Screen

if TYPE_CHECKING:
    import regex

SCREEN_MATCH_MS: Final = 250


class ScreenSource(Protocol):
    """Draws the terminal at a place of the record; the places asked for never go back.

    Attributes:
        timeline: how far the entries before that place go; its owner sets it.
    """

    timeline: int

    def look(self, offset: int) -> tuple[str, str]:
        """Return the text on the screen at a stream offset, and the hash that `screen` gives for what is shown."""

    def close(self) -> None:
        """Close what is open."""


class ScreenMatch(NamedTuple):
    """The condition that a screen fulfils, and what matched."""

    which: int
    text: str
    groups: dict[str, Any] | None


class ScreenMatcher:
    """The conditions of one wait that are about the screen.

    A screen does not show whether a row ends with a blank that was printed. With `blanks` a pattern may ask for one
    (`[$#] $`): it is tried on the rows as they are, and then with a blank behind each.
    """

    def __init__(self, conditions: Sequence[Condition], *, blanks: bool = False) -> None:
        self._blanks = blanks
        self._wanted: list[tuple[int, regex.Pattern[str] | str]] = []
        for index, condition in enumerate(conditions):
            if isinstance(condition, Screen):
                self._wanted.append((index, compile_pattern(condition.regex, ignore_case=condition.ignore_case)))
            elif isinstance(condition, Changed):
                self._wanted.append((index, condition.hash))
        self._ticked = 0

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def due(self, ts: int) -> bool:
        """Whether it is time to match at a tick of this time (ms)."""
        return ts - self._ticked >= SCREEN_MATCH_MS

    def looked(self, ts: int) -> None:
        """Take note that the screen at the tick of this time was matched to the end."""
        self._ticked = ts

    def find(self, text: str, shown: str, budget: float) -> ScreenMatch | None:
        """Return the first condition that a screen fulfils; raises PatternTimeout when a pattern takes too long."""
        for index, wanted in self._wanted:
            if isinstance(wanted, str):
                if _differs(wanted, shown):
                    return ScreenMatch(index, "", None)
                continue
            try:
                found = wanted.search(text, timeout=budget)
                if found is None and self._blanks:
                    found = wanted.search(text.replace("\n", " \n") + " ", timeout=budget)
            except TimeoutError:
                raise PatternTimeout from None
            if found is not None:
                groups = {str(number): value for number, value in enumerate(found.groups(), 1)}
                return ScreenMatch(index, found.group(), {**groups, **found.groupdict()} or None)
        return None


def _differs(wanted: str, shown: str) -> bool:
    """Whether one of the hashes that are given (characters, drawing, cursor) is not that of the screen."""
    return any(part and part != now for part, now in zip(wanted.split("-"), shown.split("-"), strict=False))
