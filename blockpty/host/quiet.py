"""Silence in one terminal: noticed 25 ms after each burst of output, and at thresholds that somebody asked for.

This is the one place where the passing of time becomes a fact in the record. It does not know what silence means.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from blockpty.host.loop import Timer
from blockpty.host.protocol import SILENCE_MS
from blockpty.host.record import StorageFailed

if TYPE_CHECKING:
    from blockpty.host.terminal import Terminal

BURST_SECONDS = SILENCE_MS / 1000
RETRY_SECONDS = 0.25


class Quiet:
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._last_output = self._last_input = time.monotonic()
        self._burst: Timer | None = None
        self._watch: Timer | None = None

    def printed(self) -> None:
        """Output came. The timer is not moved for each piece: it looks again when it is due."""
        self._last_output = time.monotonic()
        self.arm()

    def typed(self) -> None:
        """Input went in."""
        self._last_input = time.monotonic()

    def arm(self, seconds: float = BURST_SECONDS) -> None:
        """See to it that the end of a burst is noticed."""
        if self._burst is None:
            self._burst = self._terminal.desk.loop.after(seconds, self._burst_due)

    def _burst_due(self) -> None:
        terminal = self._terminal
        self._burst = None
        # What came while we were busy elsewhere is no silence.
        terminal.move(whole=True)
        if terminal.ended or terminal.hung:
            return
        # The echo of what was typed into the burst takes the kernel a moment: a silence just before it would end the
        # search for it. Typing on and on must not keep the burst open, though.
        since = min(max(self._last_output, self._last_input), self._last_output + BURST_SECONDS)
        left = since + BURST_SECONDS - time.monotonic()
        if left > 0:
            self.arm(left)
        elif not self._write(SILENCE_MS):
            self.arm(RETRY_SECONDS)

    def watch(self, ms: int) -> None:
        """Have the next quiet time of `ms` (no output, no input) noted, once; at once if it has been so already."""
        terminal = self._terminal
        terminal.holding.watches = sorted({*terminal.holding.watches, ms})
        terminal.desk.tell_keeper(terminal.holding)
        self.look()

    def look(self) -> None:
        """Note the watched times that have been reached, and wait for the next."""
        terminal = self._terminal
        terminal.move(whole=True)
        watches = terminal.holding.watches
        while watches and not terminal.ended and self._left() <= 0 and self._write(watches[0]):
            watches.pop(0)
            terminal.desk.tell_keeper(terminal.holding)
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if watches and not terminal.ended:
            left = self._left()
            self._watch = terminal.desk.loop.after(left if left > 0 else RETRY_SECONDS, self.look)

    def _left(self) -> float:
        """Seconds until the nearest watched time is reached, if nothing comes or goes in."""
        since = max(self._last_output, self._last_input)
        return since + self._terminal.holding.watches[0] / 1000 - time.monotonic()

    def _write(self, ms: int) -> bool:
        terminal = self._terminal
        if terminal.failed is not None:
            return False
        try:
            terminal.write("silence", {"ms": ms, **terminal.state()})
        except StorageFailed:
            return False
        return True

    def end(self) -> None:
        for timer in (self._burst, self._watch):
            if timer is not None:
                timer.cancel()
