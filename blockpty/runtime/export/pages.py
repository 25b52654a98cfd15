"""Exports for reading: text and HTML as a person saw it, Markdown and JSON lines block by block.

Rules of this file: text and HTML draw the span on a terminal of its sizes, and a row is written when it has left the
top. What programs wrote is data in each format: it cannot end a fence, open a tag or add a line of ours.
"""

from __future__ import annotations

import codecs
import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from blockpty.engine.views import View
from blockpty.model.block import Block
from blockpty.runtime.export.recording_events import PIECE, Opening, OutputLines, Source
from blockpty.runtime.screens import AFTER_ANOTHER
from blockpty.screen import markup
from blockpty.screen.rendered import Drawing, Part, Rendered, RowStyle

_BACKTICKS: Final = re.compile("`+")
# Begins with one literal, which is searched for at memory speed.
_FENCE: Final = re.compile(b"``*")
# Of a block's output before it goes to a file.
_IN_MEMORY: Final = 1024 * 1024
# Line ends in so few are found one by one.
_FEW_BYTES: Final = 512
_HTML: Final = RowStyle(markup.html_line, markup.html_text, markup.html_around)


def text(source: Source) -> Iterator[bytes]:
    """Yield what a person saw in the end, as plain text."""
    opening = source.opening()
    yield from _redacted(source, _drawn(source, opening, Rendered(opening.cols, opening.rows)))


def html(source: Source) -> Iterator[bytes]:
    """Yield a page that is complete in itself, with the colours of the terminal."""
    opening = source.opening()
    title = source.conversation_id if source.block is None else f"{source.conversation_id} {source.block.block_id}"
    yield markup.page_begin(title).encode()
    yield from _redacted(source, _drawn(source, opening, Drawing(opening.cols, opening.rows, _HTML)), tagged=True)
    yield markup.PAGE_END.encode()


def _redacted(source: Source, parts: Iterable[Part], *, tagged: bool = False) -> Iterator[bytes]:
    """Yield what was drawn, without the secrets that only drawing shows: letters struck over, a corrected line."""
    drawn = source.redactor.drawn(tagged=tagged)
    for part in parts:
        yield drawn.feed(part.text.encode("utf-8", "replace"), as_printed=part.as_printed)
    yield drawn.finish()


def _drawn(source: Source, opening: Opening, drawing: Rendered) -> Iterator[Part]:
    last = Part("")
    for moment in source.drawing(opening):
        if isinstance(moment, OutputLines):
            parts = drawing.parts(moment.data, moment.shown)
        else:
            parts = drawing.parts(AFTER_ANOTHER) if moment.fresh else []
            parts.append(Part(drawing.resize(moment.cols, moment.rows)))
        for part in parts:
            last = part if part.text else last
            yield part
    end = Part(drawing.finish())
    yield end
    if (end.text or last.text) and not (end.text or last.text).endswith("\n"):
        yield Part("\n")


def jsonl(source: Source) -> Iterator[bytes]:
    """Yield a line for the conversation, and for each block its record and its output in pieces of text."""
    opening = source.opening()
    about = {"conversation_id": source.conversation_id, "span": [source.begin, source.end], "ts": opening.ts}
    yield _line("conversation", {**about, "cols": opening.cols, "rows": opening.rows, "shell": opening.shell})
    for block in source.blocks():
        yield _line("block", block.to_dict())
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for data in _plain(source, block):
            if piece := decoder.decode(data):
                yield _line("output", {"block_id": block.block_id, "data": piece})
        if piece := decoder.decode(b"", final=True):
            yield _line("output", {"block_id": block.block_id, "data": piece})


def _line(kind: str, fields: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, **fields}) + b"\n"


def _output(source: Source, block: Block) -> Iterator[OutputLines]:
    first, last = block.span
    return source.lines(first, source.end if last is None else last)


