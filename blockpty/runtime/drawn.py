"""The stream as it is drawn for people and agents: a submitted command in place of the line that ran it.

Where a shell draws another line than the command (a file that holds it, because it has several lines, is long, or the
shell has no key of ours), the submission in the timeline names that line, and here its echo shows the command. Lengths
and offsets stay: the rest of the echo is filled with NUL, which no terminal draws, and a command that has no room ends
in an ellipsis. Nothing of an echo is returned before it is whole, so what was read does not depend on when.

Rules of this file: a function of the record alone. The bytes themselves stay in the stream, and `raw` shows them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, Final

from msgspec import Struct

from blockpty.engine.loading import is_unmarked
from blockpty.engine.marks import INTRODUCER
from blockpty.model.entries import Entry
from blockpty.spool.layout import Layout
from blockpty.spool.stream import StreamReader
from blockpty.spool.timeline import TimelineReader

# What a line editor may print beside the line: the prompt again, colours, cursor movement.
ASIDE: Final = 16 * 1024
# So much of a line's beginning has to be found in its echo.
HEAD: Final = 12
ELLIPSIS: Final = "…".encode()
# Longer commands are cut: a screen holds less.
MAX_DRAWN: Final = 32 * 1024
# Behind the echo comes one of these: the command begins, ends, or the shell goes on to the next line.
_CLOSING: Final = re.compile(re.escape(INTRODUCER) + rb"__(?:LINE|BEGIN|END|OUT_END|PS2|HELLO)__;")
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def drawn_command(command: str) -> bytes:
    """Return how a command is drawn: lines end in CR LF, control characters are in caret notation."""
    text = _CONTROL.sub(lambda found: "^" + chr(ord(found.group()) ^ 0x40), command.strip("\n")[:MAX_DRAWN])
    return text.replace("\n", "\r\n").encode("utf-8", "replace")


class _Echo(Struct):
    """The echo of one submission: where it begins; `line` is what the shell draws, `shown` what is drawn here.

    `key`: marks of ours close it; `unmarked`: none does, and it ends with its line. `whole`: the offset from which on
    it is known what it holds, None while it is not;
    `span`, `data`: what is drawn where, None where the echo is unlike the line.
    """

    offset: int
    line: bytes
    shown: bytes
    key: bool
    unmarked: bool = False
    whole: int | None = None
    span: tuple[int, int] | None = None
    data: bytes = b""

    @property
    def limit(self) -> int:
        """How far from its begin an echo may reach."""
        return 4 * len(self.line) + ASIDE


class DrawnStream(StreamReader):
    """Reads the stream of a conversation as it is drawn."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout.stream)
        self._layout = layout
        self._submitted: TimelineReader | None = None
        self._exits: TimelineReader | None = None
        self._exited = -1
        self._echoes: list[_Echo] = []
        self._offsets: list[int] = []
        # How far the stream had been read when the timeline was last looked at.
        self._known = -1

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`; fewer at the end, and in front of an echo that is not whole."""
        data = super().read(offset, length)
        if not data:
            return data
        end = offset + len(data)
        if end > self._known:
            self._learn()
            self._known = end
        drawn = data
        for echo in self._echoes[: bisect_right(self._offsets, end - 1)]:
            if echo.whole is not None and (echo.span is None or echo.span[1] <= offset):
                continue
            if not self._decide(echo):
                return drawn[: max(0, echo.offset - offset)]
            if echo.span is not None and echo.span[0] < end and echo.span[1] > offset:
                first, last = max(echo.span[0], offset), min(echo.span[1], end)
                piece = echo.data[first - echo.span[0] : last - echo.span[0]]
                drawn = drawn[: first - offset] + piece + drawn[last - offset :]
        return drawn

    def settled(self, offset: int) -> int:
        """Return `offset`, or where an echo begins that is not whole there; the same whenever it is asked."""
        if offset > self._known:
            self._learn()
            self._known = offset
        for echo in self._echoes[: bisect_right(self._offsets, offset - 1)]:
            if not self._decide(echo) or offset < (echo.whole or 0):
                return echo.offset
        return offset

    def close(self) -> None:
        """Close the files; the reader can be used again."""
        super().close()
        for reader in (self._submitted, self._exits):
            if reader is not None:
                reader.close()
        self._submitted = self._exits = None
        self._echoes, self._offsets, self._known, self._exited = [], [], -1, -1

    def _learn(self) -> None:
        if self._submitted is None or self._exits is None:
            self._submitted = TimelineReader(self._layout.timeline, holding=b'"line":')
            self._exits = TimelineReader(self._layout.timeline, holding=b'"kind":"exit"')
        for entry, _ in self._submitted.read_new():
            echo = _echo_of(entry)
            if echo is not None:
                self._echoes.append(echo)
                self._offsets.append(echo.offset)
        for entry, _ in self._exits.read_new():
            if entry.kind == "exit":
                self._exited = max(self._exited, entry.offset)

    def _decide(self, echo: _Echo) -> bool:
        """Find out what of an echo is the line; return whether that is certain."""
        if echo.whole is not None:
            return True
        window = super().read(echo.offset, echo.limit)
        found = _span_of_key(echo, window) if echo.key else _span_of_line(echo, window)
        if found is None and len(window) < echo.limit and self._exited < echo.offset:
            return False
        begin, end, whole = found or (0, 0, len(window))
        echo.whole = echo.offset + whole
        if end > begin:
            echo.span = (echo.offset + begin, echo.offset + end)
            echo.data = _fitted(echo.shown, end - begin)
        echo.shown = b""
        return True


def _echo_of(entry: Entry) -> _Echo | None:
    submit: Any = entry.fields.get("submit")
    if entry.kind != "input" or not isinstance(submit, dict):
        return None
    line, command = submit.get("line"), submit.get("cmd")
    if not isinstance(line, str) or not line.strip() or not isinstance(command, str):
        return None
    drawn = line.rstrip().encode("utf-8", "surrogateescape")
    return _Echo(entry.offset, drawn, drawn_command(command), submit.get("key") is True, is_unmarked(submit))


def _span_of_key(echo: _Echo, window: bytes) -> tuple[int, int, int] | None:
    """Return begin and end of a loaded line in its echo, and where that is known; None while the echo is not closed.

    Begin and end are the same where the echo is unlike the line.
    """
    head = echo.line.lstrip()[:HEAD]
    if echo.unmarked and (begin := window.find(head)) >= 0 and (line_end := window.find(b"\n", begin)) >= 0:
        limit = whole = line_end + 1
    elif (closing := _CLOSING.search(window)) is not None:
        limit, whole = closing.span()
    else:
        return None
    begin = window.find(head, 0, limit)
    begin -= begin > 0 and window[begin - 1 : begin] == b" "
    end = window.rfind(b"\n", 0, limit)
    while end > 0 and window[end - 1 : end] == b"\r":
        end -= 1
    return (begin, end, whole) if 0 <= begin < end else (0, 0, whole)


def _span_of_line(echo: _Echo, window: bytes) -> tuple[int, int, int] | None:
    """The same for a typed line, whose echo is the line and a line end."""
    begin = window.find(echo.line)
    if begin >= 0:
        end = begin + len(echo.line)
        line_end = window.find(b"\n", end)
        return (begin, end, line_end + 1) if line_end >= 0 else None
    if _CLOSING.search(window) is not None:
        # A line editor has drawn it, piece by piece.
        return _span_of_key(echo, window)
    return (0, 0, echo.limit) if len(window) >= echo.limit else None


def _fitted(shown: bytes, room: int) -> bytes:
    if len(shown) <= room:
        return shown.ljust(room, b"\0")
    cut = shown[: max(0, room - len(ELLIPSIS))].decode("utf-8", "ignore").encode()
    return (cut + ELLIPSIS)[:room].ljust(room, b"\0")
