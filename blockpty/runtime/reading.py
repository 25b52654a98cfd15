"""Reading a transcript: pieces of the stream in a view, blocks and events from their files."""

from __future__ import annotations

import asyncio
import base64
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from blockpty.engine.views import VIEWS, Piece, View, raw_offset, transform
from blockpty.errors import BadCursor, BadRequest
from blockpty.model.events import Event
from blockpty.model.results import ReadResult
from blockpty.redact.redaction import LONGEST
from blockpty.runtime.file_changes import FollowedDirectory, changes_of
from blockpty.runtime.follower import RecordFollower
from blockpty.runtime.redactor import Redactor
from blockpty.spool.line_reader import LineReader, line_of_seq
from blockpty.spool.stream import StreamReader

STYLES: Final = ("plain", "sgr")
# Of so much of the stream lines are counted; where one of them is, is only known when all before it is drawn.
LINES_BYTES: Final = 64 * 1024 * 1024
DRAWN_BYTES: Final = 4 * LINES_BYTES
_STEP: Final = 16 * 1024
_DELTA_BYTES: Final = 64 * 1024
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;:]*m")
_DRAWING: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
# Of an output up to this the view rendered is drawn as a whole: a progress bar leaves one line of it.
_DRAWN_WHOLE: Final = 1024 * 1024
_PIECE_BYTES: Final = 256 * 1024
# Of a stream that is followed by several, and how many such parts are kept.
_SHARED_BYTES: Final = 64 * 1024
_SHARED_PARTS: Final = 8
# Another engine writes its lines after we learn that the stream grew. Where the system does not tell of changes of
# files (a network file system), they are looked for so often.
_RECHECK_SECONDS: Final = 1.0
# How long a follower waits for the rest of a possible secret; then it gets the beginning, redacted.
HOLD_SECONDS: Final = 0.2
# Growth of a block is sent at most once in so long to a follower of events without their text, and while there is some
# to send, events are looked for so often.
_GROWTH_SECONDS: Final = 0.25
_GROWTH_LOOK_SECONDS: Final = 0.02


def check_view(view: str) -> str:
    """Return the name of a view, or raise BadRequest."""
    if view not in VIEWS:
        raise BadRequest(f"no view is called {view[:40]!r}", hint=f"one of {', '.join(VIEWS)}")
    return view


def check_style(view: str, style: str, from_line: int | None) -> None:
    """Raise BadRequest for a style that there is not, or one, or a line, of a view that has none."""
    if style not in STYLES:
        raise BadRequest(f"no style is called {style[:40]!r}", hint=f"one of {', '.join(STYLES)}")
    for name, given in (("style", style != "plain"), ("from_line", from_line is not None)):
        if given and view != "rendered":
            raise BadRequest(f"{name} is for the view rendered, not for {view}", hint="add view=rendered")


def read_span(
    stream: StreamReader,
    redactor: Redactor,
    view: str,
    begin: int,
    end: int,
    max_bytes: int,
    size: tuple[int, int] = (80, 24),
    pace: Callable[[], None] = lambda: None,
    style: str = "plain",
) -> tuple[bytes, int]:
    """Return at most `max_bytes` of a view of the stream's `[begin, end)`, and the offset to go on from.

    `pace` is called after every few KiB, and ends it by an exception.

    A character or control sequence is never cut in two; a piece may be a few bytes short of `max_bytes` for that.
    The view `rendered` is drawn on a terminal of `size` (columns, rows), piece by piece, with `style` sgr in colours.
    """
    if view == "raw":
        return _read_raw(stream, redactor, begin, min(end, begin + max_bytes), pace)
    reader = View("ansi" if view in ("ansi", "rendered") else "text", begin)
    out: list[bytes] = []
    left, at = max_bytes, begin
    while at < end and left > 0:
        raw = redactor.read(stream, at, min(_STEP, end - at, 4 * left + 1024))
        if not raw:
            break
        pace()
        at += len(raw)
        pieces = [reader.feed(raw)] + ([reader.finish()] if at >= end else [])
        for piece in pieces:
            if len(piece.text) >= left and piece.text:
                kept, cursor = _part(reader.name, piece, left)
                out.append(kept)
                return _finished(view, redactor, out, size, max_bytes, pace, style), cursor
            out.append(piece.text)
            left -= len(piece.text)
    return _finished(view, redactor, out, size, max_bytes, pace, style), at


