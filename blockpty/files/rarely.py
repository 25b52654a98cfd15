"""A limit on how often files that are open are checked for having been removed or replaced."""

from __future__ import annotations

from time import monotonic
from typing import Final

SECONDS: Final = 1.0
"""How long a removal may go unnoticed. Nothing is lost meanwhile: an open file keeps what is written to it."""


class Rarely:
    """Says at most once a second that it is time to check again."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = monotonic() + SECONDS

    def due(self) -> bool:
        """Return whether the last check is a second ago; the caller then checks."""
        now = monotonic()
        if now < self._next:
            return False
        self._next = now + SECONDS
        return True
