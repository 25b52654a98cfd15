"""Notification of clients that a conversation grew: without delay for a prompt, every 6 ms for a flood."""

from __future__ import annotations

import os
import sys

from blockpty.host.loop import Loop

WINDOW_SECONDS = 0.002
FLOOD_SECONDS = 0.006
WINDOW_BYTES = 16 * 1024
# What an eventfd counts by one; any eight bytes would do for a pipe.
SIGNAL = (1).to_bytes(8, sys.byteorder)


class Notifier:
    """The clients that are notified when a conversation grows.

    Notified at once as long as little comes (less than 16 KiB in 2 ms), every 6 ms in a flood, which leaves the
    processor to the program that prints; and after every growth at some time.
    """

    __slots__ = ("_end", "_flood", "_waiting", "_window", "fds", "grown")

    def __init__(self) -> None:
        self.fds: list[int] = []
        self.grown = 0
        self._end = 0.0
        self._window = 0
        self._flood = False
        self._waiting = False

    def add(self, fd: int) -> None:
        """Notify one more client, and at once of what was recorded before it could be.

        A client that was handed over to another recorder has looked before it asked, and that one may have recorded the
        end of a shell in between.
        """
        self.fds.append(fd)
        _signal(fd)

    def notify(self, loop: Loop, now: float) -> None:
        """Notify, now or soon, for the `grown` bytes of this turn (0 for an entry alone)."""
        if now >= self._end and not self._waiting:
            self._end = now + WINDOW_SECONDS
            self._window = 0
            self._flood = False
        self._window += self.grown
        self.grown = 0
        if self._waiting:
            return
        if self._flood or self._window >= WINDOW_BYTES:
            self._waiting = True
            loop.after(max(0.0, self._end - now), lambda: self._window_ended(loop.clock()))
        else:
            self._signal()

    def _window_ended(self, now: float) -> None:
        self._waiting = False
        self._flood = self._window >= WINDOW_BYTES
        self._window = 0
        self._end = now + (FLOOD_SECONDS if self._flood else WINDOW_SECONDS)
        self._signal()

    def _signal(self) -> None:
        for fd in self.fds:
            _signal(fd)


def _signal(fd: int) -> None:
    try:
        os.write(fd, SIGNAL)
    except OSError:
        pass  # it is signalled already (EAGAIN), or the client is gone, which its socket will tell
