"""No index at all: every chunk is looked at. What is found is what every index must find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockpty.search.index import ChunkKey, Entry, Page, Position, Positions
from blockpty.search.plan import Plan


class Scan:
    """The index that knows nothing, so that the whole record is scanned; also where no other can be had."""

    page = 16
    batch_bytes = 1024 * 1024

    def add(self, entries: Sequence[Entry], positions: Mapping[str, Position]) -> None:
        """Take nothing."""

    def positions(self) -> Positions:
        """Nothing is indexed."""
        return Positions("scan", {})

    def candidates(self, plan: Plan, below: ChunkKey | None, limit: int, timeout_seconds: float) -> Page:
        """Name nothing."""
        return Page((), False, "scan")

    def forget(self, conversation_id: str) -> None:
        """There is nothing to forget."""

    def drop(self) -> None:
        """There is nothing to drop."""

    def close(self) -> None:
        """Nothing is open."""
