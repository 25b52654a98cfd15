"""Watching a terminal: its bytes as they come, with the sizes in their place, for a client that draws it.

Rules of this file: nothing is queued; the next item is read when the client asks for it. A size stands between the two
bytes that it was changed between. A client that acknowledges what it has drawn is never sent more than a window ahead
of that; one that lags too far gets join points only until it has caught up, with rests between them: the bytes in
between would be drawn for nothing, and a program that floods would wait for that. Those have no rows above the screen,
which the next ones would push away; the last one has them. What is new in the record is read in turn with all other
records, not by each watcher at once. A client that acknowledges nothing is sent to a later cursor, as in `follow`. A
client whose terminal reflows lines in its own way can have a join point after each resize.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from blockpty.api.limits import SCROLLBACK
from blockpty.errors import BadCursor, BadRequest
from blockpty.model.entries import Entry, terminal_size
from blockpty.runtime.joining import JoinPoint
from blockpty.runtime.screens import AFTER_ANOTHER
from blockpty.runtime.stream_pieces import HOLD_SECONDS, StreamPiece
from blockpty.spool.timeline import TimelineReader

if TYPE_CHECKING:
    from blockpty.runtime.follower import RecordFollower

# After a piece of so many bytes others have their turn.
_LARGE: Final = 4 * 1024
# Between two join points of a watcher that lags: so long, so many times what the last one took to make, and at most.
_REST_SECONDS: Final = 0.2
_REST_SHARE: Final = 4
_LONGEST_REST_SECONDS: Final = 1.0
# A rest is over when nothing has been printed for so long, and a client without room is looked at so often.
_PAUSE_SECONDS: Final = 0.05
# A watcher that does not acknowledge its join point is sent bytes after so long.
_DRAWN_SECONDS: Final = 1.0


class SizeChange(Struct, frozen=True):
    """The terminal's size from a cursor on; `fresh`: a shell began there."""

    cursor: int
    cols: int
    rows: int
    fresh: bool


class Restarted(Struct, frozen=True):
    """Output at a cursor that is not in the stream: it makes the terminal ready for another shell."""

    cursor: int
    data: bytes


class Joined(Struct, frozen=True):
    """The whole terminal at a cursor, from which on the bytes follow; `skipped`: those that lie between."""

    point: JoinPoint
    skipped: int = 0


Seen = StreamPiece | SizeChange | Restarted | Joined


class FlowWindow(Struct, frozen=True):
    """At most `size` bytes beyond what was acknowledged; who is further behind than `max_lag` joins again.

    It joins again and again until no more than `size` bytes have come during a rest.
    """

    size: int
    max_lag: int


