"""Reader of a record: stream and timeline, merged in the one order that gives the same result every time.

Rules of this file: the stream's size is taken before the timeline is read. The recorder is one thread, so an entry
that is not in the file then cannot lie before that size; feeding up to it is final.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from blockpty.engine.machine import Machine
from blockpty.engine.machine_state import MachineState
from blockpty.errors import BadCursor
from blockpty.model.entries import Entry
from blockpty.model.events import Event, Signal
from blockpty.spool.layout import Layout
from blockpty.spool.line_reader import is_line_end
from blockpty.spool.log_start import load_log_start
from blockpty.spool.sink import hold
from blockpty.spool.stream import StreamReader
from blockpty.spool.timeline import TimelineReader

STEP: Final = 64 * 1024
# While so many entries wait for their bytes, no more are read.
ENOUGH: Final = 4096


def resume_points(
    saved: Mapping[str, Any] | None, layout: Layout, stream: StreamReader, *, whole: bool = False
) -> list[tuple[MachineState, int]]:
    """Return the states of a checkpoint, each with its place in the timeline.

    None when it cannot be used: damaged, or ahead of the files (they were restored from a copy, or cut). `whole`: the
    derived files must also be, byte for byte, what it vouches for.
    """
    if saved is None:
        return []
    try:
        points = [(MachineState.from_dict(point["state"]), int(point["timeline"])) for point in saved["points"]]
        if (beginning := load_log_start(layout.directory)) is not None:
            points = [
                point for point in points
                if point[0].classified >= beginning.offset and point[1] >= beginning.timeline
            ]  # fmt: skip
        reached = all(
            state.classified <= stream.size() and is_line_end(layout.timeline, timeline) for state, timeline in points
        )
        fit = reached and _fits(points[-1][0], saved["journal"], saved["files"])
        return points if fit and hold(layout, saved["files"], whole=whole) else []
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError):
        return []


def _fits(state: MachineState, journal: Mapping[str, Any], files: Mapping[str, Any]) -> bool:
    """Whether the parts of a checkpoint speak of the same moment."""
    still_open = state.block is not None or state.background is not None
    finished = state.next_block - 1 - still_open
    if files["events"][2] != state.next_event - 1 or max(0, files["blocks"][2]) != finished:
        return False
    if not all(isinstance(nonce, str) for nonce in journal["nonces"]):
        return False
    if journal["output"] is None:
        return not still_open
    name, size, carry = journal["output"]
    return isinstance(carry, str) and files["open"] is not None and [name, size] == files["open"][:2]


class Position(NamedTuple):
    """Position up to which a record was read: stream bytes, and timeline bytes of the entries that were applied."""

    offset: int
    timeline: int


class Step(NamedTuple):
    """Result of one step: what was read, and what the machine made of it."""

    data: bytes
    entry: Entry | None
    events: list[Event]
    signals: list[Signal]
    classified: int
    timeline: int


class RecordReader:
    """A machine going through one conversation's record, by default from where that begins."""

    def __init__(
        self, layout: Layout, stream: StreamReader, state: MachineState | None = None, timeline: int = 0
    ) -> None:
        if state is None and (beginning := load_log_start(layout.directory)) is not None:
            state, timeline = MachineState.from_dict(beginning.state), beginning.timeline
        self.machine = Machine(state)
        self._stream = stream
        self._timeline = TimelineReader(layout.timeline, timeline)
        self._pending: deque[tuple[Entry, int]] = deque()
        # Whether all entries are known that were there when the size was taken.
        self._complete = True
        self._until: int | None = None
        self._size = self.machine.classified
        self.position = Position(self.machine.classified, timeline)

    def look(self, until: Position | None = None) -> None:
        """See how much there is now, or at least as much as `until` says."""
        self._size = max(self._size, self._stream.size())
        self._until = until.timeline if until is not None else None
        if len(self._pending) < ENOUGH:
            self._read_entries()
        else:
            self._complete = False

    def _read_entries(self) -> None:
        """Read some entries on: a long record's are never all in memory, nor read in one go."""
        self._pending += self._timeline.read_new(self._until, some=True)
        self._complete = self._timeline.ended

    def step(self, until: Position | None = None) -> Step | None:
        """Read on; None when there is nothing more (up to `until`)."""
        offset, timeline = self.position
        while not self._pending and not self._complete:
            self._read_entries()
        if (
            self._pending
            and self._pending[0][0].offset <= offset
            and (until is None or self._pending[0][1] <= until.timeline)
        ):
            entry, after = self._pending.popleft()
            events, signals = self.machine.apply(entry)
            self.position = Position(offset, after)
            return Step(b"", entry, events, signals, self.machine.state.classified, after)
        end = min(self._size, offset + STEP) if until is None else min(until.offset, offset + STEP)
        if self._pending and self._pending[0][0].offset > offset:
            end = min(end, self._pending[0][0].offset)
        if end <= offset:
            return None
        data = self._stream.read(offset, end - offset)
        if not data:
            if offset < self._stream.begin:
                raise BadCursor(f"the bytes at {offset} are no longer kept", hint=f"begin at {self._stream.begin}")
            return None
        events, signals = self.machine.feed(data)
        self.position = Position(offset + len(data), timeline)
        return Step(data, None, events, signals, self.machine.state.classified, timeline)

    def sync(self) -> None:
        """Sync what has been read, whichever process wrote it: a file is synced as a whole."""
        self._stream.sync()
        self._timeline.sync()

    def close(self) -> None:
        """Close the timeline; the stream belongs to the caller."""
        self._timeline.close()
