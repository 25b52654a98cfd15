"""Workload of one terminal: whether its shell has been at work for a while, which decides its CPU share.

A short command changes nothing: only shells that keep a core busy matter, and setting a share takes longer than such a
command runs.
"""

from __future__ import annotations

from collections.abc import Callable

from blockpty.host.context import TerminalContext

LONG_SECONDS = 1.0


class Workload:
    """Measures how long a shell has been at work, and notifies the keeper when that changes."""

    def __init__(self, terminal: TerminalContext, clock: Callable[[], float]) -> None:
        self._terminal = terminal
        self._clock = clock
        self._since: float | None = None

    def note(self, *, working: bool) -> None:
        """Note what was seen just now."""
        shell = self._terminal.shell
        if not working:
            self._since = None
        elif self._since is None:
            self._since = self._clock()
        lasts = self._since is not None and (shell.working or self._clock() >= self._since + LONG_SECONDS)
        if lasts is not shell.working:
            shell.working = lasts
            self._terminal.recorder.tell_keeper(shell)
