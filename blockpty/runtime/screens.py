"""Screens of a record: a pure function of the stream up to a place, and of the sizes in the timeline before it.

Rules of this file: nothing is drawn before it is asked for, and nothing here waits. A record is drawn forwards only;
what has been drawn leaves checkpoints, from which an earlier place is drawn again. An update that a program has not
finished (2026) is over when the timeline says silence.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from blockpty.errors import BadRequest
from blockpty.model.entries import Entry, terminal_size
from blockpty.model.results import ScreenResult
from blockpty.runtime.drawn import DrawnStream
from blockpty.runtime.record_reader import Position
from blockpty.runtime.redactor import Redactor, masked
from blockpty.screen import scrollback, snapshot
from blockpty.screen.lazy import LazyScreen
from blockpty.screen.protocol import Line
from blockpty.screen.snapshot import Snapshot
from blockpty.screen.state import HISTORY_ROWS
from blockpty.spool.layout import Layout
from blockpty.spool.log_start import load_log_start
from blockpty.spool.masking import Mask
from blockpty.spool.timeline import TimelineReader

# How much of the stream lies between two checkpoints.
SPACING: Final = 32 * 1024 * 1024
# How much of the stream there must be below a checkpoint for the lines above a screen to be looked for there.
NEAR: Final = 1024 * 1024
# Drawn in one go; 10 ms or so.
STEP: Final = 512 * 1024
# What a new shell finds in a terminal that another one has left: the main screen, and no mode of a program.
AFTER_ANOTHER: Final = b"\x1b[?1049l\x1b[?1000;1002;1003;1004;1006;2004;2026l\x1b[<99u\x1b[!p\x1b[?25h\r"


class Point(NamedTuple):
    """A checkpoint: where in the record it is, and what was shown."""

    position: Position
    dumped: Mapping[str, Any]


def _first(layout: Layout) -> Point | None:
    """Return what was shown where a record begins whose first part is not kept."""
    beginning = load_log_start(layout.directory)
    if beginning is None or beginning.screen is None:
        return None
    return Point(Position(beginning.offset, beginning.timeline), beginning.screen)


class ScreenReader:
    """Draws one record, forwards, by default from where that begins."""

    def __init__(
        self,
        layout: Layout,
        read: Callable[[int, int], bytes],
        start: Point | None = None,
        settled: Callable[[int], int] = int,
        history_rows: int = HISTORY_ROWS,
    ) -> None:
        self._settled = settled
        self._pending: deque[tuple[Entry, int]] = deque()
        self.position = Position(0, 0)
        self._sized = False
        self.screen = LazyScreen(read, history_rows=history_rows)
        start = start or _first(layout)
        if start is not None:
            self._sized = True
            self.position = start.position
            emulator = {**start.dumped["screen"], "history_rows": history_rows}
            self.screen = LazyScreen.restore(read, {**start.dumped, "screen": emulator})
        self._timeline = TimelineReader(layout.timeline, self.position.timeline)
        self.points: list[Point] = []
        self._spaced = self.position.offset

    def bring(self, until: Position) -> LazyScreen:
        """Draw up to a place that is not before this one, and return the screen of that place.

        It stops in front of the echo of a command that is not whole.
        """
        until = Position(max(self.position.offset, self._settled(until.offset)), until.timeline)
        self._pending += self._timeline.read_new(until.timeline)
        while self._pending and self._pending[0][1] <= until.timeline and self._pending[0][0].offset <= until.offset:
            entry, after = self._pending.popleft()
            self._advance(entry.offset)
            self.position = Position(max(self.position.offset, entry.offset), after)
            if entry.kind == "silence":
                self.screen.silence(entry.offset)
            elif entry.kind in ("spawn", "resize"):
                self._resize(entry)
        self._advance(until.offset)
        self.position = Position(until.offset, self.position.timeline)
        return self.screen

    def steps(self, until: Position, step: int = STEP) -> Iterator[None]:
        """Go on to near a place, a piece of `step` bytes at a time, so that others can have a turn between two."""
        while self._settled(until.offset) - self.screen.end > step:
            self.bring(Position(self.screen.end + step, until.timeline)).catch_up()
            yield

    def close(self) -> None:
        """Close the timeline; the stream belongs to the caller."""
        self._timeline.close()

    def _advance(self, offset: int) -> None:
        while offset - self._spaced >= SPACING:
            self._spaced += SPACING
            if self._spaced > self.screen.end:
                self.screen.advance(self._spaced)
                self.points.append(Point(Position(self._spaced, self.position.timeline), self.screen.dump()))
        self.screen.advance(offset)

    def _resize(self, entry: Entry) -> None:
        size = terminal_size(entry)
        if size is None:
            return
        if entry.kind == "spawn" and self._sized:
            self.screen.restart(AFTER_ANOTHER)
        self.screen.resize(*size)
        self._sized = True


class Screens:
    """The screens of a live record: the one of its end, and readers of other places. No screen shows a nonce.

    `mask` gives what hides them now.
    """

    def __init__(self, layout: Layout, stream: DrawnStream, mask: Callable[[], Mask]) -> None:
        self._layout = layout
        self._stream = stream
        self._mask = mask
        self._read = self._reading(stream)
        self._newest: ScreenReader | None = None

    def now(self, position: Position) -> LazyScreen:
        """Return the screen of a place that is not before the last one asked for."""
        return self._reader().bring(position)

    def of(self, position: Position) -> Snapshot:
        """Return the screen of any place: drawn from the last one on, or from a checkpoint where that is behind it."""
        newest = self._newest
        if newest is None or _is_before(newest.position, position):
            return self.now(position).snapshot()
        start = next((one for one in reversed(newest.points) if _is_before(one.position, position)), None)
        reader = ScreenReader(self._layout, self._read, start, self._stream.settled)
        try:
            return reader.bring(position).snapshot()
        finally:
            reader.close()

    def steps(self, position: Position) -> Iterator[None]:
        """Draw to near a place a piece at a time, so that `now` takes little time; nothing where it is past."""
        return self._reader().steps(position)

    def _reader(self) -> ScreenReader:
        if self._newest is None:
            self._newest = ScreenReader(self._layout, self._read, settled=self._stream.settled)
        return self._newest

    def source(self, position: Position, redact: bool = False) -> RecordScreenSource:
        """Return the screens from a place on, with `redact` without secrets; close the source when done."""
        newest = self._newest
        if newest is None or _is_before(newest.position, position):
            dumped = self.now(position).dump()
            assert self._newest is not None
            start: Point | None = Point(self._newest.position, dumped)
        else:
            start = next((one for one in reversed(newest.points) if _is_before(one.position, position)), None)
        # Files of its own: a pattern that takes long is searched for in a thread.
        stream = DrawnStream(self._layout)
        redactor = Redactor(self._mask()) if redact else None
        reader = ScreenReader(self._layout, self._reading(stream), start, stream.settled)
        return RecordScreenSource(reader, stream, redactor)

    def past(self, position: Position) -> Callable[[int | None, Callable[[], None]], Snapshot]:
        """Return what draws an earlier place: it takes `since` and a pace, and may run in any thread."""
        points = self._newest.points if self._newest is not None else []
        start = next((one for one in reversed(points) if one.position.offset <= position.offset), None)
        mask = Mask(self._mask().nonces)

        def look(since: int | None, pace: Callable[[], None]) -> Snapshot:
            stream = DrawnStream(self._layout)  # of its own: the loop reads on meanwhile
            reader = ScreenReader(
                self._layout, lambda begin, end: masked(stream, mask, begin, end - begin), start, stream.settled
            )
            try:
                for _ in reader.steps(position):
                    pace()
                return reader.bring(position).snapshot(since)
            finally:
                reader.close()
                stream.close()

        return look

    def with_history(
        self, position: Position, stream: DrawnStream, mask: Callable[[], Mask], rows: int
    ) -> ScreenReader:
        """Return a reader for any thread, which at a place has so many rows above the screen, if there are any."""
        points = [] if self._newest is None else self._newest.points
        start = next((one for one in reversed(points) if one.position.offset <= position.offset - NEAR), None)
        return ScreenReader(
            self._layout, lambda begin, end: masked(stream, mask(), begin, end - begin), start, stream.settled, rows
        )

    def _reading(self, stream: DrawnStream) -> Callable[[int, int], bytes]:
        return lambda begin, end: masked(stream, self._mask(), begin, end - begin)

    def above(self, position: Position, lines: int) -> Sequence[Line]:
        """Return so many rows above the screen of a place, oldest first, and before them some that they may go on from.

        Takes a while, and may run in any thread.
        """
        resizes, size = self._sizes(position)
        stream = DrawnStream(self._layout)
        points = [] if self._newest is None else list(self._newest.points)
        starts = [point for point in points if point.position.offset <= position.offset - NEAR]
        count = lines + HISTORY_ROWS
        try:
            for start in [*reversed(starts), _first(self._layout)]:
                page = scrollback.page(
                    self._reading(stream),
                    0 if start is None else start.position.offset, position.offset, size=size, resizes=resizes,
                    checkpoint=None if start is None else start.dumped["screen"], count=count, limit=count,
                )  # fmt: skip
                if start is None or len(page.lines) == count:
                    return page.lines
        finally:
            stream.close()
        return ()

    def _sizes(self, position: Position) -> tuple[list[scrollback.Resize], tuple[int, int]]:
        timeline = TimelineReader(self._layout.timeline)
        try:
            found = [
                scrollback.Resize(entry.offset, entry.fields["cols"], entry.fields["rows"])
                for entry, _ in timeline.read_new(position.timeline)
                if entry.kind in ("spawn", "resize") and entry.offset <= position.offset
            ]
        finally:
            timeline.close()
        if (first := _first(self._layout)) is not None:
            return found, (first.dumped["screen"]["cols"], first.dumped["screen"]["rows"])
        return found[1:], (found[0].cols, found[0].rows) if found else (80, 24)

    def close(self) -> None:
        """Close what is open."""
        if self._newest is not None:
            self._newest.close()


class RecordScreenSource:
    """Sees the terminal at places of a record, in their order; `timeline`: how far the entries before the place go."""

    def __init__(self, reader: ScreenReader, stream: DrawnStream, redactor: Redactor | None = None) -> None:
        self._reader = reader
        self._stream = stream
        self._redactor = redactor
        self.timeline = reader.position.timeline

    def look(self, offset: int) -> tuple[str, str]:
        """Return the text on the screen at a stream offset, and what `fingerprint` says of it."""
        seen = self._reader.bring(Position(offset, self.timeline)).snapshot()
        shown = seen if self._redactor is None else self._redactor.screen(seen, self._stream)[0]
        return snapshot.text(shown.frame), fingerprint(shown)

    def close(self) -> None:
        """Close what is open."""
        self._reader.close()
        self._stream.close()


def _is_before(one: Position, other: Position) -> bool:
    """Whether a place is another one, or before it."""
    return one.offset <= other.offset and one.timeline <= other.timeline


def fingerprint(seen: Snapshot) -> str:
    """Return what `{"changed": ...}` compares: hashes of the characters, of how they are drawn, and of the cursor."""
    return f"{seen.text_hash}-{seen.attrs_hash}-{seen.cursor_hash}"


def check_style(style: str) -> None:
    """Raise BadRequest unless a screen has this format."""
    if style not in snapshot.FORMATS:
        raise BadRequest(f"no screen format {style[:20]!r}", hint=", ".join(snapshot.FORMATS))


class LineRange(NamedTuple):
    """Lines of a terminal: 0 is the top of the screen, -1 is the line above it; both ends belong to it."""

    first: int
    last: int

    @classmethod
    def of(cls, first: int | None, last: int | None, style: str, rows: int) -> LineRange | None:
        """Return the range that was asked for, None where none was; raises BadRequest for a format without lines."""
        if first is None and last is None:
            return None
        if style not in ("text", "agent"):
            raise BadRequest(f"a range of lines has no format {style}", hint="use text or agent")
        found = cls(0 if first is None else first, rows - 1 if last is None else last)
        if found.first > found.last:
            raise BadRequest(
                f"the range {found.first} to {found.last} is empty", hint="first_line must not be after last_line"
            )
        return found

    @property
    def above(self) -> int:
        """How many lines above the screen it needs."""
        return max(0, -self.first)


def screen_result(seen: Snapshot, style: str, above: list[str], lines: LineRange | None = None) -> ScreenResult:
    """Return the result of `screen`; with a range of lines `above` must not have rows joined."""
    frame = seen.frame
    content: Any
    first_line = None
    if lines is not None:
        first_line = max(lines.first, -len(above))
        rows = [*above, *(line.text for line in frame.lines)]
        chosen = rows[first_line + len(above) : max(0, lines.last + len(above) + 1)]
        content = snapshot.between(frame, chosen) if style == "agent" else "\n".join(chosen)
        above = []
    else:
        content = snapshot.render(seen, style)
    if style == "json":
        if above:
            content["scrollback"] = above
        content = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    elif above and style in ("text", "agent", "annotated"):
        content = "\n".join([*above, content])
    modes = frame.modes
    return ScreenResult(
        content=content,
        cursor=seen.offset,
        format=style,
        cols=frame.cols,
        rows=frame.rows,
        cursor_position=(frame.cursor.x, frame.cursor.y),
        cursor_visible=frame.cursor.visible,
        alt_screen=frame.alt,
        mouse=modes.mouse,
        title=frame.title,
        seqno=seen.seqno,
        hash=fingerprint(seen),
        changed=list(seen.changed),
        bells=seen.bells,
        unhandled=dict(seen.unhandled) or None,
        first_line=first_line,
    )
