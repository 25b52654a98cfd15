"""Disk-full episode of one terminal: the entries of a time in which its files could not grow.

`full` is entered with the time at which it was noticed: at once where the timeline still has room (the stream is what
grows fast, and a file system gives space in whole pages), else as the first entry when there is space again.
`resumed` follows when everything that had to wait is in the stream. Keys that stop a program are typed without room for
their entry; it is written before anything is moved, and so where it belongs. This file does not know why the files
could not grow.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from typing import Any

from blockpty.host.context import TerminalContext
from blockpty.host.record import StorageFailed


class DiskFull:
    """The entries that a full disk is due."""

    def __init__(self, terminal: TerminalContext) -> None:
        self._terminal = terminal
        # When it was noticed, in milliseconds; None when all is well.
        self._since: int | None = None
        self._entered = False
        self._errno = ""
        # Entries of what was done all the same: kind, fields, and when. The stream has not grown since.
        self._owed: deque[tuple[str, dict[str, Any], int]] = deque()

    def resume(self, tail: list[dict[str, Any]]) -> None:
        """Go on with what a killed predecessor had entered (`tail`: the shell's last entries)."""
        states = [entry.get("state") for entry in tail if entry["kind"] == "storage"]
        if states and states[-1] == "full" and self._since is None:
            self._since, self._entered = 0, True

    def begins(self, errno: str) -> None:
        """The files cannot grow; `errno` is the name of what the system said."""
        if self._since is None:
            self._errno = errno
            self._since = time.time_ns() // 1_000_000
        with contextlib.suppress(StorageFailed):
            self.enter()

    def owe(self, kind: str, fields: dict[str, Any]) -> None:
        """Enter what happens while nothing can be moved: now if there is room, else before anything is moved."""
        self._owed.append((kind, fields, time.time_ns() // 1_000_000))
        with contextlib.suppress(StorageFailed):
            self.enter()

    def enter(self) -> None:
        """Enter `full`, once, and what is owed; raises StorageFailed. Nothing may be moved before that."""
        # What comes before the spawn entry would belong to the shell before.
        if self._since is None or not self._terminal.shell.announced:
            return
        if not self._entered:
            self._terminal.write("storage", {"state": "full", "errno": self._errno}, ts=self._since)
            self._entered = True
        while self._owed:
            kind, fields, ts = self._owed[0]
            self._terminal.write(kind, fields, ts=ts)
            self._owed.popleft()

    def ends(self) -> None:
        """Enter `resumed` if there was a shortage; raises StorageFailed."""
        if self._since is None:
            return
        self.enter()
        if self._entered:
            self._terminal.write("storage", {"state": "resumed"})
        self._since, self._entered = None, False
