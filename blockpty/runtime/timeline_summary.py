"""Summary of a recording over its whole time: its blocks, silences and changes, and how much was printed when.

Rules of this file: one pass over the timeline and one over the blocks, without a byte of the stream. Times and cursors
are those of a replay. Memory is bounded: of each kind of thing the last ones are kept and the others counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from blockpty.engine.records import control_of, word
from blockpty.model.block import Block
from blockpty.model.entries import Entry, terminal_size
from blockpty.model.timeline_results import (
    ControlChange,
    Silence,
    TimelineBlock,
    TimelineQuestion,
    TimelineResize,
    TimelineResult,
)
from blockpty.runtime.export.recording_events import Source
from blockpty.spool.line_reader import iterate_lines

T = TypeVar("T")

MOST: Final = 10_000
SILENCE_MS: Final = 1000
_SHOWN_COMMAND: Final = 200
# What was printed within this part of the time so far is counted at one time: a quarter of the smallest bucket.
_FINENESS: Final = 20_000
_QUESTIONS: Final = frozenset({"approval_requested", "approval_decided", "user_input_requested", "user_input_done"})


def summarize(source: Source, buckets: int, pace: Callable[[], None] = lambda: None) -> TimelineResult:
    """Return the summary of a source with so many buckets; `pace` is called for each line that is read."""
    summary = _Summary(source)
    for entry, _ in source.entries(0):
        pace()
        if entry.offset > source.end:
            break
        summary.take(entry)
    summary.finish()
    blocks = _Last[Block]()
    for record in iterate_lines(source.layout.blocks):
        pace()
        block = Block.from_dict(record)
        if (block.span[1] or 0) >= source.begin and block.span[0] <= source.end:
            blocks.add(block)
    known = {block.block_id for block in blocks.kept}
    for block in source.unfinished:
        if block.block_id not in known:
            blocks.add(block)
    shown = []
    for block in blocks.kept:
        pace()
        shown.append(_shown(source.redactor.block(block), summary.begin_ts))
    kinds: dict[str, _Last[Any]] = {
        "blocks": blocks, "silences": summary.silences, "resizes": summary.resizes, "control": summary.control,
        "approvals": summary.approvals,
    }  # fmt: skip
    return TimelineResult(
        summary.begin_ts, summary.duration_ms, source.begin, source.end, summary.in_buckets(buckets), shown,
        [*summary.silences.kept], [*summary.resizes.kept], [*summary.control.kept], [*summary.approvals.kept],
        {name: kind.left_out for name, kind in kinds.items() if kind.left_out},
    )  # fmt: skip


def _shown(block: Block, begin_ts: int) -> TimelineBlock:
    cmd = block.cmd if len(block.cmd) <= _SHOWN_COMMAND else f"{block.cmd[: _SHOWN_COMMAND - 1]}…"
    return TimelineBlock(
        block.block_id, block.seq, block.kind, block.author, cmd, block.state, block.exit_status, block.signal,
        max(0, block.ts_begin - begin_ts), None if block.ts_end is None else max(0, block.ts_end - begin_ts),
        *block.span,
    )  # fmt: skip


class _Last(Generic[T]):
    """The last things of a kind, and how many there were before them."""

    def __init__(self) -> None:
        self.kept: deque[T] = deque(maxlen=MOST)
        self._count = 0

    @property
    def left_out(self) -> int:
        return self._count - len(self.kept)

    def add(self, one: T) -> None:
        self.kept.append(one)
        self._count += 1


class _Summary:
    """Summary of a timeline up to where it was read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.begin_ts = source.ts
        self.duration_ms = 0
        self.silences = _Last[Silence]()
        self.resizes = _Last[TimelineResize]()
        self.control = _Last[ControlChange]()
        self.approvals = _Last[TimelineQuestion]()
        # How far the stream is counted, and when what comes next was printed.
        self._at, self._now = source.begin, 0
        self._printed = 0
        self._started = False
        # Times and how many bytes were printed then, in order.
        self._times: list[int] = []
        self._bytes: list[int] = []

    def take(self, entry: Entry) -> None:
        """Take the next entry."""
        if entry.offset <= self._source.begin:
            self.begin_ts = max(self.begin_ts, entry.ts)
        self._count_to(entry.offset)
        self._now = max(self._now, entry.ts - self.begin_ts)
        if not (entry.kind == "note" and entry.offset == self._source.end):
            # Else it is one of an engine that looked at it later.
            self.duration_ms = self._now
        size = terminal_size(entry)
        if size is not None:
            fresh = entry.kind == "spawn" and self._started
            self._started = self._started or entry.kind == "spawn"
            self.resizes.add(TimelineResize(self._now, entry.offset, *size, fresh))
        note = entry.fields.get("note")
        if entry.kind == "note" and isinstance(note, Mapping):
            self._take_note(entry, note)

    def finish(self) -> None:
        """Count what follows the last entry."""
        self._count_to(self._source.end)
        if self.duration_ms - self._printed > SILENCE_MS:
            self.silences.add(Silence(self._printed, self.duration_ms, self._source.end))

    def in_buckets(self, count: int) -> list[int]:
        """Return how many bytes were printed in each of so many equal parts of the duration."""
        found = [0] * count
        for at, size in zip(self._times, self._bytes, strict=True):
            found[min(count - 1, at * count // max(1, self.duration_ms))] += size
        return found

    def _count_to(self, offset: int) -> None:
        size = offset - self._at
        if size <= 0:
            return
        if self._now - self._printed > SILENCE_MS:
            self.silences.add(Silence(self._printed, self._now, self._at))
        if self._times and self._now - self._times[-1] <= self._now // _FINENESS:
            self._bytes[-1] += size
        else:
            self._times.append(self._now)
            self._bytes.append(size)
        self._at, self._printed = offset, self._now

    def _take_note(self, entry: Entry, note: Mapping[str, Any]) -> None:
        kind, redactor = note.get("type"), self._source.redactor
        if kind == "control":
            now = control_of(note, entry.ts)
            who, halted = redactor.value(now["who"]), redactor.value(now["halted"])
            self.control.add(ControlChange(self._now, entry.offset, now["state"], who, halted))
        elif kind in _QUESTIONS:
            name = word(note, "approval_id") or word(note, "request_id") or ""
            outcome = word(note, "verdict") or word(note, "outcome")
            self.approvals.add(TimelineQuestion(self._now, entry.offset, str(kind), name, outcome))
