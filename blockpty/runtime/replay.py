"""Replay: what a record holds, given out again with the times at which it happened.

Rules of this file: a replay is a reader of a span that does not change any more; it types nothing and writes nothing.
`Playback` knows the record and no clock; `Replay` knows the clock, and asks it only how long to wait.
"""

from __future__ import annotations

import asyncio
import math
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from msgspec.structs import replace

from blockpty.errors import BadRequest
from blockpty.model.replay_frames import Moment
from blockpty.runtime.export.recording_events import (
    BEFORE_ALL,
    Began,
    Ended,
    Opening,
    Output,
    Resized,
    ShellExited,
    Source,
    SourceScreens,
)
from blockpty.runtime.worker_threads import Pace, aside

# Read ahead of the clock at most: bytes, and moments.
_AHEAD_BYTES: Final = 256 * 1024
_AHEAD_MOMENTS: Final = 64
# Entries between two places of the timeline from which a seek may read on to know the state at its target.
_KNOWN_ENTRIES: Final = 500
# Who takes moments later than this after their time has the rest of them later too, instead of all at once.
_LATE_SECONDS: Final = 0.25


def check_speed(speed: float) -> float:
    """Return a speed, or raise BadRequest."""
    if not _is_number(speed):
        raise BadRequest(f"the speed cannot be {speed!r}", hint="1 is as it was, 2 twice as fast, 0 does not wait")
    return float(speed)


def check_seconds(name: str, value: float | None) -> float | None:
    """Return a number of seconds, or raise BadRequest."""
    if value is None:
        return None
    if not _is_number(value):
        raise BadRequest(f"{name} cannot be {value!r}", hint="seconds, 0 or more")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


class _SeekPoint(NamedTuple):
    """State after an entry; no entry up to it has a later time or a larger offset."""

    latest_ts: int
    offset: int
    opening: Opening


class Playback:
    """The moments of a span in order, from any place in it; blocks while it reads, and asks no clock.

    Attributes:
        begin_ts: wall clock in ms at which the span begins; duration_ms: until its last moment.
    """

    def __init__(self, source: Source, until_ms: int | None = None) -> None:
        self._source = source
        self._screens = SourceScreens(source)
        self.duration_ms = 0
        # How things are after every so many entries, so that a seek need not read all entries before it.
        self._known = [_SeekPoint(0, 0, BEFORE_ALL)]
        self.begin_ts = source.opening().ts
        opening, latest, furthest = BEFORE_ALL, 0, 0
        for number, (entry, position) in enumerate(source.entries(0), 1):
            if entry.offset > source.end:
                break
            opening = opening.after(entry, position)
            latest, furthest = max(latest, entry.ts), max(furthest, entry.offset)
            if number % _KNOWN_ENTRIES == 0:
                self._known.append(_SeekPoint(latest, furthest, opening))
            if entry.kind == "note" and entry.offset == source.end:
                continue  # of an engine that looked at it later
            self.duration_ms = max(self.duration_ms, entry.ts - self.begin_ts)
        if until_ms is not None:
            self.duration_ms = min(self.duration_ms, until_ms)

    def from_time(self, at_ms: int) -> Iterator[Moment]:
        """Yield the moments after a time, and first the screen as it was then."""
        if at_ms <= 0:
            return self._moments(self._source)
        ts = self.begin_ts + at_ms
        last = bisect_right(self._known, ts, key=attrgetter("latest_ts")) - 1
        return self._moments(self._source.at_time(ts, self._known[last].opening.timeline))

    def from_cursor(self, cursor: int) -> Iterator[Moment]:
        """Yield the moments from a place of the stream on, and first the screen as it was there."""
        begin = self._source.whole(min(max(cursor, self._source.begin), self._source.end))
        return self._moments(replace(self._source, begin=begin))

    def close(self) -> None:
        """Close the files."""
        self._screens.close()

    def blocks(self) -> list[int]:
        """Return where the output of each block begins."""
        begins = [block.span[0] for block in self._source.blocks()]
        return [begin for begin in begins if begin >= self._source.begin]

    def change(self, here: int, count: int) -> int:
        """Return the place so many changes after one, or before it with a negative number."""
        source = self._source
        start = bisect_right(self._known, here, key=attrgetter("offset")) - 1
        while True:
            places = [] if start > 0 else [source.begin]
            for entry, _ in source.entries(self._known[start].opening.timeline):
                if entry.offset > source.end or len(places) - bisect_right(places, here) > abs(count):
                    break
                # Not a place inside a mark, which would lead back to where one is.
                place = max(source.begin, source.whole(entry.offset))
                if not places or place > places[-1]:
                    places.append(place)
            places.append(source.end)
            wanted = bisect_right(places, here) + count - 1 if count > 0 else bisect_left(places, here) + count
            if wanted >= 0 or start == 0:
                return places[max(0, min(wanted, len(places) - 1))]
            start -= 1

    def _moments(self, source: Source) -> Iterator[Moment]:
        last = bisect_right(self._known, source.begin, key=attrgetter("offset")) - 1
        if source.ts:
            last = min(last, bisect_right(self._known, source.ts, key=attrgetter("latest_ts")) - 1)
        opening = source.opening(self._known[last].opening)
        cursor = source.begin
        yield self._screen(source, opening)
        for moment in source.moments(opening, ends=True):
            at = max(0, moment.ts - self.begin_ts)
            if at > self.duration_ms:
                return
            match moment:
                case Output(ts, data, cursor):
                    yield Moment("output", at, ts, cursor, data)
                case Resized(ts, cols, rows, fresh):
                    yield Moment("resize", at, ts, cursor, cols=cols, rows=rows, fresh=fresh)
                case Began(ts, block):
                    cursor = max(cursor, block.span[0])
                    yield Moment("block_begin", at, ts, cursor, block=block)
                case Ended(ts, block):
                    cursor = max(cursor, block.span[1] or 0)
                    yield Moment("block_end", at, ts, cursor, block=block)
                case ShellExited(ts, status):
                    yield Moment("exit", at, ts, cursor, exit_status=status)

    def _screen(self, source: Source, opening: Opening) -> Moment:
        data = self._screens.at(source.begin, opening) if source.begin > 0 else b""
        at = max(0, opening.ts - self.begin_ts)
        return Moment("screen", at, opening.ts, source.begin, data, cols=opening.cols, rows=opening.rows)


