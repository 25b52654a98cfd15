"""Sync policy of one terminal: when its stream and timeline become durable.

`process`: never; they survive every process, not the machine. `interval`: `INTERVAL_SECONDS` after the first byte that
is not durable yet, and never more than `INTERVAL_BYTES` of them. `block`: the same here; the engine syncs them before
it reports the beginning and the end of a block. `always`: before any client is notified that they grew.

A sync takes milliseconds, in which a program could print a quarter of a mebibyte: so it happens in a thread, begins
with half of what may be missing, and is waited for only when the other half is full. `always` waits in any case.

The stream goes first: the timeline speaks of it.
"""

from __future__ import annotations

import contextlib
import os

from blockpty.files.sync import sync_file
from blockpty.host.context import TerminalContext
from blockpty.host.loop import Work
from blockpty.host.record import StorageFailed
from blockpty.host.recovery import SyncedSizes, boot_id, note_synced, read_synced

INTERVAL_SECONDS = 1.0
INTERVAL_BYTES = 1024 * 1024
BEGIN_BYTES = INTERVAL_BYTES // 2


class SyncWork:
    """One sync of what a terminal's files hold at this moment."""

    def __init__(self, terminal: TerminalContext, *, directories: bool) -> None:
        self.sizes = SyncedSizes(boot_id(), terminal.stream.offset, terminal.timeline.size)
        self.work: Work | None = None
        # Of our own: the terminal may close its own meanwhile. Opened and closed here and not in the thread, so that
        # a keeper that is forked in between does not keep them.
        self._fds: list[int] = []
        try:
            self._fds += [os.dup(terminal.stream.fd), os.dup(terminal.timeline.fd)]
            if directories:
                directory = terminal.shell.directory
                for path in (os.path.join(directory, "stream"), directory, os.path.dirname(directory)):
                    # One that was removed needs no sync.
                    with contextlib.suppress(FileNotFoundError):
                        self._fds.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError:
            self.close()
            raise

    def run(self) -> None:
        """Sync; raises OSError."""
        for fd in self._fds:
            sync_file(fd)

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()


class SyncPolicy:
    """Keeps what a loss of power may cost within what the durability allows.

    Attributes:
        under_way: the sync that runs beside the loop.
    """

    def __init__(self, terminal: TerminalContext, durability: str) -> None:
        self._terminal = terminal
        self._durability = durability
        # Bytes that are not known to be durable, also while a sync runs.
        self._unsynced = 0
        self._covered = 0
        self.under_way: SyncWork | None = None
        self._armed = False
        # The interval was over while an earlier sync was under way.
        self._overdue = False
        self._directories = False
        self._failed = False
        self._note = -1
        terminal.stream.syncs = durability != "process"

    def begin(self) -> None:
        """Note from where on a loss of power may cost something; raises StorageFailed."""
        terminal, boot = self._terminal, boot_id()
        self._failed = False
        noted = read_synced(terminal.shell.directory)
        if noted is None or noted.boot != boot:
            # What was there when the machine started is durable.
            known = noted is not None or not terminal.timeline.size
            sizes = (terminal.stream.offset, terminal.timeline.size) if known else (0, 0)
            self._noted(SyncedSizes(boot, *sizes))

    def _noted(self, sizes: SyncedSizes) -> None:
        directory = self._terminal.shell.directory
        try:
            self._note = note_synced(directory, self._note, sizes)
        except OSError as error:
            raise StorageFailed(error, directory) from error

    def end(self) -> None:
        """Close the note; also in a child, which has no threads."""
        if self.under_way is not None:
            self.under_way.close()
            self.under_way = None
        if self._note >= 0:
            os.close(self._note)
            self._note = -1

    def wrote(self, count: int) -> None:
        """Take note of bytes that were written; raises StorageFailed when a sync was due and failed."""
        if self._durability == "process" or not count:
            return
        self._unsynced += count
        if self._failed:
            return
        if self._durability == "always":
            self.sync_now()
            return
        if not self._armed:
            self._armed = True
            self._terminal.recorder.loop.after(INTERVAL_SECONDS, self.interval_over)
        if self._unsynced >= BEGIN_BYTES:
            self._begin()
        while self._unsynced >= INTERVAL_BYTES:
            self._begin()
            assert self.under_way is not None  # it has just begun
            self._wait(self.under_way)

    def interval_over(self) -> None:
        """Begin to sync what came in the last interval."""
        self._armed = False
        if self._terminal.ended or self._failed or not self._unsynced:
            return
        self._overdue = self.under_way is not None
        try:
            self._begin()
        except StorageFailed as failure:
            self._terminal.not_synced(failure)

    def _begin(self) -> None:
        """Begin to sync all that there is, unless a sync is under way; raises StorageFailed."""
        if self.under_way is not None:
            return
        try:
            self.under_way = sync = SyncWork(self._terminal, directories=not self._directories)
        except OSError as error:
            self._failed = True
            raise StorageFailed(error, self._terminal.shell.directory) from error
        self._covered = self._unsynced
        sync.work = self._terminal.recorder.loop.beside(sync.run, lambda _: self._ended(sync))

    def _ended(self, sync: SyncWork) -> None:
        """In the loop; a caller that could not wait may have seen it already."""
        if sync is not self.under_way:
            return
        try:
            self._took_effect(sync)
            if self._unsynced >= BEGIN_BYTES or (self._overdue and self._unsynced):
                self._begin()
            self._overdue = False
        except StorageFailed as failure:
            self._terminal.not_synced(failure)

    def _wait(self, sync: SyncWork) -> None:
        assert sync.work is not None
        sync.work.wait()
        # Its failure is raised: the system reports it once, and another sync would then seem to work.
        self._took_effect(sync)

    def _took_effect(self, sync: SyncWork) -> None:
        """What was under way has come to its end; raises StorageFailed when that was a failure."""
        self.under_way = None
        sync.close()
        assert sync.work is not None
        error = sync.work.error
        if error is not None:
            self._failed = True
            raise StorageFailed(error, self._terminal.shell.directory) from error
        self._unsynced -= self._covered
        self._directories = True
        self._noted(sync.sizes)

    def sync_now(self) -> None:
        """Sync what is not durable yet, and return when that is done; raises StorageFailed."""
        if self._durability == "process":
            return
        if self.under_way is not None:
            self._wait(self.under_way)
        if not self._unsynced:
            return
        try:
            sync = SyncWork(self._terminal, directories=not self._directories)
            try:
                sync.run()
            finally:
                sync.close()
        except OSError as error:
            self._failed = True
            raise StorageFailed(error, self._terminal.shell.directory) from error
        self._noted(sync.sizes)
        self._directories = True
        self._failed = False
        self._unsynced = 0
