"""Recording events: a span of the record in its order, with the times at which it happened; what exports are made of.

Rules of this file: read forwards, a piece at a time, so that memory does not grow with the record. A byte has the time
of the last timeline entry at or before it. Nonces and secrets are redacted in every byte of output.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from blockpty.api.progress import Progress
from blockpty.engine.marks import INTRODUCER, MAX_MARK
from blockpty.engine.records import exit_number
from blockpty.engine.views import Unmarked
from blockpty.model.block import Block
from blockpty.model.entries import Entry, terminal_size
from blockpty.runtime.drawn import DrawnStream
from blockpty.runtime.record_reader import Position
from blockpty.runtime.redactor import Redactor
from blockpty.runtime.screens import Screens, screen_result
from blockpty.spool.layout import Layout
from blockpty.spool.line_reader import iterate_lines
from blockpty.spool.stream import StreamReader
from blockpty.spool.timeline import TimelineReader

# Bytes of one moment at most, and how many are read at a time.
PIECE: Final = 64 * 1024
_READ: Final = 256 * 1024
# What may be cut at a place of the stream, and how much of it is looked for.
_NEAR: Final = 2 * MAX_MARK
_CUT: Final = re.compile(
    rb"(?:\x1b(?:\[[0-?]{0,256}[ -/]{0,8}|[\]PX^_][^\x07\x18\x1a\x1b\n]{0,%d}\x1b?|[ -/]{0,8})?"
    rb"|[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z" % MAX_MARK
)


class Output(NamedTuple):
    """Bytes that the terminal showed; `at`: how far the stream has been read with them."""

    ts: int
    data: bytes
    at: int = 0


class Resized(NamedTuple):
    """The terminal got another size; `fresh`: with another shell, which finds it as after another program."""

    ts: int
    cols: int
    rows: int
    fresh: bool = False


class OutputLines(NamedTuple):
    """A large piece of output, whole lines where it has a line end.

    Attributes:
        data: the bytes.
        shown: what they show, where they are whole lines of nothing but text and colours.
    """

    data: bytes
    shown: bytes | None = None


class Began(NamedTuple):
    """The output of a block begins here."""

    ts: int
    block: Block


class Ended(NamedTuple):
    """The output of a block ends here."""

    ts: int
    block: Block


class ShellExited(NamedTuple):
    """The shell ended; `status` is None where it is not known."""

    ts: int
    status: int | None


Moment = Output | Resized | Began | Ended | ShellExited


class Opening(NamedTuple):
    """State where a span begins.

    Attributes:
        ts: time of the first byte.
        cols, rows: size of the terminal.
        shell: name of the shell, "" when none has been started.
        started: whether a shell has been started before this place.
        timeline: position in the timeline after the entries that come before the first byte.
    """

    ts: int
    cols: int
    rows: int
    shell: str
    started: bool
    timeline: int

    def after(self, entry: Entry, position: int) -> Opening:
        """Return how things are after one more entry; `position`: that after its line."""
        size = terminal_size(entry) or (self.cols, self.rows)
        spawned = entry.kind == "spawn"
        shell = str(entry.fields.get("shell", "")) if spawned else self.shell
        return Opening(entry.ts, *size, shell, self.started or spawned, position)


BEFORE_ALL: Final = Opening(0, 80, 24, "", False, 0)
"""How things are where a timeline begins."""


class Source(Struct, frozen=True):
    """A span of a record that does not change any more.

    Attributes:
        conversation_id, layout: whose record.
        redactor: redacts its secrets.
        begin, end: offsets in the stream; `end` is not inside a mark.
        timeline: how far the timeline is read.
        block: the only block that is exported, or None for a span.
        unfinished: blocks that have no end yet.
        ts: when it begins, where that is known better than from the entry before it.
    """

    conversation_id: str
    layout: Layout
    redactor: Redactor
    begin: int
    end: int
    timeline: int
    block: Block | None = None
    unfinished: tuple[Block, ...] = ()
    ts: int = 0

    def opening(self, known: Opening = BEFORE_ALL) -> Opening:
        """Read how things are at the beginning; `known`: how they are at a place that is not behind it."""
        opening = known
        for entry, position in self.entries(known.timeline):
            if entry.offset > self.begin or (self.ts and entry.ts > self.ts):
                break
            opening = opening.after(entry, position)
        return opening._replace(ts=max(opening.ts, self.ts))

    def blocks(self) -> Generator[Block, None, None]:
        """Yield the blocks whose output lies in the span, in order; what runs has no end."""
        if self.block is not None:
            yield self.redactor.block(self.block)
            return
        for record in iterate_lines(self.layout.blocks):
            block = Block.from_dict(record)
            first, last = block.span
            if first > self.end:
                return
            if last is None or (self.begin <= first if last == first else first < self.end and last > self.begin):
                yield self.redactor.block(block)
        yield from (self.redactor.block(block) for block in self.unfinished if block.span[0] < self.end)

    def moments(self, opening: Opening, *, marks: bool = False, ends: bool = False) -> Iterator[Moment]:
        """Yield what happened after the opening; with `marks` our own marks are part of the output.

        With `ends` the ends of blocks come too, each between the output before and the output after it.
        """
        return _SourceReader(self, opening, marks=marks, ends=ends).moments()

    def output(self, begin: int, end: int, *, drawn: bool = False) -> Generator[bytes, None, None]:
        """Yield the bytes of a part of the stream, as far as it lies in the span; `drawn`: as they are drawn."""
        stream = DrawnStream(self.layout) if drawn else StreamReader(self.layout.stream)
        try:
            at, end, progress = max(begin, self.begin), min(end, self.end), Progress.of_caller()
            while at < end and (data := self.redactor.read(stream, at, min(_READ, end - at))):
                at += len(data)
                progress.reach(at - self.begin)
                yield data
        finally:
            stream.close()

    def lines(self, begin: int, end: int, *, drawn: bool = False) -> Generator[OutputLines, None, None]:
        """Yield the same in lines; what they show is only known where they begin at a fresh line, or at the begin."""
        stream = DrawnStream(self.layout) if drawn else StreamReader(self.layout.stream)
        try:
            at, end, fresh, progress = max(begin, self.begin), min(end, self.end), True, Progress.of_caller()
            while at < end:
                data, shown = self.redactor.read_lines(stream, at, min(_READ, end - at))
                if not data:
                    return
                at += len(data)
                progress.reach(at - self.begin)
                yield OutputLines(data, shown if fresh else None)
                fresh = data.endswith(b"\n")
        finally:
            stream.close()

    def drawing(self, opening: Opening) -> Iterator[OutputLines | Resized]:
        """Yield what decides on the screen after the opening: the output without our own marks, and the sizes."""
        unmarked, started = Unmarked(), opening.started
        at, left = self.begin, OutputLines(b"", b"")
        pieces = self.lines(self.begin, self.end, drawn=True)

        def until(offset: int) -> Iterator[OutputLines]:
            nonlocal at, left
            while at < offset:
                left = left if left.data else next(pieces, left)
                count = min(offset - at, len(left.data))
                if not count:
                    return
                data, shown = left
                left = OutputLines(data[count:])
                if count < len(data):
                    data, shown = data[:count], None
                at += count
                certain = unmarked.feed(data)
                yield OutputLines(certain, shown if len(certain) == len(data) else None)

        try:
            for entry, _ in self.entries(opening.timeline):
                if entry.offset > self.end:
                    break
                size = terminal_size(entry)
                if size is not None:
                    yield from until(entry.offset)
                    fresh = entry.kind == "spawn"
                    yield Resized(entry.ts, *size, fresh=fresh and started)
                    started = started or fresh
            yield from until(self.end)
            # Not before: an entry may lie inside a mark.
            if (data := unmarked.finish()) and not data.startswith(INTRODUCER):
                yield OutputLines(data)
        finally:
            pieces.close()

    def screen(self, opening: Opening) -> bytes:
        """Return output that draws what the terminal shows where the span begins."""
        screens = SourceScreens(self)
        try:
            return screens.at(self.begin, opening)
        finally:
            screens.close()

    def at_time(self, ts: int, timeline: int = 0) -> Source:
        """Return the part that comes after a time: from the first byte that the terminal showed later.

        `timeline`: a position up to which no entry is later.
        """
        # What lies before an entry was there when the one before it was written.
        later = (entry.offset for entry, _ in self.entries(timeline) if entry.ts > ts and entry.offset >= self.begin)
        return replace(self, begin=self.whole(min(next(later, self.end), self.end)), ts=ts)

    def whole(self, cursor: int) -> int:
        """Return a place at or before a cursor that cuts no character, control sequence or mark."""
        stream = StreamReader(self.layout.stream)
        try:
            near = stream.read(max(0, cursor - _NEAR), min(cursor, _NEAR))
        finally:
            stream.close()
        cut = _CUT.search(near)
        return cursor if cut is None else max(self.begin, cursor - len(near) + cut.start())

    def entries(self, position: int) -> Iterator[tuple[Entry, int]]:
        """Yield the timeline's entries from a position on, each with the position after it."""
        reader = TimelineReader(self.layout.timeline, position)
        try:
            before = -1
            while reader.position != before:
                before = reader.position
                yield from reader.read_new(self.timeline, some=True)
        finally:
            reader.close()


