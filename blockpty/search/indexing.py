"""The indexer: a thread beside the event loop that keeps an index up to date.

Rules of this file: one thread, and of all engines of a home one at a time; which one, a lock decides. What it has not
come to yet, a search looks at itself, so nothing depends on how fast it is. It makes way for the event loop, which made
it: the first search of a home begins to index all of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from blockpty.api.progress import Progress
from blockpty.runtime.worker_threads import BackgroundPace, loop_clock, quick_switching
from blockpty.search.backends import database_url
from blockpty.search.index import Index, IndexUnavailable, IndexWatermark
from blockpty.search.ingest import Batch, batches
from blockpty.search.records import Records

LIVE_SECONDS: Final = 0.2
"""How often conversations are looked at that this engine follows."""
SWEEP_SECONDS: Final = 5.0
"""How often all others are."""
# What grows by more in one look is left until it has calmed down, and no longer than this: who prints that much, and
# who watches it, need the processors themselves.
_FLOOD_BYTES: Final = 256 * 1024
_FLOOD_SECONDS: Final = 10.0


class Indexing:
    """A thread that fills an index; `followed` names the conversations that may grow at any moment."""

    def __init__(self, home: Path, open_index: Callable[[], Index], followed: Callable[[], Collection[str]]) -> None:
        self._home = home
        self._open_index = open_index
        self._followed = followed
        self._stop = threading.Event()
        self._lock = -1
        self._positions: dict[str, IndexWatermark] = {}
        self._calm = CalmRecords()
        self._pace = BackgroundPace(loop_clock())
        self.swept = threading.Event()
        """Set when everything that was there at the beginning is indexed, by this engine or by another one."""
        self.progress = Progress()
        """How far it is with that: bytes of the streams. Nothing while another engine does it."""
        self._thread = threading.Thread(target=self._run, name="blockpty-index", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop; blocks until the batch at hand is written."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        records, index = Records(self._home), self._open_index()
        try:
            next_sweep = 0.0
            while not self._stop.is_set():
                if not self._alone():
                    self.swept.set()
                    self._stop.wait(SWEEP_SECONDS)
                    continue
                sweep = time.monotonic() >= next_sweep
                try:
                    if sweep:
                        self._positions = dict(index.positions().of)
                        names = set(records.names())
                        self._calm.keep(names)
                        self._forget_deleted(names, index)
                    self._fill(records, index, None if sweep else self._followed())
                except (IndexUnavailable, OSError):
                    # It has begun anew, or is not there for now; the next sweep sees.
                    next_sweep = 0.0
                    self._stop.wait(1.0)
                    continue
                if sweep:
                    next_sweep = time.monotonic() + SWEEP_SECONDS
                    self.swept.set()
                self._stop.wait(LIVE_SECONDS)
        finally:
            records.close()
            index.close()
            if self._lock >= 0:
                os.close(self._lock)

    def _fill(self, records: Records, index: Index, names: Collection[str] | None) -> None:
        names = self._calm.of(records, records.unsettled(self._positions, names), time.monotonic())
        report = None
        if not self.swept.is_set():
            report = _FillReport(self.progress, {name: records.size(name) for name in names})
        with quick_switching:
            for batch in batches(records, self._positions, index.batch_bytes, names, self._pace.rest):
                if self._stop.is_set():
                    return
                index.add(batch.entries, batch.positions)
                self._positions |= batch.positions
                if report is not None:
                    report.add(batch)
        records.close_others(self._followed())

    def _forget_deleted(self, names: set[str], index: Index) -> None:
        if database_url() is not None:
            return  # a shared catalogue also has conversations of other homes
        for name in set(self._positions) - names:
            index.forget(name)
            del self._positions[name]

    def _alone(self) -> bool:
        """Whether this engine is the one that fills the index; it stays that until it ends."""
        if self._lock < 0:
            path = self._home / "index.lock"
            with contextlib.suppress(OSError):
                lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    os.close(lock)
                else:
                    self._lock = lock
        return self._lock >= 0


class _FillReport:
    """Reports indexed batches to a progress; `sizes`: bytes of each stream that is to be indexed.

    Bytes between blocks are not indexed, so they count as done only when the conversation is.
    """

    def __init__(self, progress: Progress, sizes: dict[str, int]) -> None:
        self._progress = progress
        self._sizes = sizes
        self._done = dict.fromkeys(sizes, 0)
        self._last: str | None = None
        progress.begin("index", sum(sizes.values()))

    def add(self, batch: Batch) -> None:
        """Report a batch; conversations come one after the other."""
        for entry in batch.entries:
            name = entry.conversation_id
            if self._last not in (None, name):
                self._done[self._last] = self._sizes[self._last]
            self._last = name
            output = sum(chunk.end - chunk.begin for chunk in entry.chunks if chunk.number)
            self._done[name] = min(self._sizes[name], self._done[name] + output)
        self._progress.reach(sum(self._done.values()))


class CalmRecords:
    """Which records are not growing fast, as far as that was seen in the looks so far."""

    def __init__(self) -> None:
        # The size of each record when it was last seen with something to index, and since when it has been flooding.
        # Sizes of fully indexed records are kept: the next output is compared with them.
        self._sizes: dict[str, int] = {}
        self._floods: dict[str, float] = {}

    def of(self, records: Records, names: Collection[str], now: float) -> list[str]:
        """Return those of the names that are to be indexed now."""
        sizes = {name: records.size(name) for name in names}
        floods = {
            name: self._floods.get(name, now)
            for name, size in sizes.items()
            if size - self._sizes.get(name, size) > _FLOOD_BYTES
        }
        late = {name for name, since in floods.items() if now - since >= _FLOOD_SECONDS}
        self._sizes |= sizes
        self._floods = {name: since for name, since in floods.items() if name not in late}
        return [name for name in names if name not in floods or name in late]

    def keep(self, names: Collection[str]) -> None:
        """Forget all records but these."""
        self._sizes = {name: size for name, size in self._sizes.items() if name in names}
