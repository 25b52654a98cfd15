"""When stream and timeline of one terminal are forced to the medium.

`process`: never; they survive every process, not the machine. `interval`: `INTERVAL_SECONDS` after the first byte that
is not forced yet, and never more than `INTERVAL_BYTES` of them. `block`: the same here; the engine forces them before
it tells of the beginning and the end of a block. `always`: before anybody is told that they grew.

Forcing takes milliseconds, in which a program could print a quarter of a mebibyte: so it happens in a thread, begins
with half of what may be missing, and is waited for only when the other half is full. `always` waits in any case.

The stream goes first: the timeline speaks of it.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from blockpty.host.loop import Work
from blockpty.host.mending import Forced, boot_id, force, note_forced, read_forced
from blockpty.host.record import StorageFailed

if TYPE_CHECKING:
    from blockpty.host.terminal import Terminal

INTERVAL_SECONDS = 1.0
INTERVAL_BYTES = 1024 * 1024
BEGIN_BYTES = INTERVAL_BYTES // 2


class Forcing:
    """Puts what a terminal's files hold at this moment on the medium."""

    def __init__(self, terminal: Terminal, *, directories: bool) -> None:
        self.forced = Forced(boot_id(), terminal.stream.offset, terminal.timeline.size)
        self.work: Work | None = None
        # Of our own: the terminal may close its own meanwhile. Opened and closed here and not in the thread, so that
        # a keeper that is forked in between does not keep them.
        self._fds: list[int] = []
        try:
            self._fds += [os.dup(terminal.stream.fd), os.dup(terminal.timeline.fd)]
            if directories:
                directory = terminal.holding.directory
                for path in (os.path.join(directory, "stream"), directory, os.path.dirname(directory)):
                    # One that was removed needs no forcing.
                    with contextlib.suppress(FileNotFoundError):
                        self._fds.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError:
            self.close()
            raise

    def run(self) -> None:
        """Force; raises OSError."""
        for fd in self._fds:
            force(fd)

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()


class Durable:
    """Sees to it that no more is at risk than the durability allows.

    Attributes:
        under_way: what is being forced beside the loop.
    """

    def __init__(self, terminal: Terminal, durability: str) -> None:
        self._terminal = terminal
        self._durability = durability
        # Bytes that are not known to be on the medium, also while they are being forced.
        self._unforced = 0
        self._covered = 0
        self.under_way: Forcing | None = None
        self._armed = False
        # The interval was over while an earlier forcing was under way.
        self._overdue = False
        self._directories = False
        self._failed = False
        self._note = -1
        terminal.stream.forced = durability != "process"

    def begin(self) -> None:
        """Note from where on a loss of power may cost something; raises StorageFailed."""
        terminal, boot = self._terminal, boot_id()
        self._failed = False
        noted = read_forced(terminal.holding.directory)
        if noted is None or noted.boot != boot:
            # What was there when the machine started is on the medium.
            known = noted is not None or not terminal.timeline.size
            sizes = (terminal.stream.offset, terminal.timeline.size) if known else (0, 0)
            self._noted(Forced(boot, *sizes))

    def _noted(self, forced: Forced) -> None:
        directory = self._terminal.holding.directory
        try:
            self._note = note_forced(directory, self._note, forced)
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
        """Take note of bytes that were written; raises StorageFailed when they had to be forced and could not be."""
        if self._durability == "process" or not count:
            return
        self._unforced += count
        if self._failed:
            return
        if self._durability == "always":
            self.force()
            return
        if not self._armed:
            self._armed = True
            self._terminal.desk.loop.after(INTERVAL_SECONDS, self.interval_over)
        if self._unforced >= BEGIN_BYTES:
            self._begin()
        while self._unforced >= INTERVAL_BYTES:
            self._begin()
            assert self.under_way is not None  # it has just begun
            self._wait(self.under_way)

    def interval_over(self) -> None:
        """Begin to force what came in the last interval."""
        self._armed = False
        if self._terminal.ended or self._failed or not self._unforced:
            return
        self._overdue = self.under_way is not None
        try:
            self._begin()
        except StorageFailed as failure:
            self._terminal.not_forced(failure)

    def _begin(self) -> None:
        """Have all that there is forced, unless that is under way for a part of it; raises StorageFailed."""
        if self.under_way is not None:
            return
        try:
            self.under_way = forcing = Forcing(self._terminal, directories=not self._directories)
        except OSError as error:
            self._failed = True
            raise StorageFailed(error, self._terminal.holding.directory) from error
        self._covered = self._unforced
        forcing.work = self._terminal.desk.loop.beside(forcing.run, lambda _: self._ended(forcing))

    def _ended(self, forcing: Forcing) -> None:
        """In the loop; whoever could not wait may have seen it already."""
        if forcing is not self.under_way:
            return
        try:
            self._took_effect(forcing)
            if self._unforced >= BEGIN_BYTES or (self._overdue and self._unforced):
                self._begin()
            self._overdue = False
        except StorageFailed as failure:
            self._terminal.not_forced(failure)

    def _wait(self, forcing: Forcing) -> None:
        assert forcing.work is not None
        forcing.work.wait()
        # Its failure is told: the system tells of it once, and forcing again would then seem to do.
        self._took_effect(forcing)

    def _took_effect(self, forcing: Forcing) -> None:
        """What was under way has come to its end; raises StorageFailed when that was a failure."""
        self.under_way = None
        forcing.close()
        assert forcing.work is not None
        error = forcing.work.error
        if error is not None:
            self._failed = True
            raise StorageFailed(error, self._terminal.holding.directory) from error
        self._unforced -= self._covered
        self._directories = True
        self._noted(forcing.forced)

    def force(self) -> None:
        """Force what is not yet, and return when that is done; raises StorageFailed."""
        if self._durability == "process":
            return
        if self.under_way is not None:
            self._wait(self.under_way)
        if not self._unforced:
            return
        try:
            forcing = Forcing(self._terminal, directories=not self._directories)
            try:
                forcing.run()
            finally:
                forcing.close()
        except OSError as error:
            self._failed = True
            raise StorageFailed(error, self._terminal.holding.directory) from error
        self._noted(forcing.forced)
        self._directories = True
        self._failed = False
        self._unforced = 0
