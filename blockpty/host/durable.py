"""When stream and timeline of one terminal are forced to the medium.

`process`: never; they survive every process, not the machine. `interval`: `INTERVAL_SECONDS` after the first byte that
is not forced yet, or with `INTERVAL_BYTES` of them. `block`: the same here; the engine forces them before it tells of
the beginning and the end of a block. `always`: before anybody is told that they grew.

The stream goes first: the timeline speaks of it.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from blockpty.host.mending import Forced, boot_id, force, note_forced, read_forced
from blockpty.host.record import StorageFailed

if TYPE_CHECKING:
    from blockpty.host.terminal import Terminal

INTERVAL_SECONDS = 1.0
INTERVAL_BYTES = 1024 * 1024


class Durable:
    def __init__(self, terminal: Terminal, durability: str) -> None:
        self._terminal = terminal
        self._durability = durability
        self._unforced = 0
        self._armed = False
        self._directories = False
        self._failed = False
        self._note = -1
        terminal.stream.forced = durability != "process"

    def begin(self) -> None:
        """Note from where on a loss of power may cost something; raises StorageFailed."""
        terminal, boot = self._terminal, boot_id()
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
        """Close the note."""
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
        if self._durability == "always" or self._unforced >= INTERVAL_BYTES:
            self.force()
        elif not self._armed:
            self._armed = True
            self._terminal.desk.loop.after(INTERVAL_SECONDS, self._due)

    def _due(self) -> None:
        self._armed = False
        if not self._terminal.ended and not self._failed:
            self._terminal.force()

    def force(self) -> None:
        """Force what is not yet; raises StorageFailed."""
        if self._durability == "process" or not self._unforced:
            return
        directory = self._terminal.holding.directory
        forced = Forced(boot_id(), self._terminal.stream.offset, self._terminal.timeline.size)
        try:
            force(self._terminal.stream.fd)
            force(self._terminal.timeline.fd)
            if not self._directories:
                for path in (os.path.join(directory, "stream"), directory, os.path.dirname(directory)):
                    force_directory(path)
                self._directories = True
        except OSError as error:
            self._failed = True
            raise StorageFailed(error, directory) from error
        self._noted(forced)
        self._failed = False
        self._unforced = 0

def force_directory(path: str) -> None:
    """Have the names in a directory on the medium."""
    with contextlib.ExitStack() as stack:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, fd)
        force(fd)
