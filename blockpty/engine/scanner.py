"""Cut the stream into text and marks, whatever the chunks.

Rules of this file: it looks for marks with `bytes.find` only and keeps no terminal state, so an unfinished escape
sequence in front of a mark cannot hide it. It holds back at most `MAX_MARK` bytes, and only bytes that may still
become a mark. Text and marks, in order, are the input.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from blockpty.engine.marks import BODY, INTRODUCER, MAX_MARK, Mark, parse_mark


class Token(NamedTuple):
    """A piece of the stream.

    Attributes:
        begin, end: stream offsets, half open.
        mark: the mark, or None for text.
        malformed: true for the introducer of something that looked like a mark and is none; it is text as well.
    """

    begin: int
    end: int
    mark: Mark | None = None
    malformed: bool = False


_PREFIXES: Final = tuple(INTRODUCER[:length] for length in range(len(INTRODUCER) - 1, 0, -1))


class Scanner:
    """Incremental scanner; `held` bytes at the end of what was fed are not classified yet."""

    __slots__ = ("_held", "_base", "_buffer", "_buffer_base")

    def __init__(self, offset: int = 0) -> None:
        self._held = b""
        self._base = offset
        self._buffer = b""
        self._buffer_base = offset

    @property
    def classified(self) -> int:
        """Offset up to which tokens have been produced."""
        return self._base

    def feed(self, data: bytes) -> list[Token]:
        """Take the next bytes and return the tokens that are certain now."""
        buffer = self._held + data if self._held else data
        base = self._base
        self._buffer, self._buffer_base = buffer, base
        tokens: list[Token] = []
        position = end = 0
        while True:
            at = buffer.find(INTRODUCER, position)
            if at < 0:
                end = len(buffer) - _partial_introducer(buffer, position)
                break
            if at > position:
                tokens.append(Token(base + position, base + at))
            token, position = _mark_at(buffer, at, base)
            if token is None:
                end = position = at
                break
            tokens.append(token)
        if end > position:
            tokens.append(Token(base + position, base + end))
        self._held = buffer[end:]
        self._base = base + end
        return tokens

    def flush(self) -> Token | None:
        """Take what is held as text, because nothing can follow it; None when nothing is held."""
        if not self._held:
            return None
        self._buffer, self._buffer_base, self._held = self._held, self._base, b""
        begin, self._base = self._base, self._base + len(self._buffer)
        return Token(begin, self._base)

    def line_end(self, token: Token) -> int:
        """Return the offset after the first LF of a token from the last `feed` or `flush`, or -1."""
        base = self._buffer_base
        at = self._buffer.find(b"\n", token.begin - base, token.end - base)
        return base + at + 1 if at >= 0 else -1

    def bytes_of(self, token: Token, limit: int) -> bytes:
        """Return at most `limit` bytes of a token from the last `feed` or `flush`."""
        begin = token.begin - self._buffer_base
        return self._buffer[begin : begin + min(limit, token.end - token.begin)]


def _mark_at(buffer: bytes, at: int, base: int) -> tuple[Token | None, int]:
    """Return the token at an introducer and where to go on; no token when more bytes are needed."""
    body = BODY.match(buffer, at, at + MAX_MARK)
    assert body is not None  # an introducer alone is an empty body
    end = body.end()
    terminator = 0
    if end - at < MAX_MARK:
        if buffer[end : end + 1] == b"\x07":
            terminator = 1
        elif buffer[end : end + 2] == b"\x1b\\":
            terminator = 2
        elif end == len(buffer) or buffer[end:] == b"\x1b":
            return None, at
    if terminator:
        mark = parse_mark(body.group(1))
        if mark is not None:
            return Token(base + at, base + end + terminator, mark), end + terminator
    after = at + len(INTRODUCER)
    return Token(base + at, base + after, malformed=True), after


def _partial_introducer(buffer: bytes, position: int) -> int:
    """Return how many bytes at the end may be the beginning of an introducer."""
    for prefix in _PREFIXES:
        if len(buffer) - position >= len(prefix) and buffer.endswith(prefix):
            return len(prefix)
    return 0
