"""Whether the shell of one terminal has been at work for a while, which decides about its CPU share.

A command of a moment changes nothing: the share is there for those that keep a core busy, and setting it takes longer
than such a command does.
"""

from __future__ import annotations

from collections.abc import Callable

from blockpty.host.context import TerminalContext

LONG_SECONDS = 1.0


class Workload:
    """Sees for how long a shell has been at work, and has the keeper know of what changes."""

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
        if self._since is not None and not shell.working and self._clock() - self._since < LONG_SECONDS:
            return
        if working is not shell.working:
            shell.working = working
            self._terminal.recorder.tell_keeper(shell)
