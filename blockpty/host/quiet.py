"""Silence in one terminal: noticed 25 ms after each burst of output, at thresholds that somebody asked for, and once
more when it reads in another way than it did.

This is the one place where the passing of time becomes a fact in the record. It does not know what silence means.

No system tells that a program has turned echo off without printing anything, as `read -s` does. So it is looked at
again, each time after half as long as it has been quiet: what happened is seen before twice the time has gone by, and a
terminal where nothing happens is hardly ever looked at.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from blockpty.host.loop import Timer
from blockpty.host.protocol import SILENCE_MS
from blockpty.host.record import StorageFailed

if TYPE_CHECKING:
    from blockpty.host.terminal import Terminal

BURST_SECONDS = SILENCE_MS / 1000
RETRY_SECONDS = 0.25
# Of the time that it has been quiet, until the terminal is looked at again.
LOOK_AGAIN = 0.5


class Quiet:
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._last_output = self._last_input = time.monotonic()
        self._burst: Timer | None = None
        self._watch: Timer | None = None
        self._again: Timer | None = None
        # How the terminal was read at the last silence: (canonical, echo).
        self._modes: tuple[bool, bool] | None = None
        # Whether the shell was in raw mode then, and did not wait yet.
        self._unsettled = False

    def printed(self) -> None:
        """Output came. The timer is not moved for each piece: it looks again when it is due."""
        self._last_output = time.monotonic()
        self.arm()

    def typing(self) -> None:
        """Input is about to go in: a silence that is due is noted before it, or it would seem to follow from it."""
        if self._burst is not None and time.monotonic() >= self._last_output + BURST_SECONDS:
            self._burst.cancel()
            self._burst_due()

    def typed(self) -> None:
        """Input went in."""
        self._last_input = time.monotonic()
        if self._modes is not None:
            self._look_again()

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

    def take_up(self, silence: dict[str, Any]) -> None:
        """Go on after the entry with which a predecessor's record ends."""
        self._modes = (bool(silence.get("icanon")), bool(silence.get("echo")))
        self._look_again()

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
        state = terminal.state()
        depth = terminal.depth(state)
        # What was sampled speaks of the stream's end only if nothing has come meanwhile.
        before = terminal.stream.offset
        terminal.move(whole=True)
        if terminal.stream.offset != before or terminal.ended or terminal.hung:
            return False
        try:
            terminal.write("silence", {"ms": ms, **state, "depth": depth})
        except StorageFailed:
            return False
        self._modes = (state["icanon"], state["echo"])
        self._unsettled = depth is None and state["foreground"] == "shell" and not state["icanon"]
        self._look_again()
        return True

    def _look_again(self) -> None:
        """Look at the terminal's modes some time after this, if nothing comes or goes in before."""
        if self._again is not None:
            self._again.cancel()
        quiet = time.monotonic() - max(self._last_output, self._last_input)
        self._again = self._terminal.desk.loop.after(max(BURST_SECONDS, quiet * LOOK_AGAIN), self._again_due)

    def _again_due(self) -> None:
        terminal = self._terminal
        self._again = None
        terminal.move(whole=True)
        if terminal.ended or terminal.hung or self._burst is not None:
            return  # the end of that burst is a silence, and looks again
        quiet = time.monotonic() - max(self._last_output, self._last_input)
        changed = terminal.modes() != self._modes
        changed = changed or (self._unsettled and terminal.depth(terminal.state()) is not None)
        if quiet < BURST_SECONDS or not changed or not self._write(int(quiet * 1000)):
            self._look_again()

    def end(self) -> None:
        for timer in (self._burst, self._watch, self._again):
            if timer is not None:
                timer.cancel()
