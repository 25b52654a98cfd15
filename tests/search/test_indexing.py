"""The indexing thread leaves the interpreter to the event loop, as the worker threads do."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from blockpty.search.index import IndexEntry, IndexWatermark
from blockpty.search.indexing import Indexing
from blockpty.search.ingest import batches
from blockpty.search.records import Records
from blockpty.search.scan import Scan
from tests.support.index_contract import home, records

__all__ = ["home", "records"]


class _Watched(Scan):
    """An index that notes how soon threads are switched while it is filled."""

    def __init__(self) -> None:
        self.intervals: list[float] = []
        self.filled = threading.Event()

    def add(self, entries: Sequence[IndexEntry], positions: Mapping[str, IndexWatermark]) -> None:
        self.intervals.append(sys.getswitchinterval())
        self.filled.set()


def test_threads_are_switched_sooner_while_it_indexes(home: Path) -> None:
    usual, index = sys.getswitchinterval(), _Watched()
    indexing = Indexing(home, lambda: index, tuple)
    try:
        assert index.filled.wait(30)
    finally:
        indexing.stop()
    assert max(index.intervals) < usual == sys.getswitchinterval()


def test_it_can_rest_at_every_chunk(records: Records) -> None:
    rests: list[None] = []
    found = list(batches(records, {}, 1 << 30, rest=lambda: rests.append(None)))
    assert len(rests) >= sum(len(entry.chunks) for batch in found for entry in batch.entries) > 10