def _read_raw(
    stream: StreamReader, redactor: Redactor, begin: int, end: int, pace: Callable[[], None]
) -> tuple[bytes, int]:
    out, at = [], begin
    while at < end and (data := redactor.read(stream, at, min(_STEP, end - at))):
        out.append(data)
        at += len(data)
        pace()
    return b"".join(out), at


def _part(name: str, piece: Piece, limit: int) -> tuple[bytes, int]:
    """Return the beginning of a piece that ends at a character, and the offset after it."""
    while 0 < limit < len(piece.text) and piece.text[limit] & 0xC0 == 0x80:
        limit -= 1
    if limit == 0:
        return b"", piece.raw_begin
    return piece.text[:limit], raw_offset(name, piece, limit - 1, after=True)


def _finished(
    view: str,
    redactor: Redactor,
    out: list[bytes],
    size: tuple[int, int],
    max_bytes: int,
    pace: Callable[[], None],
    style: str,
) -> bytes:
    data = redactor.mask.hide(b"".join(out))
    if view != "rendered":
        return data
    if style == "plain" and not is_drawn(data):
        return transform("text", data)
    pieces = (data[at : at + _STEP] for at in range(0, len(data), _STEP))
    drawn = _rendered(redactor, pieces, size, style, max_bytes)
    shown = []
    # A sequence stands within a line, so whole ones are looked at, and not all of them at once.
    for piece in drawn if style == "plain" else _lines(drawn):
        shown.append(piece if style == "plain" else _coloured(piece))
        pace()
    whole = b"".join(shown)
    return whole if len(whole) <= max_bytes else _cut(whole, max_bytes, style)


def is_drawn(ansi: bytes) -> bool:
    """Whether an output in the view `ansi` holds more than lines, tabs and colours, so that it has to be drawn.

    Else what is seen is the text, and its tabs and blanks at the ends of lines are those that were printed.
    """
    return _DRAWING.search(_COLOURS.sub(b"", ansi)) is not None


def _coloured(line: bytes) -> bytes:
    """Return a line, or text, with no other control than SGR."""
    from blockpty.screen.sgr_rows import only_sgr

    return only_sgr(line.decode("utf-8", "replace")).encode()


def _cut(line: bytes, length: int, style: str) -> bytes:
    """Return the beginning of a line or a text, whole characters of it, and with colours whole sequences."""
    if style != "sgr":
        return line[:length].decode("utf-8", "ignore").encode()
    from blockpty.screen.sgr_rows import RESET, cut_sgr

    text = line[: max(0, length - len(RESET))].decode("utf-8", "ignore")
    return cut_sgr(text, len(text)).encode()


def _rendered(
    redactor: Redactor, pieces: Iterable[bytes], size: tuple[int, int], style: str, most: int
) -> Iterator[bytes]:
    """Yield what is seen in the end of pieces of the view `ansi`, and no more of them once it is more than so much."""
    from blockpty.screen.rendered import Drawing, Rendered
    from blockpty.screen.sgr_rows import SGR_ROWS

    screen = Rendered(*size) if style == "plain" else Drawing(*size, SGR_ROWS)
    drawn, length = redactor.drawn(), 0
    for piece in pieces:
        # The other views have LF for the terminal's CR LF.
        parts = screen.parts(piece.replace(b"\n", b"\r\n"))
        yield (text := b"".join([drawn.feed(part.text.encode(), as_printed=part.as_printed) for part in parts]))
        length += len(text)
        if length > most:
            break  # a few bytes can ask for a character to be repeated very often
    end = screen.finish()
    yield drawn.feed((end if style == "plain" else end.removesuffix("\n")).encode())
    yield drawn.finish()


