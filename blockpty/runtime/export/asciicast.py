"""asciicast v2 and v3, the formats of asciinema: text with times, a marker where a block begins, sizes, exit status.

Rules of this file: data is text, so a character that is cut in two is held back until it is whole, and what is no
UTF-8 becomes U+FFFD. Times are those of the record, in whole milliseconds, so the intervals of v3 add up exactly.
v2: https://docs.asciinema.org/manual/asciicast/v2/, v3: https://docs.asciinema.org/manual/asciicast/v3/
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any, Final

import orjson

from blockpty.model.block import Block
from blockpty.runtime.export.recording_events import Began, Opening, Output, Resized, ShellExited, Source
from blockpty.runtime.screens import AFTER_ANOTHER

_LABEL: Final = 200
_TERM: Final = "xterm-256color"


def cast(source: Source, version: int) -> Iterator[bytes]:
    """Yield the lines of an asciicast of version 2 or 3."""
    opening = source.opening()
    yield orjson.dumps(_header(source, opening, version)) + b"\n"
    lines = _EventLines(opening.ts, relative=version == 3)
    if source.begin > 0:
        # A terminal is a state machine: who sees a part of its output needs the state that it began from.
        yield from lines.output(opening.ts, source.screen(opening))
    status: int | None = None
    for moment in source.moments(opening):
        match moment:
            case Output(ts, data):
                yield from lines.output(ts, data)
            case Resized(ts, cols, rows, fresh):
                if fresh:
                    status = None
                    yield from lines.output(ts, AFTER_ANOTHER)
                yield lines.line(ts, "r", f"{cols}x{rows}")
            case Began(ts, block):
                yield lines.line(ts, "m", label(block))
            case ShellExited(_, status):
                pass
    yield from lines.finish()
    if source.block is not None:
        status = source.block.exit_status
    if version == 3 and status is not None:
        yield lines.line(lines.ts, "x", str(status))


def label(block: Block) -> str:
    """Return the name of a block in a list of markers: its command on one line."""
    text = "(background)" if block.kind == "background" else " ".join(block.cmd.split())
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 3]}..."


def _header(source: Source, opening: Opening, version: int) -> dict[str, Any]:
    about: dict[str, Any] = {"timestamp": opening.ts // 1000}
    if source.block is not None:
        about["command"] = source.block.cmd
    about["title"] = source.conversation_id
    about["env"] = {"TERM": _TERM, **({"SHELL": opening.shell} if opening.shell else {})}
    if version == 2:
        return {"version": 2, "width": opening.cols, "height": opening.rows, **about}
    return {"version": 3, "term": {"cols": opening.cols, "rows": opening.rows, "type": _TERM}, **about}


class _EventLines:
    """Events as lines; times since the beginning, or `relative` to the line before."""

    def __init__(self, ts: int, *, relative: bool) -> None:
        self.ts = ts
        self._from = ts
        self._relative = relative
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def output(self, ts: int, data: bytes) -> Iterator[bytes]:
        """Yield what is whole now."""
        if text := self._decoder.decode(data):
            yield self.line(ts, "o", text)

    def finish(self) -> Iterator[bytes]:
        """Yield what was held."""
        if text := self._decoder.decode(b"", final=True):
            yield self.line(self.ts, "o", text)

    def line(self, ts: int, code: str, text: str) -> bytes:
        """Return one event."""
        self.ts = max(ts, self.ts)
        passed = self.ts - self._from
        if self._relative:
            self._from = self.ts
        # A surrogate, which a recorded command may have, is no UTF-8.
        data = orjson.dumps(text.encode("utf-8", "replace").decode())
        return b'[%d.%03d, "%s", %s]\n' % (passed // 1000, passed % 1000, code.encode(), data)
