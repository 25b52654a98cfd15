"""Pieces of a stream that is followed by several: they mostly ask for the same, which is redacted once for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from blockpty.redact.redaction import LONGEST
from blockpty.runtime.drawn import DrawnStream
from blockpty.runtime.redactor import Redactor
from blockpty.spool.stream import StreamReader

_PIECE_BYTES: Final = 256 * 1024
# Of a stream that is followed by several, and how many such parts are kept.
_SHARED_BYTES: Final = 64 * 1024
_SHARED_PARTS: Final = 8


class SharedPieces:
    """Pieces of one stream, redacted once for all who follow it.

    Args:
        stream: the stream as it is recorded.
        drawn: the same with the commands in place of the lines that were typed for them.
        redactor: returns the one in force.
    """

    def __init__(self, stream: StreamReader, drawn: DrawnStream, redactor: Callable[[], Redactor]) -> None:
        self._stream = stream
        self._drawn = drawn
        self._redactor = redactor
        # The last equal parts of the stream, as they left, by where they begin.
        self._parts: dict[int, bytes] = {}
        # What was last asked for at the stream's end (its begin, its end, the stream's), and what that gave.
        self._last: tuple[tuple[int, int, int], tuple[bytes, int]] | None = None

    def read(self, cursor: int, stop: int, end: int, *, is_last: bool) -> bytes:
        """Return the bytes from a cursor on, at most up to `stop`, redacted; `end` is where the stream ends by now.

        None of what may be the beginning of a secret at its end, unless it `is_last`: nothing has come for a while, or
        will ever come.
        """
        if end - cursor > 2 * _SHARED_BYTES and (shared := self._part(cursor, stop)):
            return shared
        asked = (cursor, stop, end)
        if self._last is None or self._last[0] != asked or is_last:
            length = min(_PIECE_BYTES, stop - cursor)
            self._last = asked, self._redactor().read_settled(self._drawn, cursor, length)
        data, settled = self._last[1]
        return data[:settled] if cursor + len(data) == end <= cursor + LONGEST and not is_last else data

    def clear(self) -> None:
        """Keep nothing: another record may be read."""
        self._parts.clear()
        self._last = None

    def _part(self, cursor: int, stop: int) -> bytes:
        """Return bytes of one of the equal parts, which are searched once for all who follow a flood."""
        begin = cursor - cursor % _SHARED_BYTES
        part = self._parts.get(begin)
        if part is None and begin >= self._stream.begin:
            part, settled = self._redactor().read_settled(self._drawn, begin, _SHARED_BYTES)
            if settled < len(part):
                return b""
            if len(self._parts) >= _SHARED_PARTS:
                del self._parts[next(iter(self._parts))]
            self._parts[begin] = part
        return (part or b"")[cursor - begin : stop - begin]
