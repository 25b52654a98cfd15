"""Reading a transcript: spans of the stream in a view, by cursor and by line."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from blockpty.engine.views import VIEWS, Piece, View, raw_offset, transform
from blockpty.errors import BadRequest
from blockpty.model.results import ReadResult
from blockpty.runtime.redactor import Redactor
from blockpty.spool.stream import StreamReader

STYLES: Final = ("plain", "sgr")
# Of so much of the stream lines are counted; where one of them is, is only known when all before it is drawn.
LINES_BYTES: Final = 64 * 1024 * 1024
DRAWN_BYTES: Final = 4 * LINES_BYTES
_STEP: Final = 16 * 1024
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;:]*m")
_DRAWING: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
# Of an output up to this the view rendered is drawn as a whole: a progress bar leaves one line of it.
_DRAWN_WHOLE: Final = 1024 * 1024


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
