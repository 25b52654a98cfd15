"""Drain of hidden input: what was typed with echo off and never read is discarded before the shell can read it.

A program that asks for a password may end before it reads the answer. Its input then waits in the terminal, where the
shell would take it for a command, draw it and run it. Only the shell's own hooks run between the end of the program and
the line editor, so they ask: while such input may be waiting there is a FIFO in the conversation's directory, the hook
writes to it and waits until it is gone, and this end flushes the terminal's input queue in between.

Rules: the FIFO is made before the first hidden byte is typed; it is removed after the queue was flushed, never before.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable

from blockpty.host import spawn
from blockpty.host.context import TerminalContext
from blockpty.host.loop import IN

NAME = "drain"
# Where a sandbox goes by files and not by names (Landlock), the FIFO is one that was there when the shell began.
KEPT_NAME = "drain.kept"


class InputDrain:
    """The FIFO of one terminal, while hidden input may be unread."""

    def __init__(self, terminal: TerminalContext, before_flush: Callable[[], None]) -> None:
        self._terminal = terminal
        # Forgets the rest of hidden input that is on its way.
        self._before_flush = before_flush
        self._path = os.path.join(terminal.shell.directory, NAME)
        self._fd = -1

    def resume(self) -> None:
        """Serve the FIFO that a killed predecessor has left."""
        with contextlib.suppress(OSError):
            if stat.S_ISFIFO(os.lstat(self._path).st_mode):
                self._open()

    def expect(self) -> None:
        """Have the shell's next prompt wait until the terminal's input was flushed; called before hidden input."""
        if self._fd >= 0:
            return
        # Without room for it, or in a directory that is gone, the shell reads what is left, as it always did.
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                try:
                    os.link(f"{os.path.dirname(self._path)}/{KEPT_NAME}", self._path)
                except FileNotFoundError:
                    os.mkfifo(self._path, 0o600)
            self._open()

    def _open(self) -> None:
        fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.close(fd)
            return
        self._fd = fd
        self._terminal.recorder.loop.watch(fd, IN, self._asked)

    def _reopen(self) -> None:
        """A writer ended before it wrote: wait for the next, who finds a reader at any moment."""
        old, self._fd = self._fd, -1
        with contextlib.suppress(OSError):
            self._open()
        self._terminal.recorder.loop.forget(old)
        os.close(old)

    def _asked(self, mask: int) -> None:
        try:
            written = os.read(self._fd, 64)
        except BlockingIOError:
            return
        if not written:
            self._reopen()
            return
        self._before_flush()
        spawn.flush_input(self._terminal.shell.master)
        self.end()

    def end(self) -> None:
        """Remove the FIFO: nothing hidden is unread, or no shell is left that could read it."""
        if self._fd < 0:
            return
        self._terminal.recorder.loop.forget(self._fd)
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        os.close(self._fd)
        self._fd = -1