def _plain(source: Source, block: Block) -> Iterator[bytes]:
    """Yield a block's output in the view `text`, each time what so many bytes of the stream settle."""
    view = View("text", max(block.span[0], source.begin))
    texts: list[bytes] = []
    room = PIECE
    for data, shown in _output(source, block):
        lines = None if shown is None else shown.translate(None, b"\r")
        at = seen = 0
        while at < len(data):
            end = min(at + room, len(data))
            begin = at
            if lines is not None:
                # Up to the first line end and behind the last one there are parts of lines.
                begin = at if not at or data[at - 1 : at] == b"\n" else data.find(b"\n", at, end) + 1 or end
                last = data.rfind(b"\n", begin, end) + 1 or begin
                texts.append(view.feed(data[at:begin]).text)
                if begin > at and data[begin - 1 : begin] == b"\n":
                    seen = lines.find(b"\n", seen) + 1
                first, seen = seen, _behind(lines, seen, data.count(b"\n", begin, last), last - begin)
                texts.append(lines[first:seen])
                begin = last
            texts.append(view.feed(data[begin:end]).text)
            room -= end - at
            at = end
            if not room:
                yield b"".join(texts)
                texts, room = [], PIECE
    yield b"".join(texts)
    yield view.finish().text


def _behind(lines: bytes, begin: int, count: int, most: int) -> int:
    """Return where so many lines end that begin at a place and have at most so many bytes together."""
    end = begin + most
    while count and end - begin > _FEW_BYTES:
        middle = (begin + end) // 2
        before = lines.count(b"\n", begin, middle)
        if before < count:
            begin, count = middle, count - before
        else:
            end = middle
    for _ in range(count):
        begin = lines.find(b"\n", begin) + 1
    return begin


# Markdown


def markdown(source: Source) -> Iterator[bytes]:
    """Yield a heading for each block, with the command and its output in code blocks."""
    opening = source.opening()
    yield f"# {source.conversation_id}\n\n".encode()
    for block in source.blocks():
        yield f"## {block.block_id}: {_ending(block)}\n\n".encode("utf-8", "replace")
        if block.cwd:
            yield f"In {_inline(block.cwd)}\n\n".encode("utf-8", "replace")
        if block.cmd:
            yield from _fenced("sh", [block.cmd.encode("utf-8", "replace")])
        rendered = Rendered(opening.cols, opening.rows)
        unmarked = View("ansi", max(block.span[0], source.begin))
        yield from _fenced("text", _redacted(source, _seen(rendered, unmarked, _output(source, block))))


def _seen(rendered: Rendered, unmarked: View, pieces: Iterable[OutputLines]) -> Iterator[Part]:
    for data, shown in pieces:
        # The view has nothing to take out of plain lines.
        plain = data if shown is not None else unmarked.feed(data).text.replace(b"\n", b"\r\n")
        yield from rendered.parts(plain, shown)
    yield from rendered.parts(unmarked.finish().text.replace(b"\n", b"\r\n"))
    yield Part(rendered.finish())


def _ending(block: Block) -> str:
    status = block.state if block.exit_status is None else f"exit {block.exit_status}"
    if block.signal:
        status = f"{status} ({block.signal})"
    return status if block.duration_ms is None else f"{status}, {block.duration_ms / 1000:.3f} s"


def _inline(text: str) -> str:
    """Return a text as inline code."""
    shown = " ".join(text.split())
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _fenced(kind: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a code block with a fence that nothing in it can end; nothing for nothing."""
    longest, run, size, last = 2, 0, 0, b""
    # Which fence is long enough is known only at the end.
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as kept:
        for data in pieces:
            if not data:
                continue
            kept.write(data)
            size, last = size + len(data), data[-1:]
            for found in _FENCE.finditer(data):
                length = found.end() - found.start() + (run if found.start() == 0 else 0)
                longest = max(longest, length)
            tail = len(data) - len(data.rstrip(b"`"))
            run = tail + (run if tail == len(data) else 0)
        if not size:
            return
        fence = b"`" * (longest + 1)
        kept.seek(0)
        yield fence + kind.encode() + b"\n"
        while piece := kept.read(PIECE):
            yield piece
        yield (b"" if last == b"\n" else b"\n") + fence + b"\n\n"
