"""The scanner: the stream cut into text, marks and hints, whatever the chunks.

Rules of this file: it looks for marks with `bytes.find` only and keeps no terminal state, so an unfinished escape
sequence in front of a mark cannot hide it. It holds back at most `MAX_MARK` bytes, and only bytes that may still
become a mark or a hint. Text, marks and hints, in order, are the input.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from blockpty.engine.hints import HINT, INTRODUCERS, LEAD, TRAIL, TRAIL_FIELD, Hint, parse_hint
from blockpty.engine.marks import BODY, INTRODUCER, MAX_MARK, Mark, is_nameless, parse_mark


# Not frozen: a frozen one takes several times as long to make, and there are a dozen in a prompt.
class StreamToken(Struct):
    """A piece of the stream.

    Attributes:
        begin, end: stream offsets, half open.
        mark: the mark, or None for text.
        malformed: true for the introducer of something that looked like a mark and is none; it is text as well.
        nameless: true when only the nonce was missing, as in a shell that inherited our prompts without it.
        hint: what another shell integration says; it is text as well.
    """

    begin: int
    end: int
    mark: Mark | None = None
    malformed: bool = False
    nameless: bool = False
    hint: Hint | None = None


_OSC: Final = b"\x1b]"
_ALL: Final = (INTRODUCER, *INTRODUCERS, LEAD)
_ANYTHING: Final = re.compile(rb"\x1b\](?:7717|[16]33|7|3008);")
# Behind the last hint that becomes an event, only what may stand in front of BEGIN or END.
_MARKS: Final = re.compile(rb"\x1b\](?:7717;|133;C\x07|133;D)")
# A mark from its introducer to its terminator, and the zone mark that is part of BEGIN: what nearly always is there.
_WHOLE_MARK: Final = re.compile(
    rb"(?:\x1b\]133;C\x07(?=\x1b\]7717;__BEGIN__;))?" + BODY.pattern + rb"(?:\x07|\x1b\\)"
)
_BEGIN: Final = INTRODUCER + b"__BEGIN__;"
_END: Final = INTRODUCER + b"__END__;"
# An answer of `_at` below: more bytes decide, or it is neither mark nor hint.
_MORE: Final = -1
_TEXT: Final = 0


class Scanner:
    """Incremental scanner; `held` bytes at the end of what was fed are not classified yet."""

    __slots__ = ("_held", "_base", "_buffer", "_buffer_base", "hints")

    def __init__(self, offset: int = 0) -> None:
        # Whether hints are of use before the next mark; they are text as well, so this is for speed alone.
        self.hints = True
        self._held = b""
        self._base = offset
        self._buffer = b""
        self._buffer_base = offset

    @property
    def classified(self) -> int:
        """Offset up to which tokens have been produced."""
        return self._base

    @property
    def holds(self) -> bool:
        """Whether bytes were fed that no token has yet."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[StreamToken]:
        """Take the next bytes and return the tokens that are certain now."""
        buffer = self._held + data if self._held else data
        base = self._base
        self._buffer, self._buffer_base = buffer, base
        tokens: list[StreamToken] = []
        position = 0
        # Without any ESC, which is found ten times as fast, there is nothing to look for.
        at = buffer.find(b"\x1b")
        wanted = _ANYTHING if self.hints else _MARKS
        while at >= 0:
            candidate = wanted.search(buffer, at)
            at = candidate.start() if candidate is not None else -1
            if at < 0:
                break
            token, after = _token_at(buffer, at, base)
            if after == _MORE:
                break
            if token is None:
                at += len(_OSC)
                continue
            if at > position:
                tokens.append(StreamToken(base + position, base + at))
            tokens.append(token)
            position = at = after
            if token.mark is not None:
                wanted = _ANYTHING
        end = at if at >= 0 else len(buffer)
        if at < 0:
            end -= _partial(buffer, position)
        if end > position:
            tokens.append(StreamToken(base + position, base + end))
        self._held = buffer[end:]
        self._base = base + end
        return tokens

    def flush(self) -> list[StreamToken]:
        """Take what is held as text, because nothing can follow it."""
        if not self._held:
            return []
        self._buffer, self._buffer_base, self._held = self._held, self._base, b""
        begin, self._base = self._base, self._base + len(self._buffer)
        trail = TRAIL.match(self._buffer)
        if trail is None and not self._buffer.startswith(LEAD):
            return [StreamToken(begin, self._base)]
        middle = begin + (len(LEAD) if trail is None else trail.end())
        lead = StreamToken(begin, middle, hint=Hint("133", "C" if trail is None else "D"))
        return [lead, StreamToken(middle, self._base)] if middle < self._base else [lead]

    def line_end(self, token: StreamToken) -> int:
        """Return the offset after the first LF in a token of the last `feed` or `flush`, or -1."""
        base = self._buffer_base
        at = self._buffer.find(b"\n", token.begin - base, token.end - base)
        return base + at + 1 if at >= 0 else -1

    def bytes_of(self, token: StreamToken, limit: int) -> bytes:
        """Return at most `limit` bytes of a token from the last `feed` or `flush`."""
        begin = token.begin - self._buffer_base
        return self._buffer[begin : begin + min(limit, token.end - token.begin)]

    def last_of(self, token: StreamToken, limit: int) -> bytes:
        """Return at most the last `limit` bytes of a token from the last `feed` or `flush`."""
        return self._buffer[max(token.begin, token.end - limit) - self._buffer_base : token.end - self._buffer_base]


