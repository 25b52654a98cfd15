"""When stream and timeline of one terminal are forced to the medium.

`process`: never; they survive every process, not the machine. `interval`: `INTERVAL_SECONDS` after the first byte that
is not forced yet, or with `INTERVAL_BYTES` of them. `block`: the same here; the engine forces them before it tells of
the beginning and the end of a block. `always`: before anybody is told that they grew.

The stream goes first: the timeline speaks of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from blockpty.host.record import StorageFailed

if TYPE_CHECKING:
    from blockpty.host.terminal import Terminal

INTERVAL_SECONDS = 1.0
INTERVAL_BYTES = 1024 * 1024
# File systems that cannot force anything say so; then there is nothing to wait for.
CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


class Durable:
    def __init__(self, terminal: Terminal, durability: str) -> None:
        self._terminal = terminal
        self._durability = durability
        self._unforced = 0
        self._armed = False
        self._directories = False
        self._failed = False
        terminal.stream.forced = durability != "process"

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
        self._failed = False
        self._unforced = 0


def force(fd: int) -> None:
    """Have the content of a file on the medium."""
    try:
        os.fdatasync(fd)
    except OSError as error:
        if error.errno not in CANNOT:
            raise


def force_directory(path: str) -> None:
    """Have the names in a directory on the medium."""
    with contextlib.ExitStack() as stack:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, fd)
        force(fd)
