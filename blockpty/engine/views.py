r"""Views: the forms in which raw bytes are read and matched, each with a way back to stream offsets.

Rules of this file: a view is a transducer. `feed` takes contiguous raw bytes and returns a `Piece`; the text of all
pieces, in order, is a function of the raw bytes alone. At most `HELD_LIMIT` bytes are held back, and only bytes whose
meaning later bytes decide. Offsets are worked out only for the piece that a caller asks about.

    raw       the bytes as they are
    ansi      CR LF is LF, our own marks are gone, other control sequences stay
    text      control sequences and control characters are gone as well; LF, TAB and a lone CR stay
    rendered  what a person sees in the end, drawn from ansi by a screen (not in this room)
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple

from ahocorasick_rs import BytesAhoCorasick

VIEWS: Final = ("raw", "ansi", "text", "rendered")

# Longest control string without a line end that is still accepted; xterm and VTE cap theirs in the same range.
STRING_LIMIT: Final = 8192
HELD_LIMIT: Final = STRING_LIMIT + 2
# CRs in front of an LF that are one line end together with it; programs that print CR LF through ONLCR make two.
CR_LIMIT: Final = 16

_STRING: Final = rb"[^\x07\x1b\x18\x1a\n]{0,%d}" % STRING_LIMIT
# A colour of the Linux console, seven digits and no terminator, and the reset of all of them.
_PALETTE: Final = rb"(?:P[0-9A-Fa-f]{7}|R)"
_SEQUENCE: Final = (
    rb"\x1b\[[0-?]{0,256}[ -/]{0,8}[@-~]"
    rb"|\x1b\]" + _PALETTE + rb"|\x1b\]" + _STRING + rb"(?:\x07|\x1b\\|(?=[\x1b\x18\x1a]|\Z))"
    rb"|\x1b[PX^_]" + _STRING + rb"(?:\x07|\x1b\\|(?=[\x1b\x18\x1a]|\Z))"
    rb"|\x1b[ -/]{0,8}[0-~]"
    rb"|\x1b"
)
# With the asterisks that hide a nonce, since what is shown is masked before it gets here.
_OUR_MARK: Final = rb"\x1b\]7717;[0-9A-Za-z+/=%._:,;*\-]{0,512}(?:\x07|\x1b\\)"
_UNFINISHED: Final = re.compile(
    rb"\x1b(?:\[[0-?]{0,256}[ -/]{0,8}|(?:\](?!" + _PALETTE + rb")|[PX^_])" + _STRING + rb"\x1b?|[ -/]{0,8})?"
)
_UNFINISHED_MARK: Final = re.compile(rb"\x1b(?:\](?:7(?:7(?:1(?:7(?:;[0-9A-Za-z+/=%._:,;*\-]{0,512}\x1b?)?)?)?)?)?)?")
_STRIP: Final = re.compile(_SEQUENCE)
_STRIP_MARK: Final = re.compile(_OUR_MARK)
# Among many colours it tells six times as fast as the expression, or `in`, that there is none.
_MARKS: Final = BytesAhoCorasick([b"\x1b]7717;"])
_LINE_END: Final = re.compile(rb"\r{1,16}\n")
_CONTROLS: Final = bytes(code for code in range(32) if code not in b"\n\r\t") + b"\x7f"
_TEXT_TOKENS: Final = re.compile(
    rb"(?P<run>[^\x00-\x08\x0b-\x1f\x7f]+)|(?P<end>\r{1,16}\n)|(?P<cr>\r)|" + _SEQUENCE + rb"|[\x00-\x1f\x7f]"
)
_ANSI_TOKENS: Final = re.compile(rb"(?P<end>\r{1,16}\n)|" + _OUR_MARK + rb"|(?P<run>[^\r\x1b]+|[\r\x1b])")


class Piece(NamedTuple):
    """Text that one step of a view produced, and the raw bytes it came from.

    Attributes:
        text: the view's bytes.
        raw_begin: stream offset of `raw`.
        raw: the raw bytes, whole sequences only; empty when `runs` is there.
        runs: (bytes of text, raw begin, raw end) of everything that stayed, in place of `raw`.
    """

    text: bytes
    raw_begin: int
    raw: bytes
    runs: tuple[tuple[int, int, int], ...] | None = None


class View:
    """Incremental view of a contiguous range of the stream beginning at `offset`."""

    def __init__(self, name: str, offset: int) -> None:
        self.name = name
        self._held = b""
        self.next = offset

    def feed(self, data: bytes) -> Piece:
        """Take the next raw bytes; the piece may be empty."""
        raw = self._held + data if self._held else data
        if self.name != "raw":
            pattern = _UNFINISHED_MARK if self.name == "ansi" else _UNFINISHED
            at = _unfinished_from(raw, pattern)
            raw, self._held = raw[:at], raw[at:]
        begin, self.next = self.next, self.next + len(raw)
        return Piece(transform(self.name, raw), begin, raw)

    def finish(self) -> Piece:
        """Take what is held as it is, because nothing follows it."""
        raw, self._held = self._held, b""
        begin, self.next = self.next, self.next + len(raw)
        return Piece(transform(self.name, raw), begin, raw)


class Unmarked:
    """Incremental: raw bytes without our own marks, and nothing else changed."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next raw bytes and return what is certain."""
        raw = self._held + data if self._held else data
        at = _unfinished_from(raw, _UNFINISHED_MARK) if b"\x1b" in raw else len(raw)
        if at < len(raw) and raw[at] != 0x1B:
            at = len(raw)  # line ends stay as they are, so none has to wait for its other half
        raw, self._held = raw[:at], raw[at:]
        return _STRIP_MARK.sub(b"", raw) if _MARKS.find_matches_as_indexes(raw) else raw

    def finish(self) -> bytes:
        """Return what is held, because nothing follows it."""
        raw, self._held = self._held, b""
        return raw


