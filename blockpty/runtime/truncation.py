"""Truncation of a record to a budget: what is oldest is dropped while the rest is followed live.

Rules of this file: a record is cut only at a place from which everything can be derived again, and of which that was
noted when the engine was there. The cut itself is `spool/log_start.py`; this file says where, and brings the live
record along. Between any two steps the program may be killed: the next start goes on with the last of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from blockpty.engine.machine_state import MachineState
from blockpty.errors import BlockptyError
from blockpty.files.lines import is_sound
from blockpty.redact.redaction import LONGEST, find_shown
from blockpty.runtime.drawn import DrawnStream
from blockpty.runtime.record_reader import Position
from blockpty.runtime.redactor import masked
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout, make_private
from blockpty.spool.log_start import LogStart, load_log_start, set_log_start, sweep
from blockpty.spool.masking import Mask
from blockpty.spool.storage import read_file
from blockpty.spool.stream import SEGMENT_BYTES, StreamReader

if TYPE_CHECKING:
    from blockpty.runtime.follower import RecordFollower

MIB: Final = 1024 * 1024
# Places at which a record may be cut, in one budget.
PLACES: Final = 16
SMALLEST_MB: Final = 8


def segment_bytes(keep_bytes: int | None) -> int | None:
    """Return how long segments of a stream are to be, so that a budget is exceeded by an eighth at most."""
    return None if keep_bytes is None else min(SEGMENT_BYTES, max(MIB, keep_bytes // 8 // MIB * MIB))


def weight(position: Position) -> int:
    """Return about how many bytes all files of a record take up to a place: what is printed is in two of them."""
    return 2 * (position.offset + position.timeline)


class LogTruncation:
    """Keeps one live record at about so many bytes."""

    def __init__(self, live: RecordFollower, keep_bytes: int) -> None:
        self._live = live
        self._keep = keep_bytes
        self._spacing = keep_bytes // PLACES
        self._points: deque[tuple[int, dict[str, Any]]] = deque()
        self._begin = 0
        self._next = 0
        self._task: asyncio.Task[None] | None = None

    def resume(self) -> None:
        """Resume what an earlier engine noted and began; raises SpoolCorrupt."""
        layout = self._live.layout
        beginning = load_log_start(layout.directory)
        if beginning is not None:
            self._begin = weight(Position(beginning.offset, beginning.timeline))
            self._task = self._live.tasks.start(self._resumed(beginning))
        here = self._live.reader.position
        known = _noted(layout)
        self._points = deque(
            (weight(place), record)
            for place, record in known
            if place.offset <= here.offset and place.timeline <= here.timeline and weight(place) > self._begin
        )
        self._next = max([weight(here), *(one for one, _ in self._points)]) + self._spacing

    def passed(self) -> None:
        """The record has been read on, and everything that follows from it is written."""
        live = self._live
        place = live.reader.position
        now = weight(place)
        if now < self._next or live.state.inputs or live.state.classified != place.offset:
            return
        derived = live.deriver.derived()
        if derived is None:
            return
        self._next = now + self._spacing
        record = {"offset": place.offset, "timeline": place.timeline, "state": live.state.to_dict(), **derived}
        with contextlib.suppress(OSError, BlockptyError):
            # Without it a next engine has fewer places to choose from.
            make_private(live.layout.points)
            checkpoint.replace(live.layout.points / f"{place.offset}-{place.timeline}.json", record)
        self._points.append((now, record))
        if now - self._begin > self._keep and self._task is None:
            self._cut(now)

    def _cut(self, now: int) -> None:
        """Begin to cut at the oldest place that leaves three quarters of the budget; it must leave half."""
        for place, record in self._points:
            if now - place <= self._keep * 3 // 4:
                if now - place >= self._keep // 2:
                    self._task = self._live.tasks.start(self._begin_at(place, record))
                return

    async def _begin_at(self, place: int, record: Mapping[str, Any]) -> None:
        live = self._live
        try:
            # No space, or it was removed: the next place tries again.
            with contextlib.suppress(BlockptyError, OSError):
                beginning = await asyncio.to_thread(_prepare, live.layout, [*live.mask.nonces], record)
                self._begin = place
                while self._points and self._points[0][0] <= place:
                    self._points.popleft()
                await self._finish(beginning)
        finally:
            self._task = None

    async def _resumed(self, beginning: LogStart) -> None:
        try:
            await self._finish(beginning)
        finally:
            self._task = None

    async def _finish(self, beginning: LogStart) -> None:
        live = self._live
        await live.drain()
        if live.begin_at(beginning):
            await asyncio.to_thread(sweep, live.layout, beginning)


def _noted(layout: Layout) -> list[tuple[Position, dict[str, Any]]]:
    """Return the places that were noted, oldest first."""
    found = []
    with contextlib.suppress(OSError):
        for path in layout.points.iterdir():
            with contextlib.suppress(OSError, BlockptyError, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
                content = read_file(path)
                record = orjson.loads(content)
                if path.suffix == ".json" and is_sound(content.rstrip(b"\n")):
                    MachineState.from_dict(record["state"])
                    found.append((Position(int(record["offset"]), int(record["timeline"])), record))
    return sorted(found, key=lambda one: one[0])


def _prepare(layout: Layout, nonces: list[str], record: Mapping[str, Any]) -> LogStart:
    """Let a record begin at a place that was noted; runs in a thread. Raises OSError, SpoolError."""
    stream, mask = StreamReader(layout.stream), Mask(nonces)
    place = Position(record["offset"], record["timeline"])
    drawn = DrawnStream(layout)
    from blockpty.runtime.screens import ScreenReader

    screens = ScreenReader(
        layout, lambda begin, end: masked(drawn, mask, begin, end - begin), settled=drawn.settled
    )
    try:
        for _ in screens.steps(place):
            pass
        beginning = LogStart(
            place.offset, place.timeline, _needed(record["state"], place.offset),
            readable(stream, nonces, place.offset), record["state"], record["journal"], record["files"],
            json.loads(json.dumps(screens.bring(place).dump())),
        )  # fmt: skip
    finally:
        screens.close()
        drawn.close()
        stream.close()
    set_log_start(layout, beginning)
    return beginning


def _needed(state: Mapping[str, Any], offset: int) -> int:
    """Return from where on the stream is read again when a record is derived from a place on."""
    known: list[int] = [offset, *(at for at in (state["delta_begin"], state["settled"]) if at is not None)]
    return min(known)


def readable(stream: StreamReader, nonces: Iterable[str], offset: int) -> int:
    """Return the first offset that may be shown when a stream is cut: what names a secret may lie before the cut.

    That is where the next line begins, behind what is secret or a nonce across the cut; without a line end a whole
    secret later.
    """
    before = min(max(0, offset - stream.begin), LONGEST)
    data = stream.read(offset - before, before + 2 * LONGEST)
    spans = find_shown(data, more=True).spans
    spans += [(at, at + len(nonce)) for nonce in nonces for at in _places(data, nonce.encode())]
    at = _line(data, before)
    for begin, end in sorted(spans):
        if begin < at < end:
            at = _line(data, end)
    return offset - before + at


def _line(data: bytes, at: int) -> int:
    """Return where the first line begins at or behind a place; without one so much later that no secret is cut."""
    if at == 0 or data[at - 1 : at] == b"\n":
        return at
    end = data.find(b"\n", at)
    return end + 1 if end >= 0 else min(len(data), at + LONGEST)


def _places(data: bytes, what: bytes) -> Iterator[int]:
    at = data.find(what)
    while at >= 0:
        yield at
        at = data.find(what, at + 1)
