"""A lazy screen: drawn only when it is read.

Rules of this file: what is not drawn yet is a span of the stream and costs nothing; `read` gets its bytes when they are
needed. What is shown is a function of the stream up to `end`, the resizes and the silences, never of when it was read.

`seqno` is where in that record a snapshot was taken: the stream offset plus the number of resizes and silences. It
grows with every change, means the same after a restart, and is what `since` takes. Of the rows it is known when a
look first found them different; so those reported since a seqno are all that changed since, and after a restart
perhaps more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from blockpty.screen import fastforward, frames, redraw
from blockpty.screen.emulator import Emulator
from blockpty.screen.protocol import Line
from blockpty.screen.snapshot import Snapshot
from blockpty.screen.state import HISTORY_ROWS

SYNCHRONIZED: Final = 2026
# Rows above the screen that a snapshot has at least, since they may say what stands in it.
ABOVE: Final = 4
# What is read and drawn at a time.
STEP: Final = 4 * 1024 * 1024


class LazyScreen:
    """The screen of a stream, from a checkpoint or its beginning on.

    `read(begin, end)` must return exactly those bytes of the stream.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        cols: int = 80,
        rows: int = 24,
        *,
        offset: int = 0,
        history_rows: int = HISTORY_ROWS,
    ) -> None:
        self._read = read
        self._emulator = Emulator(cols, rows, history_rows)
        self._drawn = self.end = offset
        self._steps = 0
        self._silent: int | None = None
        self._seen: tuple[Line, ...] = ()
        self._changed_at: list[int] = []

    @property
    def behind(self) -> int:
        """Bytes of the stream that are not drawn yet."""
        return self.end - self._drawn

    @property
    def seqno(self) -> int:
        """Where in the record this is; see above."""
        return self.end + self._steps

    def advance(self, end: int) -> None:
        """Take note that the stream goes on to `end`."""
        self.end = max(self.end, end)

    def catch_up(self, most: int | None = None) -> Emulator:
        """Draw what is not drawn yet, and return the emulator, which the caller does not feed.

        `most` bytes at most, where the caller has other things to do as well; then `behind` says how many remain.
        """
        stop = self.end if most is None else min(self.end, self._drawn + most)
        if self._silent is not None and self._silent <= stop:
            self._draw(self._silent)
            self._silent = None
            if self._emulator.mode(SYNCHRONIZED):
                self._emulator.release()
        self._draw(stop)
        return self._emulator

    def _draw(self, stop: int) -> None:
        while self._drawn < stop:
            end = min(self._drawn + STEP, stop)
            fastforward.feed(self._emulator, self._read(self._drawn, end))
            self._drawn = end

    def resize(self, cols: int, rows: int) -> None:
        """Change the size at this point of the stream."""
        self.catch_up().resize(cols, rows)
        self._steps += 1

    def restart(self, data: bytes) -> None:
        """Draw bytes at this point that are not of the stream: those that make a terminal ready for another program."""
        self.catch_up().feed(data)
        self._steps += 1

    def silence(self, offset: int) -> None:
        """Take note that nothing came for a while at an offset: an update that is still open there is over.

        Of several silences before a snapshot only the last is kept: what an earlier one would have ended, the last
        one ends as well, or its program did.
        """
        self._silent = offset
        self._steps += 1

    def snapshot(self, since: int | None = None) -> Snapshot:
        """Return what is shown now. `since` is the seqno of an earlier snapshot of the same conversation."""
        emulator = self.catch_up()
        frame = emulator.frame()
        now = self.seqno
        if len(frame.lines) != len(self._seen):
            self._changed_at = [now] * len(frame.lines)
        else:
            for y, (line, seen) in enumerate(zip(frame.lines, self._seen, strict=True)):
                if line is not seen and line.runs != seen.runs:
                    self._changed_at[y] = now
        self._seen = frame.lines
        changed = [y for y, at in enumerate(self._changed_at) if since is None or since > now or at > since]
        return Snapshot(frame, now, self.end, tuple(changed), self._above(), emulator.bells, dict(emulator.unhandled))

    def _above(self) -> tuple[Line, ...]:
        emulator = self._emulator
        rows: list[Line] = []
        for row in reversed(() if emulator.alt else emulator.history):
            if len(rows) >= ABOVE and not row.wrapped:
                break
            rows.append(frames.line(emulator, row))
        return tuple(reversed(rows))

    def redraw(self) -> bytes:
        """Return output that makes a terminal of this size what this one is, also in the middle of a sequence."""
        return redraw.redraw(self.catch_up())

    def dump(self) -> dict[str, Any]:
        """Return a checkpoint of this point of the stream, as values that JSON has."""
        return {"offset": self.end, "steps": self._steps, "screen": self.catch_up().dump()}

    @classmethod
    def restore(cls, read: Callable[[int, int], bytes], dumped: dict[str, Any]) -> LazyScreen:
        """Return the screen at a checkpoint.

        Raises:
            ValueError: it was written by a version with another layout.
        """
        made = cls(read, offset=dumped["offset"])
        made._steps = dumped["steps"]
        made._emulator = Emulator.restore(dumped["screen"])
        return made
