"""The indexing thread leaves the interpreter to the event loop, and the processors to what floods."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from blockpty.search.index import IndexEntry, IndexWatermark
from blockpty.search.indexing import CalmRecords, Indexing
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


class _Stepped(Scan):
    """An index that takes a batch when it is let, and keeps how far the progress was before and after."""

    batch_bytes = 1

    def __init__(self) -> None:
        self.asked, self.let = threading.Semaphore(0), threading.Semaphore(0)

    def add(self, entries: Sequence[IndexEntry], positions: Mapping[str, IndexWatermark]) -> None:
        self.asked.release()
        self.let.acquire()


def test_it_says_how_far_the_first_filling_is(home: Path, records: Records) -> None:
    index, total, seen = _Stepped(), records.size(), []
    indexing = Indexing(home, lambda: index, tuple)
    try:
        while not indexing.swept.is_set():
            if index.asked.acquire(timeout=0.05):
                assert indexing.progress.what == "index" and indexing.progress.total == total
                seen.append(indexing.progress.done)
                index.let.release()
        assert seen[0] == 0 and seen == sorted(seen) and len(set(seen)) > 10
        # What stands behind the last block of the last conversation is not output.
        assert total * 0.8 < indexing.progress.done <= total
    finally:
        indexing._stop.set()
        index.let.release(1000)
        indexing.stop()


def test_it_can_rest_at_every_chunk(records: Records) -> None:
    rests: list[None] = []
    found = list(batches(records, {}, 1 << 30, rest=lambda: rests.append(None)))
    assert len(rests) >= sum(len(entry.chunks) for batch in found for entry in batch.entries) > 10


class _Sizes:
    """Records of which only the sizes are looked at."""

    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes

    def size(self, name: str) -> int:
        return self.sizes[name]


def test_what_floods_is_indexed_when_it_has_calmed_down_or_at_last() -> None:
    sizes, calm = _Sizes(flood=0, slow=0), CalmRecords()
    records = cast("Records", sizes)
    assert calm.of(records, ["flood", "slow"], 0.0) == ["flood", "slow"]
    found = []
    for tenth in range(1, 250):
        sizes.sizes["flood"] += 1_000_000
        sizes.sizes["slow"] += 1000
        found.append((tenth / 10, calm.of(records, ["flood", "slow"], tenth / 10)))
    assert all("slow" in names for _, names in found)
    assert [when for when, names in found if "flood" in names] == [10.1, 20.2]
    assert calm.of(records, ["flood"], 25.0) == ["flood"], "it has calmed down"
    sizes.sizes["flood"] += 1_000_000
    assert calm.of(records, ["flood", "slow"], 25.2) == ["slow"]


def test_what_was_indexed_and_then_floods_is_not_indexed_at_its_first_look() -> None:
    sizes, calm = _Sizes(flood=1000, other=0), CalmRecords()
    records = cast("Records", sizes)
    assert calm.of(records, ["flood"], 0.0) == ["flood"]
    assert calm.of(records, ["other"], 0.2) == ["other"], "the first has been indexed to its end"
    sizes.sizes["flood"] += 3_000_000
    assert calm.of(records, ["flood"], 5.0) == []
    sizes.sizes["flood"] += 1000
    assert calm.of(records, ["flood"], 5.2) == ["flood"]
    assert calm.of(records, ["other"], 5.4) == ["other"]
    sizes.sizes["flood"] += 1000
    assert calm.of(records, ["flood"], 9.0) == ["flood"]
    calm.keep(["other"])
    assert calm.of(records, ["flood"], 9.2) == ["flood"], "another one of its name"
