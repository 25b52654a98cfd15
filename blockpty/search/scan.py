"""The scan, without an index: every chunk is read. What it finds is what every index must find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockpty.search.index import ChunkKey, IndexEntry, IndexWatermark, Page, Positions
from blockpty.search.planner import Plan


class Scan:
    """The index that knows nothing, so that the whole record is scanned; also where no other can be had."""

    page = 16
    batch_bytes = 1024 * 1024

    def add(self, entries: Sequence[IndexEntry], positions: Mapping[str, IndexWatermark]) -> None:
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
