r"""Chunks: how a block's output is cut, what of it is looked at, and the way back to stream offsets.

Rules of this file: pure. The cuts are a function of the block's bytes alone, so that every index and the scan look at
the same pieces and find the same matches, in whatever order they were built.

A chunk is at most `CHUNK` raw bytes and ends at a line end. Only a line longer than that is cut elsewhere: before a
CR, after a blank, after another ASCII character of no word, or else anywhere, but never inside a character or a control
sequence; its chunk then also sees the next `AHEAD` bytes of the line, and matches that begin before the cut are its
own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from itertools import accumulate
from typing import Final

from blockpty.engine.views import OffsetMap, Piece, View, transform

CHUNK: Final = 16 * 1024
AHEAD: Final = 4096
PIECE: Final = 6 * 1024
"""What an index may look at by itself: about so many raw bytes of a chunk, whole lines."""
# How far before the end of a chunk a place between words is looked for, in a line without a CR.
_BETWEEN: Final = 1024
# Characters of no word, and of no sequence that begins with CSI.
_NO_WORD: Final = b"\t!\"'()*,./>\\]{|}-"

_SURROGATES: Final = re.compile("[\udc80-\udcff]")
_WORD: Final = re.compile(r"[^\W_]+")
# What stands for itself in a stream, and in its text: printable ASCII, blanks, tabs and line ends.
_PLAIN: Final = bytes((*b"\t\n\r", *range(0x20, 0x7F)))
# What colours it, or wipes to the end of a line.
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;:]{0,64}[mK]")
MIXED, PLAIN, COLOURED = 0, 1, 2
"""What the bytes of a window may be made of, see `Window.kind`."""


class Window:
    """One chunk, ready to be looked at.

    Attributes:
        number: counted from 1 in its block; 0 for the command.
        begin, end: the raw bytes that are the chunk's own, as stream offsets.
        raw: those, and what it sees ahead.
        text: what is matched: the view `text` with every line end an LF and what is no UTF-8 replaced.
        own: characters of `text` that are the chunk's own.
    """

    # The line whose places are known.
    _line = -1
    _places: OffsetMap

    def __init__(self, number: int, begin: int, raw: bytes, own: int) -> None:
        self.number = number
        self.begin = begin
        self.end = begin + own
        self.raw = raw

    @cached_property
    def shown(self) -> bytes:
        """What `text` is made of."""
        return transform("text", self.raw)

    @cached_property
    def _decoded(self) -> str:
        return self.shown.decode("utf-8", "surrogateescape")

    @cached_property
    def text(self) -> str:
        text = self._decoded if self._decoded.isascii() else _SURROGATES.sub("\ufffd", self._decoded)
        return text.replace("\r", "\n")

    @cached_property
    def own(self) -> int:
        own = self.end - self.begin
        if own == len(self.raw):
            return len(self.text)
        return len(transform("text", self.raw[:own]).decode("utf-8", "surrogateescape"))

    @property
    def plain(self) -> bool:
        """Whether a text without line ends is in `text` exactly where its ASCII bytes are in `raw`."""
        return not self.raw.translate(None, _PLAIN)

    @cached_property
    def kind(self) -> int:
        """PLAIN, as `plain` says; COLOURED: it is but for sequences `ESC [ ... m` and `ESC [ ... K`; or MIXED."""
        others = self.raw.translate(None, _PLAIN)
        if not others or others[0] != 0x1B:
            return MIXED if others else PLAIN
        return MIXED if _COLOURS.sub(b"", self.raw).translate(None, _PLAIN) else COLOURED

    def pieces(self) -> list[Window]:
        """Return the chunk in pieces of about `PIECE` bytes, cut at line ends; what matches lies in one of them."""
        if len(self.raw) < 2 * PIECE or self.end - self.begin != len(self.raw):
            # Another one, so that a caller that keeps the chunk does not keep the text as well.
            return [Window(self.number, self.begin, self.raw, self.end - self.begin)]
        found, at = [], 0
        while at < len(self.raw):
            end = len(self.raw)
            if end - at >= 2 * PIECE:
                end = self.raw.rfind(b"\n", at, at + PIECE) + 1 or self.raw.find(b"\n", at + PIECE) + 1 or end
            found.append(Window(self.number, self.begin + at, self.raw[at:end], end - at))
            at = end
        return found

    @cached_property
    def folded(self) -> str:
        """The text without a difference of case; as long as `text`."""
        return fold(self.text)

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """Return the stream offsets of the characters `[begin, end)` of the text; `end` is greater than `begin`."""
        return self._offset(self._byte(begin)), self._offset(self._byte(end) - 1, after=True)

    def _byte(self, position: int) -> int:
        if self._decoded.isascii():
            return position
        return len(self._decoded[:position].encode("utf-8", "surrogateescape"))

    def _offset(self, position: int, *, after: bool = False) -> int:
        if len(self.shown) == len(self.raw):
            return self.begin + position + after
        # No LF is ever taken out or added, so the lines are the same ones; only one of them has to be gone through.
        line = self.shown.rfind(b"\n", 0, position) + 1
        number = self.shown.count(b"\n", 0, line)
        if self._crlf:
            return self.begin + position + number + after
        if number != self._line:
            raw_line = self._raw_ends[number - 1] + 1 if number else 0
            raw_end = self._raw_ends[number] + 1 if number < len(self._raw_ends) else len(self.raw)
            piece = Piece(b"", self.begin + raw_line, self.raw[raw_line:raw_end])
            self._line, self._places = number, OffsetMap("text", piece)
        return self._places.raw_offset(position - line, after=after)

    @cached_property
    def _crlf(self) -> bool:
        """Whether nothing is left out but a CR before each LF."""
        return self.plain and self.raw.count(b"\r\n") == self.raw.count(b"\n") == self.raw.count(b"\r")

    @cached_property
    def _raw_ends(self) -> list[int]:
        # With the lengths of the lines before it, and an LF after each of them.
        return [at - 1 for at in accumulate([len(line) + 1 for line in self.raw.split(b"\n")[:-1]])]


class CommandWindow(Window):
    """The command of a block; its offsets are those of its UTF-8 bytes."""

    def __init__(self, command: str) -> None:
        self.number = 0
        self.begin = 0
        self._decoded = command
        self.shown = self.raw = command.encode("utf-8", "replace")
        self.end = len(self.raw)
        self.kind = MIXED
        self.text = command.replace("\r", "\n")
        self.own = len(self.text)

    def pieces(self) -> list[Window]:
        """Return the command, all of it."""
        return [self]

    def _byte(self, position: int) -> int:
        return len(self._decoded[:position].encode("utf-8", "replace"))


def windows(read: Callable[[int, int], bytes], begin: int, end: int, number: int = 1) -> Iterator[Window]:
    """Cut `[begin, end)` of a stream; `read(offset, length)` gives its bytes, nonces masked.

    `number` is that of the chunk that begins there.
    """
    at = begin
    while at < end:
        data = read(at, min(CHUNK + AHEAD, end - at))
        if not data:
            return
        own, seen = cut(data, at + len(data) >= end)
        yield Window(number, at, data[:seen], own)
        number, at = number + 1, at + own


def cut(data: bytes, last: bool) -> tuple[int, int]:
    """Return how many of these raw bytes are the first chunk, and how many it sees; nothing follows when `last`."""
    if len(data) <= CHUNK and last:
        return len(data), len(data)
    own = data.rfind(b"\n", 0, CHUNK) + 1 or _inside_a_line(data)
    return own, seen(data, own, last)


def seen(data: bytes, own: int, last: bool) -> int:
    """Return how many of these raw bytes a chunk of `own` bytes at their beginning sees."""
    if data[own - 1 : own] == b"\n" or own >= len(data):
        return own
    ahead = data[own : own + AHEAD]
    end = ahead.find(b"\n")
    if end >= 0:
        return own + len(ahead[:end].rstrip(b"\r"))
    if own + len(ahead) >= len(data) and last:
        return len(data)
    return own + len(View("text", 0).feed(ahead).raw)


def _inside_a_line(data: bytes) -> int:
    carriage_return = data.rfind(b"\r", 1, CHUNK)
    for at in (
        len(data[:carriage_return].rstrip(b"\r")) if carriage_return > 0 else 0,
        data.rfind(b" ", CHUNK - _BETWEEN, CHUNK) + 1,
        max(data.rfind(character, CHUNK - _BETWEEN, CHUNK) for character in _NO_WORD) + 1,
    ):
        if at > 0 and len(View("text", 0).feed(data[:at]).raw) == at:
            return at
    at = len(View("text", 0).feed(data[:CHUNK]).raw) or CHUNK
    for back in range(min(4, at)):
        if at - back < len(data) and data[at - back] & 0xC0 != 0x80:
            return at - back
    return at


def fold(text: str) -> str:
    """Return a text without a difference of case, character by character; also what `regex` takes for the same."""
    if text.isascii():
        return text.lower()
    folded = text.casefold()
    # It only ever grows, so the same length means one character each.
    if len(folded) == len(text):
        return folded.replace("ı", "i")
    return "".join(
        piece.casefold() if at % 2 == 0 else _fold_one(piece) for at, piece in enumerate(_growing().split(text))
    )


@cache
def _growing() -> re.Pattern[str]:
    """Return what matches a character that casefold makes several of, or one of the two that regex takes for an i."""
    several = (chr(code) for code in range(0x80, 0x20000) if len(chr(code).casefold()) > 1)
    return re.compile(f"([İı{''.join(several)}])")


def _fold_one(character: str) -> str:
    if character in "İı":
        return "i"
    folded = character.casefold()
    if len(folded) > 1:
        folded = character.lower()
    return folded if len(folded) == 1 else character


def words_of(folded: str) -> list[str]:
    """Return the words of a folded text, in order: runs of letters and digits."""
    return _WORD.findall(folded)