class Replay:
    """Moments with their recorded times; an async iterator, and an async context manager that closes it.

    `seek`, `step`, `pause`, `resume`, `speed` and `idle_limit` may be used while it is iterated, by the same task or
    another one. After its end a `seek` or `step` back lets it be iterated again.

    Attributes:
        speed: how many times as fast as it was; 0 does not wait at all.
        idle_limit: seconds to which longer silences are shortened, None for as they were.
    """

    def __init__(
        self,
        source: Source,
        *,
        speed: float = 1.0,
        idle_limit: float | None = None,
        from_seconds: float = 0.0,
        to_seconds: float | None = None,
    ) -> None:
        self._woken = asyncio.Event()
        self.speed = speed
        self.idle_limit = idle_limit
        self._reading = _PlaybackReader(source, check_seconds("to_seconds", to_seconds))
        begin = check_seconds("from_seconds", from_seconds)
        self._target: tuple[str, float] | None = ("seconds", begin or 0.0)
        self._batch: list[Moment] = []
        self._paused = False
        self._last: Moment | None = None
        self._due = 0.0

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the files."""
        self._batch = []
        await asyncio.to_thread(self._reading.close)

    async def duration_seconds(self) -> float:
        """Return how long what is replayed took."""
        return await aside(lambda pace: self._reading.duration_ms()) / 1000

    @property
    def speed(self) -> float:
        """How many times as fast as it was; 0 does not wait at all."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._speed = check_speed(speed)
        self._woken.set()

    @property
    def idle_limit(self) -> float | None:
        """Seconds to which longer silences are shortened; None leaves them as they were."""
        return self._idle_limit

    @idle_limit.setter
    def idle_limit(self, seconds: float | None) -> None:
        self._idle_limit = check_seconds("idle_limit", seconds)
        self._woken.set()

    @property
    def position_seconds(self) -> float:
        """The recorded time of the last moment that was given out."""
        return 0.0 if self._last is None else self._last.at_ms / 1000

    @property
    def cursor(self) -> int | None:
        """The stream offset of the last moment that was given out; None before the first."""
        return None if self._last is None else self._last.cursor

    @property
    def paused(self) -> bool:
        """Whether it stands still."""
        return self._paused

    def pause(self) -> None:
        """Give out nothing until `resume`."""
        self._paused = True
        self._woken.set()

    def resume(self) -> None:
        """Go on; the pause does not count."""
        self._paused = False
        self._woken.set()

    def seek(self, seconds: float | None = None, *, cursor: int | None = None) -> None:
        """Go to a time after the begin, or to a stream offset; the next moment is the screen as it was there."""
        if (seconds is None) == (cursor is None):
            raise BadRequest("give either seconds or cursor")
        if cursor is not None:
            self._target = ("cursor", cursor)
        else:
            self._target = ("seconds", check_seconds("seconds", seconds) or 0.0)
        self._woken.set()

    def step(self, blocks: int = 1, *, changes: int | None = None) -> None:
        """Go to where a block begins: forwards, or with a negative number back; 0 is the begin of the one that runs.

        `changes`: so many changes of what is shown on, or back, instead.
        """
        if changes is not None:
            before = self._target[1] if self._target is not None and self._target[0] == "changes" else 0
            self._target = ("changes", before + changes)
            self._woken.set()
            return
        before = self._target[1] if self._target is not None and self._target[0] == "blocks" else 0
        self._target = ("blocks", before + blocks)
        self._woken.set()

    async def __anext__(self) -> Moment:
        while True:
            self._woken.clear()
            if self._target is not None:
                await self._turn()
            if not self._batch:
                self._batch = await aside(self._reading.pull, long=False)
                if self._target is not None:
                    continue
                if not self._batch:
                    raise StopAsyncIteration
            moment = self._batch[0]
            # The screen after a seek is shown at once, also while it stands still.
            if (self._is_place(moment) or not await self._early(moment)) and self._target is None:
                break
        del self._batch[0]
        self._last = moment
        return moment

    def _is_place(self, moment: Moment) -> bool:
        """Whether a moment says where a seek has led to: the screen, and the block that begins right there."""
        if moment.type == "screen":
            return True
        last = self._last
        at_screen = last is not None and (last.type, last.cursor) == ("screen", moment.cursor)
        return moment.type == "block_begin" and at_screen

    async def _turn(self) -> None:
        assert self._target is not None
        (kind, value), self._target = self._target, None
        here = 0 if self._last is None else self._last.cursor
        await aside(lambda pace: self._reading.turn(kind, value, here))
        self._batch = []
        self._last = None
        self._due = self._now()

    async def _early(self, moment: Moment) -> bool:
        """Wait until a moment is due; True when something else was asked for meanwhile."""
        if self._paused:
            begun = self._now()
            await self._woken.wait()
            self._due += self._now() - begun
            return True
        gap = 0.0
        if self._last is not None and self.speed > 0:
            gap = max(0, moment.at_ms - self._last.at_ms) / 1000
            gap = (gap if self.idle_limit is None else min(gap, self.idle_limit)) / self.speed
        due = self._due + gap
        if (left := due - self._now()) > 0 and await self._woken_within(left):
            return True
        self._due = due if self._now() - due < _LATE_SECONDS else self._now()
        return False

    async def _woken_within(self, seconds: float) -> bool:
        """Wait so long; True when it was shorter because something was asked for."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        return True

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


class _PlaybackReader:
    """A playback that is read in a thread, one call at a time."""

    def __init__(self, source: Source, until: float | None) -> None:
        self._source = source
        self._until = until
        self._playback: Playback | None = None
        self._moments: Iterator[Moment] = iter(())
        # A call whose task was cancelled goes on in its thread.
        self._lock = threading.Lock()

    def duration_ms(self) -> int:
        with self._lock:
            return self._opened().duration_ms

    def _opened(self) -> Playback:
        if self._playback is None:
            self._playback = Playback(self._source, None if self._until is None else round(self._until * 1000))
        return self._playback

    def turn(self, kind: str, value: float, here: int) -> None:
        """Go elsewhere; `here` is where the last moment was."""
        with self._lock:
            playback = self._opened()
            self._close()
            if kind == "seconds":
                self._moments = playback.from_time(round(value * 1000))
            elif kind == "cursor":
                self._moments = playback.from_cursor(int(value))
            elif kind == "changes":
                self._moments = playback.from_cursor(playback.change(here, int(value)) if value else here)
            else:
                self._moments = playback.from_cursor(self._block(playback.blocks(), int(value), here))

    def _block(self, begins: list[int], count: int, here: int) -> int:
        if count > 0:
            later = [begin for begin in begins if begin > here]
            return later[count - 1] if len(later) >= count else self._source.end
        earlier = [begin for begin in begins if begin <= here]
        return earlier[count - 1] if len(earlier) >= 1 - count else self._source.begin

    def pull(self, pace: Pace) -> list[Moment]:
        """Return the next few moments, none at the end."""
        with self._lock:
            batch: list[Moment] = []
            size = 0
            for moment in self._moments:
                pace.rest()
                batch.append(moment)
                size += len(moment.data)
                if size >= _AHEAD_BYTES or len(batch) >= _AHEAD_MOMENTS:
                    break
            return batch

    def close(self) -> None:
        with self._lock:
            self._close()
            self._moments = iter(())
            if self._playback is not None:
                self._playback.close()
                self._playback = None

    def _close(self) -> None:
        close = getattr(self._moments, "close", None)
        if close is not None:
            close()