def read_lines(
    stream: StreamReader,
    redactor: Redactor,
    span: tuple[int, int],
    from_line: int,
    max_bytes: int,
    size: tuple[int, int],
    style: str,
    pace: Callable[[], None] = lambda: None,
) -> tuple[bytes, int | None]:
    """Return rendered lines of a span from a number on, and the number of the next one, None at the end.

    All of the span is drawn, from its beginning, and lines are counted from 0. There are at most `max_bytes`, in whole
    lines; a line that is longer by itself is cut. Raises BadRequest for a span that draws too much.
    """
    found: list[bytes] = []
    room = max_bytes
    pieces = _bounded(_rendered(redactor, _ansi(stream, redactor, span, pace), size, style, DRAWN_BYTES))
    for number, line in enumerate(_lines(pieces)):
        if number >= from_line:
            shown = line if style == "plain" else _coloured(line)
            if len(shown) > room and found:
                return b"".join(found), number
            # Nothing may follow what has lost its line end.
            found.append(shown if len(shown) <= room else _cut(shown, room, style))
            room = max(0, room - len(shown))
    return b"".join(found), None


def _bounded(pieces: Iterable[bytes]) -> Iterator[bytes]:
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > DRAWN_BYTES:
            raise BadRequest(f"this draws more than {DRAWN_BYTES} bytes", hint="choose a shorter span")
        yield piece