def transform(name: str, raw: bytes) -> bytes:
    """Return the view of raw bytes that hold whole sequences; `rendered` is the same as `text` here."""
    if name == "raw":
        return raw
    # CR LF first and in the raw bytes: stripping could bring a CR and an LF together that a later read would not.
    if b"\r\n" in raw:
        raw = raw.replace(b"\r\n", b"\n") if b"\r\r" not in raw else _LINE_END.sub(b"\n", raw)
    if b"\x1b" in raw:
        raw = (_STRIP_MARK if name == "ansi" else _STRIP).sub(b"", raw)
    return raw if name == "ansi" else raw.translate(None, _CONTROLS)


def raw_offset(name: str, piece: Piece, position: int, *, after: bool = False) -> int:
    """Return the stream offset of byte `position` of a piece's text, or of the place right after it with `after`.

    `position` must lie inside the text.
    """
    if name == "raw":
        return piece.raw_begin + position + after
    passed = 0
    for length, begin, end in piece.runs if piece.runs is not None else _runs(name, piece.raw):
        if position < passed + length:
            # A line end is one byte of text made of several raw ones.
            inside = position - passed
            return piece.raw_begin + ((end if after else begin) if length < end - begin else begin + inside + after)
        passed += length
    raise IndexError(position)


class OffsetMap:
    """`raw_offset` for many positions of one piece: its runs are gone through once."""

    def __init__(self, name: str, piece: Piece) -> None:
        self._begin = piece.raw_begin
        self._runs = list(piece.runs if piece.runs is not None else _runs(name, piece.raw))
        self._ends = list(accumulate([length for length, _, _ in self._runs]))

    def raw_offset(self, position: int, *, after: bool = False) -> int:
        """Return the same as the function of this name; the view is not `raw`."""
        index = bisect_right(self._ends, position)
        length, begin, end = self._runs[index]
        if length < end - begin:
            return self._begin + (end if after else begin)
        return self._begin + begin + position - (self._ends[index] - length) + after


def compact(name: str, piece: Piece) -> Piece:
    """Return a piece that takes memory by its text, where control sequences are nearly all of the raw bytes."""
    if name == "raw" or len(piece.raw) <= 8 * len(piece.text) + 4096:
        return piece
    return Piece(piece.text, piece.raw_begin, b"", tuple(_runs(name, piece.raw)))


def _runs(name: str, raw: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (bytes of text, raw begin, raw end) for everything that stays; mirrors `transform`."""
    for found in (_ANSI_TOKENS if name == "ansi" else _TEXT_TOKENS).finditer(raw):
        kind = found.lastgroup
        if kind == "end":
            yield 1, found.start(), found.end()
        elif kind is not None:
            yield found.end() - found.start(), found.start(), found.end()


def _unfinished_from(raw: bytes, pattern: re.Pattern[bytes]) -> int:
    """Return where the unfinished tail begins; the length of `raw` when there is none.

    A sequence holds no ESC but the first half of its terminator, so only the last two can begin an unfinished one.
    """
    last = raw.rfind(b"\x1b", max(0, len(raw) - HELD_LIMIT))
    if last >= 0:
        before = raw.rfind(b"\x1b", max(0, len(raw) - HELD_LIMIT), last)
        for at in (before, last):
            if at >= 0 and pattern.fullmatch(raw, at):
                return at
    return max(len(raw.rstrip(b"\r")), len(raw) - CR_LIMIT) if raw.endswith(b"\r") else len(raw)