class SourceScreens:
    """Screens at places of a source, in any order; what one has drawn, the next do not draw again."""

    def __init__(self, source: Source) -> None:
        self._redactor = source.redactor
        self._stream = DrawnStream(source.layout)
        self._screens = Screens(source.layout, self._stream, lambda: source.redactor.mask)

    def at(self, offset: int, opening: Opening) -> bytes:
        """Return output that draws what the terminal shows at an offset with this opening."""
        seen = self._screens.of(Position(offset, opening.timeline))
        shown, _ = self._redactor.screen(seen, self._stream)
        return self._redactor.mask.hide(screen_result(shown, "ansi", []).content.encode())

    def close(self) -> None:
        """Close the files."""
        self._screens.close()
        self._stream.close()


class _SourceReader:
    """One way through a source."""

    def __init__(self, source: Source, opening: Opening, *, marks: bool, ends: bool) -> None:
        self._ends = ends
        self._source = source
        self._opening = opening
        self._ts = opening.ts
        self._unmarked = None if marks else Unmarked()
        self._blocks = source.blocks()
        self._block = next(self._blocks, None)
        self._open: Block | None = None
        self._pieces = source.output(source.begin, source.end, drawn=not marks)
        self._buffer = memoryview(b"")
        self._at = source.begin

    def moments(self) -> Iterator[Moment]:
        started = self._opening.started
        try:
            for entry, _ in self._source.entries(self._opening.timeline):
                if entry.offset > self._source.end:
                    break
                yield from self._until(entry.offset)
                self._ts = max(self._ts, entry.ts)
                size = terminal_size(entry)
                if size is not None:
                    yield Resized(self._ts, *size, fresh=entry.kind == "spawn" and started)
                    started = started or entry.kind == "spawn"
                elif entry.kind == "exit" and self._source.block is None:
                    yield ShellExited(self._ts, exit_number(entry.fields))
            yield from self._until(self._source.end)
            yield from self._borders(hold=False)
            # Not before: an entry may lie inside a mark.
            if self._unmarked is not None and (data := self._unmarked.finish()) and not data.startswith(INTRODUCER):
                yield Output(self._ts, data, self._at)
        finally:
            self._pieces.close()
            self._blocks.close()

    def _until(self, offset: int) -> Iterator[Moment]:
        """Yield what the stream holds up to an offset, and the blocks that begin before it."""
        while True:
            yield from self._borders(hold=self._at >= offset)
            if self._at >= offset:
                return
            if not self._buffer:
                self._buffer = memoryview(next(self._pieces, b""))
                if not self._buffer:
                    return
            stop = min([offset, *self._next_borders()])
            data = bytes(self._buffer[: min(PIECE, stop - self._at)])
            self._buffer = self._buffer[len(data) :]
            self._at += len(data)
            if self._unmarked is not None:
                data = self._unmarked.feed(data)
            if data:
                yield Output(self._ts, data, self._at)

    def _next_borders(self) -> list[int]:
        borders = [] if self._block is None else [self._block.span[0]]
        if self._open is not None and self._open.span[1] is not None:
            borders.append(self._open.span[1])
        return borders

    def _borders(self, *, hold: bool) -> Iterator[Moment]:
        """Yield the ends and begins of blocks at the place that has been read to; with `hold` none before its time.

        Where nothing was printed between an output and the end of its block, the entry that says when comes last.
        """
        while True:
            if self._open is not None and self._open.span[1] is not None and self._open.span[1] <= self._at:
                if hold and (self._open.ts_end or 0) > self._ts:
                    return
                yield Ended(self._ts, self._open)
                self._open = None
            if self._block is None or self._block.span[0] > self._at or (hold and self._block.ts_begin > self._ts):
                return
            if self._block.span[0] >= self._source.begin:
                yield Began(self._ts, self._block)
            self._open = self._block if self._ends else None
            self._block = next(self._blocks, None)