def _ansi(
    stream: StreamReader, redactor: Redactor, span: tuple[int, int], pace: Callable[[], None]
) -> Iterator[bytes]:
    at, end = span
    view = View("ansi", at)
    while at < end and (raw := redactor.read(stream, at, min(_STEP, end - at))):
        pace()
        at += len(raw)
        yield view.feed(raw).text
    yield view.finish().text


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a text that comes in pieces, each with its line end; the last one may have none."""
    begun: list[bytes] = []
    for piece in pieces:
        first, *others = piece.split(b"\n")
        begun.append(first)
        for line in others:
            yield b"".join([*begun, b"\n"])
            begun = [line]
    if last := b"".join(begun):
        yield last


def read_result(data: bytes, cursor: int, view: str) -> ReadResult:
    """Return the result of a read that goes on."""
    exact = base64.b64encode(data).decode("ascii") if view == "raw" else None
    return ReadResult(data.decode("utf-8", "replace"), cursor, False, exact)


def bounded_text(
    stream: StreamReader, redactor: Redactor, span: tuple[int, int], max_bytes: int, out_bytes: int,
    pace: Callable[[], None] = lambda: None, *, view: str = "text", size: tuple[int, int] = (80, 24),
) -> tuple[str, int, bool]:  # fmt: skip
    """Return a view of a block's span, its whole size in bytes, and whether the middle was left out.

    Head and tail are kept; what stands between says how much is missing and at which cursor to read on. The size of a
    long output is that of its `.out` file, where that is known.
    """
    begin, end = span
    if begin == end:
        return "", 0, False
    begin = min(end, max(begin, stream.begin))
    if end - begin <= 8 * max_bytes + (_DRAWN_WHOLE if view == "rendered" else 65536):
        # A tab is drawn as up to eight blanks.
        data, _ = read_span(stream, redactor, view, begin, end, 8 * (end - begin) + 1, size, pace)
        if len(data) <= max_bytes:
            return data.decode("utf-8", "replace"), len(data), False
        whole, tail = len(data), data[-(max_bytes - max_bytes // 2) :]
    else:
        tail, _ = read_span(stream, redactor, view, end - 4 * max_bytes, end, 4 * max_bytes, size, pace)
        # It may begin inside a line or a control sequence.
        whole, tail = out_bytes or end - begin, tail[-(max_bytes - max_bytes // 2) :].partition(b"\n")[2]
    head, cursor = read_span(stream, redactor, view, begin, end, max(1, max_bytes // 2), size, pace)
    left_out = whole - len(head) - len(tail)
    joint = f"\n[... {left_out} of {whole} bytes left out, read on at cursor {cursor} ...]\n"
    return head.decode("utf-8", "replace") + joint + tail.decode("utf-8", "ignore"), whole, True


def is_below(cwd: str | None, directory: str) -> bool:
    """Whether a working directory is a directory or lies below it."""
    directory = directory.rstrip("/")
    return cwd is not None and (cwd.rstrip("/") == directory or cwd.startswith(directory + "/"))


class StreamPiece(Struct, frozen=True):
    """Next piece of a stream: bytes from a cursor on, or, when `skipped` is set, a jump to that cursor."""

    cursor: int
    data: bytes
    skipped: int = 0


async def follow_stream(
    live: RecordFollower, from_cursor: int | None, limit_bytes: int | None
) -> AsyncIterator[StreamPiece]:
    """Yield the stream's bytes from a cursor on and then as they come, redacted, until the record is closed.

    Nothing is queued: the next piece is read when it is asked for. Who has fallen back by more than `limit_bytes` is
    sent on to a later cursor (the last quarter of that), and can read what lies between at leisure. The
    beginning of a possible secret waits for the rest; when that does not come, it is sent redacted.
    """
    live.pump()
    quiet = False
    cursor = live.state.classified if from_cursor is None else from_cursor
    if not 0 <= cursor <= live.reader.position.offset:
        raise BadCursor(f"the cursor {cursor} lies behind the end of the stream", hint="use a cursor from a result")
    while True:
        changed = live.subscribers.watch()
        try:
            live.notified()
            # Half a mark is held back until it is known to be one: a secret must not leave in two halves.
            end = live.state.classified
            if (first := live.stream.begin) > cursor:
                cursor, skipped = first, first - cursor
                yield StreamPiece(cursor, b"", skipped)
            while cursor < end:
                if limit_bytes is not None and end - cursor > limit_bytes:
                    skipped = end - limit_bytes // 4 - cursor
                    cursor += skipped
                    yield StreamPiece(cursor, b"", skipped)
                    continue
                data = redacted_piece(live, cursor, end, end, quiet=quiet)
                if not data:
                    break
                cursor += len(data)
                yield StreamPiece(cursor - len(data), data)
            if live.closed or live.state.eof:
                return
            await asyncio.wait((changed,), timeout=HOLD_SECONDS if cursor < end else None)
            quiet = cursor < end and not changed.done()
        finally:
            changed.cancel()


def redacted_piece(live: RecordFollower, cursor: int, stop: int, end: int, *, quiet: bool) -> bytes:
    """Return the bytes from a cursor on, at most up to `stop`, redacted; `end` is where the stream ends by now.

    None of what may be the beginning of a secret at its end, unless it is `quiet`: nothing has come for a while.
    """
    if end - cursor > 2 * _SHARED_BYTES and (shared := _shared(live, cursor, stop)):
        return shared
    asked = (cursor, stop, end)
    if live.piece is None or live.piece[0] != asked or quiet:
        # All who watch ask for the same.
        live.piece = asked, live.redactor.read_settled(live.drawn, cursor, min(_PIECE_BYTES, stop - cursor))
    data, settled = live.piece[1]
    if cursor + len(data) == end <= cursor + LONGEST and not (quiet or live.closed or live.state.eof):
        return data[:settled]
    return data


def _shared(live: RecordFollower, cursor: int, stop: int) -> bytes:
    """Return bytes of one of the equal parts of a stream, which are looked through once for all who follow a flood."""
    begin = cursor - cursor % _SHARED_BYTES
    part = live.shared.get(begin)
    if part is None and begin >= live.stream.begin:
        part, settled = live.redactor.read_settled(live.drawn, begin, _SHARED_BYTES)
        if settled < len(part):
            return b""
        if len(live.shared) >= _SHARED_PARTS:
            del live.shared[next(iter(live.shared))]
        live.shared[begin] = part
    return (part or b"")[cursor - begin : stop - begin]


def _with_data(live: RecordFollower, event: Event) -> Event:
    """Return a delta with the text that it stands for, at most `_DELTA_BYTES` of it: what a follower gets."""
    if event.type != "agent_block_delta":
        return event
    begin, end = event.fields["span"]
    data, _ = read_span(live.stream, live.redactor, "text", begin, end, _DELTA_BYTES)
    return replace(event, fields={**event.fields, "data": data.decode("utf-8", "replace")})


async def follow_events(
    live: RecordFollower, from_seq: int, follow: bool, *, with_data: bool = True,
    types: Collection[str] | None = None, clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Event]:  # fmt: skip
    """Yield events from the file, and with `follow` those that come, until the record is closed.

    `with_data`: events of output that a follower gets have its text, which takes far longer than all else of them.
    Without it, events of output of one block that follow each other are one event in a quarter of a second: its span
    is that of them all, its number that of the last. `types`: only these, by default all; the others are
    skipped before growth is joined.
    """
    growth = None if with_data or not follow else Growth(clock)
    # Of a long record nearly all lines are before the one that most followers begin at.
    reader = LineReader(live.layout.events, line_of_seq(live.layout.events, from_seq) if from_seq else 0, holes=True)
    changes = changes_of(asyncio.get_running_loop())
    with ExitStack() as stack:
        stack.callback(reader.close)
        followed: FollowedDirectory | None = None
        while True:
            if follow and not live.deriver.active and followed is None:
                followed = stack.enter_context(changes.follow(live.layout.directory))
            # Subscribe before looking, or an event between the two would be missed.
            changed = [live.subscribers.watch()]
            if followed is not None:
                changed.append(followed.watch())
            try:
                if follow:
                    live.notified()
                else:
                    live.pump()
                # A long record is never in memory as a whole, however slowly its reader takes it.
                while lines := reader.read_new(some=True):
                    for line, _ in lines:
                        if line.get("seq", -1) < from_seq or (types is not None and line.get("type") not in types):
                            continue
                        for one in (line,) if growth is None else growth.take(line):
                            event = live.redactor.event(Event.from_dict(one), live.stream)
                            yield _with_data(live, event) if follow and with_data else event
                    if not reader.ended:
                        await live.turn()
                if growth is not None and (grown := growth.due(live.closed)) is not None:
                    yield live.redactor.event(Event.from_dict(grown), live.stream)
                if not follow or live.closed:
                    return
                if growth is not None and growth.is_held:
                    await asyncio.sleep(_GROWTH_LOOK_SECONDS)
                    # Something floods: of all who follow it one looks in each turn, and others are served in between.
                    await live.turn()
                    await asyncio.wait(changed, timeout=growth.left(), return_when=asyncio.FIRST_COMPLETED)
                    continue
                await asyncio.wait(
                    changed, timeout=None if live.deriver.active else _RECHECK_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                for future in changed:
                    future.cancel()


class Growth:
    """Lines of events on their way to a follower, with those of output joined."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: dict[str, Any] | None = None
        self._sent = -math.inf

    @property
    def is_held(self) -> bool:
        """Whether there is growth that has not been returned yet."""
        return self._held is not None

    def take(self, line: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what is to be sent now that this line has come; growth is held back."""
        held, grows = self._held, line.get("type") == "agent_block_delta"
        self._held = line if grows else None
        if held is not None and grows and held["block_id"] == line["block_id"]:
            self._held = {**line, "span": [held["span"][0], line["span"][1]]}
        elif held is not None:
            yield held
        if not grows:
            yield line

    def left(self) -> float:
        """For how many seconds more growth is held back."""
        return max(0.0, self._sent + _GROWTH_SECONDS - self._clock())

    def due(self, closed: bool) -> dict[str, Any] | None:
        """Return growth that has been held back for long enough, or at the end."""
        held = self._held
        if held is None or (self.left() > 0 and not closed):
            return None
        self._held, self._sent = None, self._clock()
        return held
