"""Reading of a conversation's record: pieces, blocks, events, screens.

Rules of this file: nothing is written and nothing typed. It works for every live record, owned or not. What
only one operation needs is imported by it: most programs never export or compare.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from blockpty.api import limits
from blockpty.engine.records import open_record, pending_record
from blockpty.engine.states import ShellState
from blockpty.errors import BadCursor, BadRequest, Forbidden
from blockpty.model.block import Block, ListedBlock
from blockpty.model.events import Event
from blockpty.model.results import (
    BlockResult,
    BlocksResult,
    CaptureResult,
    DiffResult,
    ExportResult,
    ReadResult,
    ScreenResult,
    ScrollbackResult,
    TimelineResult,
)
from blockpty.runtime import block_list, reading
from blockpty.runtime.drawn import DrawnStream
from blockpty.runtime.event_feed import follow_events
from blockpty.runtime.follower import RecordFollower
from blockpty.runtime.redactor import Redactor
from blockpty.runtime.stream_pieces import StreamPiece, follow_stream
from blockpty.runtime.worker_threads import SHORT_BYTES, Pace, aside
from blockpty.spool import archived
from blockpty.spool.layout import Layout
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader

if TYPE_CHECKING:
    from blockpty.runtime.export.recording_events import Source
    from blockpty.runtime.replay import Replay
    from blockpty.screen.snapshot import Snapshot

T = TypeVar("T")
# Of more bytes than these a read leaves the event loop to others.
_AT_ONCE: Final = 4096
# So many blocks are read in the event loop: of those at the end, about 20 ms.
_SHORT_PAGE: Final = 100


class Transcript:
    """The record of a conversation, followed live.

    Attributes:
        id: the conversation's name.
        directory: where its files are.
    """

    def __init__(
        self, conversation_id: str, layout: Layout, live: RecordFollower, allow_uncovered: bool = False
    ) -> None:
        self.id = conversation_id
        self.directory: Path = layout.directory
        self.layout = layout
        self.live = live
        self._allow_uncovered = allow_uncovered
        self._scrollback = limits.SCROLLBACK
        self._measures = block_list.OutputMeasures()

    @property
    def cursor(self) -> int:
        """How far the stream has been read."""
        return self.live.reader.position.offset

    async def blocks(
        self,
        filter: str | None = None,
        *,
        failed: bool | None = None,
        min_duration_ms: int | None = None,
        cwd: str | None = None,
        author: str | None = None,
        kind: str | None = None,
        order: str = "oldest",
        before_seq: int | None = None,
        after_seq: int | None = None,
        running: bool = False,
        measure: bool = False,
        page: int = 0,
        page_size: int = 100,
    ) -> BlocksResult:
        """Return a page of finished blocks, oldest first; with `running` of those as well that have not ended.

        `filter` must be part of the command; `failed`: the exit status is not 0, or is; `min_duration_ms`: it took
        at least so long; `cwd`: it began there or below. `order`: `oldest` or `newest` first; the newest are found
        without reading the others. `before_seq`, `after_seq`: only with a lower or a higher number. `measure`: say
        how many lines each output has, and whether it drew on the screen. Raises BadRequest.
        """
        limits.check("page", page)
        limits.check("page_size", page_size)
        block_list.check_choices(order, author, kind)
        for name, value in (("before_seq", before_seq), ("after_seq", after_seq)):
            if value is not None:
                limits.check(name, value)
        self.live.pump()
        wanted = block_list.Wanted(filter, failed, min_duration_ms, cwd, author, kind, before_seq, after_seq)
        asked = block_list.BlockPage(page, page_size, order == "newest")
        # Before the blocks are read: an event that comes meanwhile is then seen twice rather than never.
        next_seq = self.live.state.next_event
        unfinished = self._unfinished() if running else []
        redactor = Redactor(Mask(self.live.mask.nonces), self.live.redactor.redact)
        size = self.layout.blocks.stat().st_size if self.layout.blocks.exists() else 0
        is_last = asked.newest and not page and wanted == block_list.Wanted(before_seq=before_seq)
        if size <= SHORT_BYTES or (is_last and page_size <= _SHORT_PAGE):
            blocks, more = block_list.read_page(self.layout, redactor, wanted, asked, unfinished)
        else:
            blocks, more = await aside(
                lambda pace: block_list.read_page(self.layout, redactor, wanted, asked, unfinished, pace), long=False
            )
        listed = await self._measured(blocks) if measure else [block_list.as_listed(block) for block in blocks]
        return BlocksResult(listed, page + 1 if more else None, self.cursor, next_seq)

    def _unfinished(self) -> list[Block]:
        """Return the blocks that run, the oldest first, and what was submitted and has not begun."""
        state = self.live.state
        found = [open_record(block, state) for block in (state.block, state.background) if block is not None]
        if state.submission is not None:
            found.append(pending_record(state))
        return sorted(found, key=lambda block: block.seq)

    async def _measured(self, blocks: list[Block]) -> list[ListedBlock]:
        stream, end = self.layout.stream, self.live.state.classified
        if archived.end_of(stream) is not None:
            return [block_list.as_listed(block) for block in blocks]  # it is not fetched for that

        def work(pace: Pace) -> list[ListedBlock]:
            reader = StreamReader(stream)
            try:
                return self._measures.listed(blocks, reader, end, pace)
            finally:
                reader.close()

        return await aside(work)

    async def block(self, block_id: str) -> BlockResult:
        """Return one block, running or finished; raises NotFound."""
        self.live.pump()
        return BlockResult(self.live.redactor.block(self._block(block_id)), self.cursor)

    def _block(self, block_id: str) -> Block:
        state = self.live.state
        for block in (state.block, state.background):
            if block is not None and block.block_id == block_id:
                return open_record(block, state)
        if state.submission is not None and block_id == f"b{state.next_block}":
            return pending_record(state)
        return self.live.deriver.recent.get(block_id) or block_list.find_block(self.layout, block_id)

    async def read(
        self,
        from_cursor: int | None = None,
        *,
        to_cursor: int | None = None,
        block_id: str | None = None,
        max_bytes: int = 65536,
        view: str = "text",
        style: str = "plain",
        from_line: int | None = None,
    ) -> ReadResult:
        """Return a piece of the transcript from a cursor, or the output of a block, in a view.

        `to_cursor`: where it ends at the latest; `eof` is set there too. `max_bytes` is 1 to 64 MiB of the view. Of the
        view `rendered`: `style` sgr keeps colours and styles, as SGR and nothing else; `from_line` draws all of it, at
        most 64 MiB, and returns its lines from this number on. Raises BadCursor, BadRequest or NotFound.
        """
        reading.check_view(view)
        reading.check_style(view, style, from_line)
        limits.check("max_bytes", max_bytes)
        self.live.pump()
        begin, end, ended = self._span(from_cursor, to_cursor, block_id)
        kept = min(self.live.stream.begin, max(begin, end))
        truncated = kept if begin < kept else None
        begin = max(begin, kept)
        end, size = max(begin, end), self.live.state.size
        if from_line is not None:
            limits.check("from_line", from_line)
            result = await self._lines((begin, end), from_line, max_bytes, size, style)
        else:
            result = await self._over_bytes(
                min(max_bytes, end - begin), view != "raw",
                lambda stream, redactor, pace: reading.read_result(
                    *reading.read_span(stream, redactor, view, begin, end, max_bytes, size, pace, style), view
                ),
            )  # fmt: skip
        eof = ended and result.cursor >= end and result.next_line is None
        return replace(result, eof=eof, truncated_before=truncated)

    async def _lines(
        self, span: tuple[int, int], from_line: int, max_bytes: int, size: tuple[int, int], style: str
    ) -> ReadResult:
        begin, end = span
        if end - begin > reading.LINES_BYTES:
            raise BadRequest(
                f"the {end - begin} bytes from {begin} to {end} are too many to count lines in",
                hint=f"at most {reading.LINES_BYTES} bytes: choose a shorter span, or read on by cursor",
            )
        data, next_line = await self._over_bytes(
            end - begin, True,
            lambda stream, redactor, pace: reading.read_lines(
                stream, redactor, span, from_line, max_bytes, size, style, pace
            ),
        )  # fmt: skip
        # What follows is drawn from the same cursor again.
        cursor = end if next_line is None else begin
        return ReadResult(data.decode("utf-8", "replace"), cursor, False, next_line=next_line)

    def _span(self, from_cursor: int | None, to_cursor: int | None, block_id: str | None) -> tuple[int, int, bool]:
        """Return where a read begins and ends, and whether nothing can come there; raises BadCursor or NotFound."""
        end, block = self.cursor, None if block_id is None else self._block(block_id)
        for cursor in (from_cursor, to_cursor):
            if cursor is not None and cursor < 0:
                raise BadCursor(f"the cursor {cursor} is below 0", hint="use a cursor from a result")
        begin, ended = from_cursor or 0, self.live.state.eof or self.live.state.shell is ShellState.EXITED
        if block is not None:
            first, last = block.span
            begin = max(first, from_cursor) if from_cursor is not None else first
            ended = last is not None
            end = last if last is not None else self.live.state.classified
        if begin > max(end, self.cursor):
            raise BadCursor(f"the cursor {begin} lies behind the end {end}", hint="use a cursor from a result")
        if to_cursor is not None:
            if to_cursor > self.cursor:
                raise BadCursor(
                    f"the cursor {to_cursor} lies behind the end {self.cursor}", hint="use a cursor from a result"
                )
            if to_cursor < begin:
                raise BadCursor(f"the span ends at {to_cursor} before it begins, at {begin}", hint="exchange the two")
            if to_cursor <= end:
                end, ended = to_cursor, True
        return begin, end, ended

    async def _over_bytes(
        self, count: int, drawn: bool, work: Callable[[StreamReader, Redactor, Callable[[], None]], T]
    ) -> T:
        """Return what work makes of so many bytes of the stream: of a few at once, of many beside the event loop."""
        live = self.live
        if count <= _AT_ONCE:
            return work(live.drawn if drawn else live.stream, live.redactor, lambda: None)
        redactor = Redactor(Mask(live.mask.nonces), live.redactor.redact)

        def beside(pace: Pace) -> T:
            # Files of its own: the loop reads on meanwhile.
            stream = DrawnStream(self.layout) if drawn else StreamReader(self.layout.stream)
            try:
                return work(stream, redactor, pace)
            finally:
                stream.close()

        return await aside(beside, long=count > SHORT_BYTES)

    async def diff(
        self, block_id: str, against: str | None = None, *, context: int = 3, max_bytes: int = 65536
    ) -> DiffResult:
        """Return how the output of a block differs from that of another one, by default of its previous run.

        `context`: lines around a change, 0 to 1000. Of outputs over 1 MiB or 20,000 lines only the beginning is
        compared. Raises NotFound, also when the command has not run before in this conversation.
        """
        from blockpty.runtime.diff import compare, previous_run

        limits.check("context", context)
        limits.check("max_bytes", max_bytes)
        self.live.pump()
        new = self._block(block_id)
        other = self._block(against) if against is not None else None
        classified = self.live.state.classified
        redactor = Redactor(Mask(self.live.mask.nonces), self.live.redactor.redact)
        stream, cursor = StreamReader(self.layout.stream), self.cursor

        def work(pace: Pace) -> DiffResult:
            def read(block: Block, size: int) -> tuple[str, bool]:
                begin, end = block.span[0], classified if block.span[1] is None else block.span[1]
                data, after = reading.read_span(stream, redactor, "text", begin, max(begin, end), size, pace=pace)
                return data.decode("utf-8", "replace"), after < end

            try:
                old = previous_run(self.layout, new, pace) if other is None else other
                return compare(redactor.block(old), redactor.block(new), read, context, max_bytes, cursor, pace)
            finally:
                stream.close()

        return await aside(work)

    async def timeline(self, buckets: int = 600) -> TimelineResult:
        """Return the recording over its whole time: what happened when and where, and how much was printed when.

        `buckets`: into how many parts the time is divided, 1 to 5000. It reads the whole timeline, beside the loop;
        cancelling ends that. Raises BadRequest.
        """
        from blockpty.runtime.timeline_summary import summarize

        limits.check("buckets", buckets)
        self.live.pump()
        source = self._source(None, None, None)
        return await aside(lambda pace: summarize(source, buckets, pace))

    async def events(self, from_seq: int = 0, *, follow: bool = True) -> AsyncIterator[Event]:
        """Yield events from a number on; with `follow`, those that come as well, until the conversation is detached."""
        async for event in follow_events(self.live, from_seq, follow):
            yield event

    async def follow(
        self, from_cursor: int | None = None, *, limit_bytes: int | None = None
    ) -> AsyncIterator[StreamPiece]:
        """Yield the terminal's bytes from a cursor (default: now) and then as they come, until EOF.

        Who falls back by more than `limit_bytes` gets a piece that jumps (`skipped` is set). What may be the beginning
        of a secret comes a moment later. Raises BadCursor.
        """
        async for piece in follow_stream(self.live, from_cursor, limit_bytes):
            yield piece

    async def screen(
        self, *, format: str = "text", since: int | None = None, scrollback: int = 0, first_line: int | None = None,
        last_line: int | None = None, at: int | None = None, record: bool = False,
    ) -> ScreenResult:  # fmt: skip
        """Return what the terminal shows now, or showed at a cursor: a function of the stream and the sizes up to it.

        `format`: text, json, ansi (draws it again), html, svg, agent or annotated. `since`: the `seqno` of an earlier
        result; `changed` then names the rows that are not as they were. `scrollback`: so many lines above the screen
        come with it, at most those of `set_scrollback`. `first_line`, `last_line`: only these lines, where 0 is the
        top of the screen and -1 the line above it (in text and agent; `scrollback` adds none then). `record`: a
        `screen_snapshot` event names the cursor of the result. Raises BadRequest, BadCursor, and with `record` Busy
        where another engine writes.
        """
        # What draws is loaded with the first look at a screen.
        from blockpty.runtime.screens import LineRange, check_style, screen_result

        limits.check("scrollback", scrollback)
        check_style(format)
        for name, number in (("first_line", first_line), ("last_line", last_line)):
            if number is not None:
                limits.check(name, number)
        live = self.live
        seen = await (self.look(since) if at is None else self._look_back(at, since))
        lines = LineRange.of(first_line, last_line, format, seen.frame.rows)
        above = min(scrollback if lines is None else lines.above, self._scrollback)
        place = live.reader.position._replace(offset=seen.offset)
        rows = await asyncio.to_thread(live.screens.above, place, above) if above else ()
        if record:
            await self._record_look(seen.offset)
        shown, above_rows = live.redactor.screen(seen, live.stream, rows, above, joined=lines is None)
        return screen_result(shown, format, above_rows, lines)

    async def _record_look(self, at: int) -> None:
        raise BadRequest(f"{self.id} is only read here: nothing can be recorded", hint="leave `record` out")

    async def look(self, since: int | None = None) -> Snapshot:
        """Return what the terminal shows now; others have their turn meanwhile."""
        self.live.pump()
        for _ in self.live.screens.steps(self.live.reader.position):
            await asyncio.sleep(0)
        return self.live.screens.now(self.live.reader.position).snapshot(since)

    async def _look_back(self, at: int, since: int | None) -> Snapshot:
        self.live.pump()
        first = self.live.stream.begin
        if not first <= at <= self.cursor:
            raise BadCursor(f"the cursor {at} does not lie between {first} and {self.cursor}", hint="use a result's")
        look = self.live.screens.past(self.live.reader.position._replace(offset=at))
        return await aside(lambda pace: look(since, pace))

    async def set_scrollback(self, lines: int = limits.SCROLLBACK) -> ScrollbackResult:
        """Set how many lines above the screen can be asked for, 0 to 100,000; nothing of the record is dropped."""
        limits.check("scrollback", lines)
        self._scrollback = lines
        return ScrollbackResult(self.cursor, lines)

    async def start_capture(self) -> CaptureResult:
        """Begin to capture what the terminal shows; where a capture runs already, this tells of that one.

        It costs nothing while it runs, and goes on when engine or machine are restarted.
        """
        from blockpty.runtime.capture import start_capture

        self.live.pump()
        return await asyncio.to_thread(start_capture, self._source(None, None, None))

    async def stop_capture(self) -> CaptureResult:
        """Write the capture to its file (asciicast v2, 0600); called again, this tells of the one that was stopped.

        Cancelling leaves it running, or stopped. Raises NotFound when none was started, StorageFull.
        """
        from blockpty.runtime.capture import stop_capture

        self.live.pump()
        source = self._source(None, None, None)
        return await aside(lambda pace: stop_capture(source, pace.stopped))

    async def export(
        self,
        format: str = "cast",
        *,
        from_cursor: int | None = None,
        to_cursor: int | None = None,
        block_id: str | None = None,
        max_bytes: int = 65536,
        redact: bool | None = None,
    ) -> ExportResult:
        """Export the conversation, a block or a span for other tools.

        `format`: cast and cast3 (asciicast v2 and v3), typescript (of script(1), exact bytes), text, html, markdown,
        jsonl. What is larger than `max_bytes`, 1 to 64 MiB, and every typescript, goes to a file (0600) in the home's
        `exports/`, which is the caller's to delete; after seven days a later export does. Memory does not grow with the
        size. `redact`: redact secrets; by default as in all output. Cancelling leaves no file. Raises BadRequest,
        BadCursor, Forbidden (`redact` is false and the engine does not allow that), NotFound, StorageFull.
        """
        from blockpty.runtime.export.writer import check_format, export

        check_format(format)
        limits.check("max_bytes", max_bytes)
        if redact is False and self.live.redactor.redact and not self._allow_uncovered:
            raise Forbidden(
                "this engine returns redacted output only",
                hint="allow_uncovered (BLOCKPTY_ALLOW_UNCOVERED, serve --allow-uncovered) lets an export show them",
            )
        self.live.pump()
        source = self._source(from_cursor, to_cursor, block_id)
        if redact is not None:
            source = replace(source, redactor=Redactor(source.redactor.mask, redact))
        return await aside(lambda pace: export(source, format, max_bytes, pace.stopped))

    def replay(
        self,
        *,
        speed: float = 1.0,
        idle_limit: float | None = None,
        from_seconds: float = 0.0,
        to_seconds: float | None = None,
        from_cursor: int | None = None,
        to_cursor: int | None = None,
        block_id: str | None = None,
    ) -> Replay:
        """Return an async iterator of the moments of the conversation, a block or a span, at their recorded times.

        What is there now is replayed, as `Moment`; what comes later is not. `speed`: how many times as fast as it was,
        0 without waiting. `idle_limit`: seconds to which longer silences are shortened. `from_seconds`, `to_seconds`:
        after the begin of what is replayed. Cancelling is safe. Raises BadRequest, BadCursor, NotFound.
        """
        self.live.pump()
        source = self._source(from_cursor, to_cursor, block_id)
        from blockpty.runtime.replay import Replay

        return Replay(source, speed=speed, idle_limit=idle_limit, from_seconds=from_seconds, to_seconds=to_seconds)

    def _source(self, from_cursor: int | None, to_cursor: int | None, block_id: str | None) -> Source:
        from blockpty.runtime.export.recording_events import Source

        # Half a mark is held back until it is known to be one: a secret must not leave in two halves.
        state, position = self.live.state, self.live.reader.position
        begin, end, block = from_cursor or 0, state.classified if to_cursor is None else to_cursor, None
        if block_id is not None:
            if from_cursor is not None or to_cursor is not None:
                raise BadRequest("give either block_id or cursors")
            block = self._block(block_id)
            begin, end = block.span[0], state.classified if block.span[1] is None else block.span[1]
        if not 0 <= begin <= end <= position.offset:
            raise BadCursor(
                f"{begin} to {end} is not a span of the {position.offset} bytes there are",
                hint="use cursors from results",
            )
        unfinished = tuple([open_record(one, state) for one in (state.block, state.background) if one is not None])
        redactor = Redactor(Mask(self.live.mask.nonces), self.live.redactor.redact)
        begin = min(end, max(begin, self.live.stream.begin))
        return Source(
            self.id, self.layout, redactor, begin, min(end, state.classified), position.timeline,
            block, unfinished,
        )  # fmt: skip
