"""Joining a terminal that is running: its whole state as output, at a cursor from which the bytes go on.

Rules of this file: the output makes a new terminal of the same size what ours is there, with secrets redacted. It is
drawn in a thread, forwards only, and once for all who want it at one place. Nothing is drawn before a client joins.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from blockpty.api.limits import SCROLLBACK
from blockpty.runtime.drawn import DrawnStream
from blockpty.runtime.record_reader import Position
from blockpty.runtime.redacted_screen import redact_emulator
from blockpty.runtime.redactor import Redactor
from blockpty.runtime.worker_threads import Pace, aside
from blockpty.screen.emulator import Emulator
from blockpty.screen.redraw import redraw
from blockpty.spool.masking import Mask

if TYPE_CHECKING:
    from blockpty.engine.machine_state import MachineState
    from blockpty.runtime.record_reader import RecordReader
    from blockpty.runtime.screens import ScreenReader, Screens
    from blockpty.spool.layout import Layout

# Drawn in one go, which may take long: this is a thread. Of each piece of a flood the last thousand lines are drawn, so
# fewer pieces are less work.
_STEP: Final = 2 * 1024 * 1024


class JoinedRecord(Protocol):
    """Protocol of a record that clients join: the follower."""

    layout: Layout
    state: MachineState
    reader: RecordReader
    mask: Mask

    @property
    def screens(self) -> Screens:
        """What its screen shows at a place."""

    @property
    def redactor(self) -> Redactor:
        """The redaction of all output."""


class JoinPoint(Struct, frozen=True):
    """A terminal at a cursor.

    Attributes:
        cursor: the first byte that `data` does not show; never inside a character.
        seq: number of the next event when it was made.
        cols, rows: size of the terminal.
        data: output that makes a new terminal of that size what this one is.
        timeline: how far the timeline had been applied.
    """

    cursor: int
    seq: int
    cols: int
    rows: int
    data: str
    timeline: int


class Joining:
    """Makes the join points of one record."""

    def __init__(self, live: JoinedRecord) -> None:
        self._live = live
        # Made here, on the event loop: a thread that made them at the same moment would make others.
        self._screens = live.screens
        self._turns = asyncio.Lock()
        # A caller that was cancelled has left, but its thread may need a moment more.
        self._busy = threading.Lock()
        self._stop = False
        self._mask = Mask()
        self._reader: ScreenReader | None = None
        self._stream: DrawnStream | None = None
        self._last: tuple[Position, int, int, Emulator] | None = None
        self._made: dict[int, JoinPoint] = {}

    async def point(self, scrollback: int, at_least: int, timeline: int = 0) -> JoinPoint:
        """Return the newest join point, or one made lately whose cursor is `at_least` this one.

        `scrollback`: at most so many rows above the screen, 0 to 1000. `timeline`: how far that must have been applied
        to one made lately. Cancelling is safe.
        """
        async with self._turns:
            made = self._made.get(scrollback)
            if made is not None and made.cursor >= at_least and made.timeline >= timeline:
                return made
            live = self._live
            place, seq = Position(live.state.classified, live.reader.position.timeline), live.state.next_event
            redactor = Redactor(Mask(live.mask.nonces), live.redactor.redact)
            point, is_new = await aside(lambda pace: self._make(place, seq, scrollback, redactor, pace))
            if is_new:
                self._made.clear()
            self._made[scrollback] = point
            return point

    def _make(
        self, place: Position, seq: int, scrollback: int, redactor: Redactor, pace: Pace
    ) -> tuple[JoinPoint, bool]:
        with self._busy:
            is_new = self._last is None or self._last[0] != place
            if is_new:
                self._draw(place, redactor, pace)
            assert self._last is not None
            _, cursor, timeline, emulator = self._last
            undecoded = emulator.undecoded
            data = redraw(emulator, scrollback)
            data = data[: len(data) - len(undecoded)]
            return JoinPoint(
                cursor - len(undecoded), seq, emulator.cols, emulator.rows, data.decode("utf-8"), timeline
            ), is_new

    def _draw(self, place: Position, redactor: Redactor, pace: Pace) -> None:
        self._mask = redactor.mask
        if self._reader is None or self._stream is None or self._reader.screen.end < self._stream.begin:
            self._forget()
            self._stream = DrawnStream(self._live.layout)
            self._reader = self._screens.with_history(place, self._stream, lambda: self._mask, SCROLLBACK)
        reader = self._reader
        for _ in reader.steps(place, _STEP):
            pace()
            if self._stop:
                raise asyncio.CancelledError
        screen = reader.bring(place)
        copy = Emulator.restore(screen.dump()["screen"])
        # Places before the last one are asked for elsewhere.
        reader.points.clear()
        redact_emulator(copy, redactor, self._stream, screen.end)
        self._last = (place, screen.end, reader.position.timeline, copy)

    def close(self) -> None:
        """Close the files; what is asked for later begins again."""
        self._stop = True
        with self._busy:
            self._forget()
        self._stop = False

    def _forget(self) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._stream is not None:
            self._stream.close()
        self._reader = self._stream = self._last = None
        self._made.clear()