class TerminalWatch:
    """One watcher of a terminal.

    Args:
        live: the record.
        from_cursor: where to begin; by default the end, or the join point.
        joins: begin with a join point, else with the size.
        scrollback: a join point has at most so many rows above the screen, 0 to 1000.
        window: flow control; None: as fast as it is taken.
        limit_bytes: without a window, who falls back by more than these is sent on.
        redraws: continue at a join point after each resize, however few bytes lie between.
        clock, sleep: the time, and how it passes in a rest.
    """

    def __init__(
        self, live: RecordFollower, from_cursor: int | None = None, *, joins: bool = False,
        scrollback: int = SCROLLBACK, window: FlowWindow | None = None, limit_bytes: int | None = None,
        redraws: bool = False, clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:  # fmt: skip
        self._live = live
        self._from = from_cursor
        self._joins = joins
        self._scrollback = scrollback
        self._window = window
        self._limit = limit_bytes
        self._redraws = redraws
        self._clock = clock
        self._sleep = sleep
        # Up to where of the timeline sizes were sent that no join point has shown yet.
        self._resized = 0
        self._sent = self._base = self._acknowledged = self._joined = 0
        self._shut = False
        # Whether only join points are sent until it has caught up, and whether the next of them is waited for; when
        # the last was made, and when the next may be.
        self._lagging = self._rests = False
        self._joined_at = self._rests_until = 0.0
        self._sizes = _SizeChanges(live, 0)
        self._opened = asyncio.Event()

    def acknowledge(self, cursor: int) -> None:
        """Take note that all up to a cursor has been drawn; raises BadRequest for what was not sent."""
        if cursor > self._sent:
            raise BadRequest(f"the cursor {cursor} lies behind what was sent, {self._sent}")
        if cursor > self._acknowledged:
            self._acknowledged = cursor
            self._base = max(self._base, cursor)
            self._opened.set()

    async def items(self) -> AsyncIterator[Seen]:
        """Yield what there is and then what comes, until the shell has ended or the record is closed.

        Raises BadCursor.
        """
        live = self._live
        live.pump()
        cursor = live.state.classified if self._from is None else self._from
        if not 0 <= cursor <= live.reader.position.offset:
            raise BadCursor(f"the cursor {cursor} lies behind the end of the stream", hint="use a cursor from a result")
        try:
            yield await self._begin(cursor)
            quiet = floods = False
            while True:
                changed = live.subscribers.watch()
                self._opened.clear()
                self._shut = False
                try:
                    if floods:
                        # All who watch were woken at once: one looks in each turn, and others are served in between.
                        await live.turn()
                    floods = False
                    live.notified()
                    # Half a mark is held back until it is known to be one: a secret must not leave in two halves.
                    end = live.state.classified
                    await self._sizes.learn()
                    while (seen := await self._next(end, quiet)) is not None:
                        yield seen
                        if isinstance(seen, StreamPiece) and len(seen.data) >= _LARGE:
                            floods = True
                            await live.turn()
                    if live.closed or (live.state.eof and not self._shut):
                        return
                    if self._rests:
                        quiet = False
                        await self._rest()
                    elif self._shut:
                        quiet = False
                        # A program that floods changes the record a thousand times a second, which makes no room.
                        await _either(changed, self._opened)
                        await _within(_PAUSE_SECONDS, self._opened)
                    else:
                        await asyncio.wait((changed,), timeout=HOLD_SECONDS if self._sent < end else None)
                        quiet = self._sent < end and not changed.done()
                finally:
                    changed.cancel()
        finally:
            self._sizes.close()

    async def _begin(self, cursor: int) -> Seen:
        live = self._live
        if self._joins:
            return self._go_on(await live.joining.point(self._scrollback, cursor), 0)
        self._sent = self._base = cursor
        start = live.points.before(cursor)
        self._sizes = _SizeChanges(live, start.timeline, start.state.size, sized=start.state.instance > 0)
        await self._sizes.learn()
        return self._sizes.before(cursor)

    async def _next(self, end: int, quiet: bool) -> Seen | None:
        """Return what comes next, up to an end of the stream; None when there is nothing, or no room for it."""
        live, cursor = self._live, self._sent
        # Nothing is removed behind the end, and to ask costs two system calls.
        if end > cursor and (first := live.stream.begin) > cursor:
            return self._skip_to(first)
        if (change := self._sizes.due(cursor)) is not None:
            if self._redraws:
                self._resized = self._sizes.position
            return change
        if self._resized:
            point = await live.joining.point(self._scrollback, cursor, self._resized)
            # In front of an echo that is not whole the screen may still be the one before.
            if point.cursor >= cursor and point.timeline >= self._resized:
                return self._go_on(point, 0)
        behind = end - cursor
        if self._window is not None and behind > self._window.max_lag:
            self._lagging = True
        self._rests = self._lagging and not self._is_ignored()
        if self._rests:
            return await self._join_again(end)
        room = self._room(behind)
        self._shut = behind > 0 and room <= 0
        if behind <= 0 or self._shut:
            return None
        if self._window is None and self._limit is not None and behind > self._limit:
            return self._skip_to(end - self._limit // 4)
        stop = min(cursor + room, self._sizes.next_offset(end))
        data = live.pieces.read(cursor, stop, end, is_last=quiet or live.closed or live.state.eof)
        # Before it is sent: it may be acknowledged before the next piece is asked for.
        self._sent += len(data)
        return StreamPiece(cursor, data) if data else None

    async def _join_again(self, end: int) -> Seen | None:
        """Return the next join point of a watcher that lags, with which it may have caught up; None while it rests."""
        assert self._window is not None
        self._shut = self._acknowledged < self._joined or self._clock() < self._rests_until
        if self._shut:
            return None
        cursor, begun = self._sent, self._clock()
        self._lagging = end - cursor > self._window.size
        scrollback = 0 if self._lagging else self._scrollback
        point = await self._live.joining.point(scrollback, max(cursor, end - self._window.size))
        self._joined_at = self._clock()
        rest = max(_REST_SECONDS, _REST_SHARE * (self._joined_at - begun))
        self._rests_until = self._joined_at + min(rest, _LONGEST_REST_SECONDS)
        return self._go_on(point, point.cursor - cursor)

    async def _rest(self) -> None:
        """Return when the next join point may be made: the last is drawn, and a rest is over or the program pauses."""
        while (left := self._rests_until - self._clock()) > 0:
            before = self._live.state.classified
            await self._sleep(min(left, _PAUSE_SECONDS))
            if self._live.state.classified == before:
                self._rests_until = 0.0
        if self._acknowledged < self._joined:
            await _within(self._joined_at + _DRAWN_SECONDS - self._clock(), self._opened)

    def _skip_to(self, cursor: int) -> StreamPiece:
        skipped = cursor - self._sent
        self._sent = self._base = cursor
        return StreamPiece(cursor, b"", skipped)

    def _go_on(self, point: JoinPoint, skipped: int) -> Joined:
        # What was on its way before counts no more.
        self._sent = self._base = self._joined = point.cursor
        self._resized = 0
        self._sizes.close()
        self._sizes = _SizeChanges(self._live, point.timeline)
        return Joined(point, skipped)

    def _is_ignored(self) -> bool:
        """Whether the client has had the time to draw its last join point, and does not say that it has."""
        return self._acknowledged < self._joined and self._clock() >= self._joined_at + _DRAWN_SECONDS

    def _room(self, wanted: int) -> int:
        """Return how many bytes may be sent now; none while it is only a small part of a window."""
        if self._window is None:
            return wanted
        room = self._window.size - (self._sent - self._base)
        return room if room >= min(wanted, self._window.size // 4) else 0


class _SizeChanges:
    """The changes of a terminal's size from a place of the timeline on, each in its place."""

    def __init__(
        self, live: RecordFollower, timeline: int, size: tuple[int, int] = (80, 24), *, sized: bool = True
    ) -> None:
        self._live = live
        # Each watcher reads it for itself: only what may be a size is taken apart.
        self._reader = TimelineReader(live.layout.timeline, timeline, holding=b'"cols":')
        self._entries: deque[tuple[Entry, tuple[int, int], int]] = deque()
        self.position = timeline
        """Behind the last change that was returned, in the timeline."""
        self._size = size
        self._sized = sized

    async def learn(self) -> None:
        """Read on, as far as the record has been read: an entry for a byte that was read is there then."""
        until = self._live.reader.position.timeline
        while self._reader.position < until:
            position = self._reader.position
            for entry, after in self._reader.read_new(until, some=True):
                if (size := terminal_size(entry)) is not None:
                    self._entries.append((entry, size, after))
            if self._reader.position == position:
                return
            if self._reader.position < until:
                await self._live.turn()

    def before(self, cursor: int) -> SizeChange:
        """Return the size in force before a cursor, and forget what lies there."""
        while self._entries and self._entries[0][0].offset < cursor:
            self._size, self._sized = self._entries.popleft()[1], True
        return SizeChange(cursor, *self._size, fresh=False)

    def due(self, cursor: int) -> SizeChange | Restarted | None:
        """Return the next change up to a cursor; None when all have been returned."""
        if not self._entries or self._entries[0][0].offset > cursor:
            return None
        entry, size, after = self._entries[0]
        if entry.kind == "spawn" and self._sized:
            self._sized = False
            return Restarted(cursor, AFTER_ANOTHER)
        self._entries.popleft()
        self._sized, self.position = True, after
        return SizeChange(cursor, *size, entry.kind == "spawn")

    def next_offset(self, end: int) -> int:
        """Return the offset of the next change, at most `end`."""
        return min(end, self._entries[0][0].offset) if self._entries else end

    def close(self) -> None:
        """Close the timeline."""
        self._reader.close()


async def _either(changed: asyncio.Future[None], opened: asyncio.Event) -> None:
    waiting = asyncio.ensure_future(opened.wait())
    try:
        await asyncio.wait((changed, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def _within(seconds: float, opened: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await opened.wait()
