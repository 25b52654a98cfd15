"""Checkpoint writer: syncs a record's derived files and writes its checkpoint, in a thread wherever possible.

Rules of this file: a checkpoint never vouches for what is not durable (unless nothing is ever synced), one is
written at a time, and never an older one after a newer. A sync takes milliseconds for each file, so it happens in a
thread; what fails there is tried again on the loop, where the failure is raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from blockpty.errors import SpoolError
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout
from blockpty.spool.sink import FileSink

# How long after something new a checkpoint is written; where many records are written to up to `LATEST_SECONDS`, so
# that they come `APART_SECONDS` from each other.
CHECKPOINT_SECONDS: Final = 1.0
APART_SECONDS: Final = 0.1
LATEST_SECONDS: Final = 10.0
# When the next one of a loop may come.
_NEXT: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, float]] = WeakKeyDictionary()


class CheckpointWriter:
    """Saves one record; `vouch` returns what a checkpoint holds now, None while there is nothing to vouch for.

    Attributes:
        syncs: whether anything is synced at all.
        failed: whether something that was to be synced in a thread was not.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, layout: Layout, syncs: bool,
        vouch: Callable[[bool], dict[str, Any] | None],
    ) -> None:  # fmt: skip
        self.syncs = syncs
        self.failed = False
        self._loop = loop
        self._layout = layout
        self._vouch = vouch
        self._file = _CheckpointFile(layout.checkpoint)
        self._timer: asyncio.TimerHandle | None = None
        self._under_way: asyncio.Future[None] | None = None
        # What the checkpoint holds, as far as it was written in a thread.
        self._last: dict[str, Any] | None = None

    def soon(self, sink: FileSink) -> None:
        """Have a checkpoint written within a second or so, within ten seconds where many are due."""
        if self._timer is None:
            now = self._loop.time()
            soon = now + CHECKPOINT_SECONDS
            due = max(soon, _NEXT.get(self._loop, 0.0))
            if due > now + LATEST_SECONDS:
                # Every time until then is taken: from the front again.
                due = soon
            _NEXT[self._loop] = due + APART_SECONDS
            self._timer = self._loop.call_at(due, self._due, sink)

    def stop(self) -> None:
        """Forget the one that is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def now(self, sink: FileSink, *, last: bool) -> None:
        """Write a checkpoint; `last`: nothing comes after it. Where that fails the older one stays."""
        self.stop()
        record = self._vouch(last)
        if record is None or (last and record == self._last and self._under_way is None):
            return
        with contextlib.suppress(OSError, SpoolError), self._file.lock:
            # What is still being written beside the loop is older.
            self._file.newest += 1
            if self._under_way is not None:
                # What it took over may not be durable yet.
                sink.doubt(1)
            if self.syncs:
                sink.sync()
            checkpoint.replace(self._layout.checkpoint, record, durable=self.syncs)

    async def ahead(self, sink: FileSink) -> None:
        """Do in a thread what `now` with `last` would do; `now` has nothing left to do unless something comes between.

        Cancelling leaves it to `now`.
        """
        self.stop()
        while (work := self._under_way) is not None:
            await asyncio.wait((work,))
        if self.syncs and (record := self._vouch(True)) is not None:
            await asyncio.wait((self._beside(sink, record),))

    def sync(self, sink: FileSink) -> None:
        """Have what was written synced soon; when that fails, `failed` is set."""
        if self._under_way is None:
            self._beside(sink, None)

    async def synced(self, sink: FileSink) -> None:
        """Have what was written synced, or return when what is being synced is. Cancelling is safe."""
        if self._under_way is not None:
            await asyncio.wait((self._under_way,))
        else:
            self._beside(sink, None)

    def _due(self, sink: FileSink) -> None:
        self._timer = None
        if not self.syncs:
            self.now(sink, last=False)
        elif self._under_way is not None:
            # What it syncs is not durable yet.
            self.soon(sink)
        else:
            record = self._vouch(False)
            if record is not None:
                self._beside(sink, record)

    def _beside(self, sink: FileSink, record: dict[str, Any] | None) -> asyncio.Future[None]:
        self._file.newest += record is not None
        count, files = sink.unsynced, sink.unsynced_files()
        work = self._loop.run_in_executor(None, self._file.write, files, record, self._file.newest)
        self._under_way = work

        def done(outcome: asyncio.Future[None]) -> None:
            self._under_way = None
            if outcome.cancelled() or outcome.exception() is not None:
                sink.doubt(count)
                self.failed = True
            elif record is not None:
                self._last = record

        work.add_done_callback(done)
        return work


class _CheckpointFile:
    """File that a thread writes: it keeps nothing else of the record alive."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.Lock()
        self.newest = 0
        self._path = path

    def write(self, files: list[int], record: dict[str, Any] | None, number: int) -> None:
        """Sync files, which are closed then, and write a checkpoint unless a newer one was."""
        try:
            for descriptor in files:
                os.fdatasync(descriptor)
        finally:
            for descriptor in files:
                os.close(descriptor)
        if record is not None:
            with self.lock:
                if number == self.newest:
                    checkpoint.replace(self._path, record, durable=True)