def _partial(buffer: bytes, position: int) -> int:
    """Return how many bytes at the end may be the beginning of an introducer."""
    at = buffer.find(b"\x1b", max(position, len(buffer) - len(LEAD) + 1))
    while at >= 0:
        if any(one.startswith(buffer[at:]) for one in _ALL):
            return len(buffer) - at
        at = buffer.find(b"\x1b", at + 1)
    return 0


def _token_at(buffer: bytes, at: int, base: int) -> tuple[StreamToken | None, int]:
    """Return the mark or hint at an ESC ] and where to go on; without a token `_MORE` or `_TEXT`."""
    whole = _WHOLE_MARK.match(buffer, at, at + MAX_MARK)
    if whole is not None and (mark := parse_mark(whole[1])) is not None:
        after = whole.end()
        return StreamToken(base + at, base + after, mark), after
    if buffer.startswith(INTRODUCER, at):
        return _mark_at(buffer, at, base)
    found = HINT.match(buffer, at, at + MAX_MARK)
    assert found is not None  # an introducer alone is an empty hint
    end = found.end(2)
    terminator = len(found[3]) if found[3] else _terminator(buffer, at, end)
    if terminator <= 0:
        return None, terminator
    if buffer.startswith(LEAD, at):
        token, after = _joined_at(buffer, at, at + len(LEAD), _BEGIN, base)
        if token is not None or after == _MORE:
            return token, after
    elif found[2].startswith(b"D") and TRAIL.fullmatch(buffer, at, end + terminator):
        token, after = _joined_at(buffer, at, end + terminator, _END, base)
        if token is not None or after == _MORE:
            return token, after
    hint = parse_hint(found[1], found[2])
    if hint is None:
        return None, _TEXT
    return StreamToken(base + at, base + end + terminator, hint=hint), end + terminator


def _joined_at(buffer: bytes, at: int, mark_at: int, introducer: bytes, base: int) -> tuple[StreamToken | None, int]:
    """Return the BEGIN or END with the zone mark in front of it, as if they were one mark, in length too.

    An END takes in only a zone mark that is the shell's: it says so itself.
    """
    rest = buffer[mark_at : mark_at + len(introducer)]
    if rest != introducer:
        return None, _MORE if introducer.startswith(rest) else _TEXT
    token, after = _mark_at(buffer, mark_at, base)
    if token is None:
        return None, _MORE if len(buffer) - at < MAX_MARK else _TEXT
    foreign = token.mark is not None and introducer == _END and token.mark.fields.get(TRAIL_FIELD) != "1"
    if token.mark is None or foreign or after - at > MAX_MARK:
        return None, _TEXT
    token.begin = base + at
    return token, after


def _mark_at(buffer: bytes, at: int, base: int) -> tuple[StreamToken | None, int]:
    """Return the token at an introducer and where to go on; `_MORE` and no token when more bytes are needed."""
    body = BODY.match(buffer, at, at + MAX_MARK)
    assert body is not None  # an introducer alone is an empty body
    end = body.end()
    terminator = _terminator(buffer, at, end)
    if terminator == _MORE:
        return None, _MORE
    nameless = False
    if terminator:
        mark = parse_mark(body.group(1))
        if mark is not None:
            return StreamToken(base + at, base + end + terminator, mark), end + terminator
        nameless = is_nameless(body.group(1))
    after = at + len(INTRODUCER)
    return StreamToken(base + at, base + after, malformed=True, nameless=nameless), after


def _terminator(buffer: bytes, at: int, end: int) -> int:
    """Return the length of the terminator at `end`: 0 for none, or too far from `at`, `_MORE` when it may yet come."""
    if end - at >= MAX_MARK:
        return 0
    if buffer[end : end + 1] == b"\x07":
        return 1
    if buffer[end : end + 2] == b"\x1b\\":
        return 2
    return _MORE if end == len(buffer) or (end + 1 == len(buffer) and buffer[end:] == b"\x1b") else 0
