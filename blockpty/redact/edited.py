"""Secrets in lines that an editor drew in pieces: what was drawn in the end, and the bytes that drew it.

Rules of this file: pure. A line editor draws only what changes: where something is put into the middle of a token, or a
character of it is replaced, the bytes hold the token in parts, in another order and more than once. So the lines around
such a change are drawn here, on rows that know of each cell which byte drew it. Where they show a secret at any time,
these bytes are redacted, whatever else was drawn in its cells, and what was drawn elsewhere and is like a part of it.

Nothing is known of the screen. How wide it is follows from what editors send where a row ends; where that is not sent,
rows have no end.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ahocorasick_rs import BytesAhoCorasick

Spans = list[tuple[int, int]]

# Back in a row, into the middle of it, or to a column of a row before: few programs send that but editors.
_CHANGE: Final = re.compile(
    rb"\x08|\x1b\[[0-9]{0,4}[DP@G`a]|\x1b\[[0-9]{0,4}A[\r\n]{0,24}\x1b\[[0-9]{0,4}C|\r\x1b\[[0-9]{0,4}C"
)
_CHANGES: Final = BytesAhoCorasick([b"\x08", b"\r\x1b[C", *(b"\x1b[" + bytes([one]) for one in b"DP@AG`a")])
# Bold and underlined on a typewriter, which is how manuals come: nothing changes by that.
_STRUCK: Final = re.compile(rb"([!-~])\x08(?=\1)|_\x08(?=[!-~])")
_LONGEST_CHANGE: Final = 4
_PARAMETERS: Final = b"0123456789;"
_STEP: Final = 64 * 1024
# So many lines around one are drawn with it, and no more bytes at a time.
_AROUND: Final = 8
_LONGEST: Final = 64 * 1024
# And no more before a place that is asked for: it is drawn again for each piece that is followed.
_LONGEST_BEFORE: Final = 16 * 1024
# The end of a command: what is edited behind it is another line.
_ENDED: Final = re.compile(rb"\x1b\]7717;__(?:OUT_)?END__")
_PIECE: Final = re.compile(
    rb"(?P<text>[ -~]+)"
    rb"|\x1b\[(?P<arguments>[0-?]{0,32})(?P<final>[@-~])"
    rb"|\x1b[\]PX^_](?P<string>[^\x07\x18\x1a\x1b]*)(?:\x07|\x18|\x1a|\x1b\\)?"
    rb"|\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?"
    rb"|(?P<control>[\r\n\x08\t])"
    rb"|(?P<wide>[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})"
    rb"|[\x00-\xff]"
)
# What one sends where its row is full, to draw the last two characters once more: so wide is the screen.
_FULL: Final = re.compile(rb"\r\n(?:\x1b\[[0-9;:]{0,20}m|\x1b\(B){0,8}\x1b\[A\x1b\[([0-9]{1,4})C")
_FILLED: Final = re.compile(rb"(?:\xe2\x8f\x8e|[%#])(?:\x1b\[[0-9;:]{0,20}m|\x1b\(B){0,8}( {9,})\r")
_BEFORE: Final = 4096
_MOST_WIDTHS: Final = 3
# And where it goes on in the next row: a blank there, and back.
_WRAPPED: Final = re.compile(rb" \r(?:[!-~\x80-\xff]|\x1b\[K)")
_NARROWEST: Final = 10
# No terminal has more columns.
_WIDEST: Final = 4096
_MOST_ROWS: Final = 512
# How often it is looked at what is there before it changes.
_MOST_LOOKS: Final = 64
# Characters in a row that two texts have in common where one is a part of the other.
_GRAM: Final = 3
# In place of a character that is not ASCII.
_OTHER: Final = 0xFF


def find_edited(data: bytes, find: Callable[[bytes], Spans], columns: Callable[[], Sequence[int]]) -> Spans:
    """Return where in what a terminal was sent the secrets are that were drawn in pieces.

    `find` knows them in a text; `columns` says how wide the terminal has been, if it is known.
    """
    spans: Spans = []
    found = regions(data)
    known = columns() if found else ()
    for begin, end in found:
        for at in range(begin, end, _LONGEST):
            to = min(at + _LONGEST, end)
            for width in known or _widths(data, at, to):
                spans += _DrawnRows(data, find, width).spans(at, to)
    return spans


def cover_like(data: bytes, find: Callable[[bytes], Spans], columns: Sequence[int], text: bytes) -> Spans:
    """Return what of a text is like a part of the secrets that were drawn in pieces; it stands elsewhere by now."""
    texts: set[bytes] = set()
    for begin, end in regions(data):
        for width in columns or _widths(data, begin, end):
            drawing = _DrawnRows(data, find, width)
            drawing.spans(begin, end)
            texts |= drawing.texts
    grams = _grams(texts, _GRAM + 1)
    return [(at, at + _GRAM + 1) for at in range(len(text) - _GRAM) if text[at : at + _GRAM + 1] in grams]


def _grams(texts: Iterable[bytes], size: int) -> set[bytes]:
    return {text[at : at + size] for text in texts for at in range(len(text) - size + 1)}


def may_change(data: bytes) -> bool:
    """Whether a line is edited; a quick look, which says so of some others."""
    if b"\x1b" not in data:
        return b"\x08" in _STRUCK.sub(b"", data) if b"\x08" in data else False
    flat = data.translate(None, _PARAMETERS)
    steps = range(0, len(flat), _STEP)
    return any(_CHANGES.find_matches_as_indexes(flat[at : at + _STEP + _LONGEST_CHANGE]) for at in steps)


def begin_of_edited(data: bytes, at: int) -> int:
    """Return where the lines begin around what is edited in which a place lies, or the place."""
    begin, end = _around(data, at, at, 0, len(data))
    if not may_change(data[begin:end]):
        return at
    first = max(0, at - _LONGEST_BEFORE)
    return next((first + begin for begin, end in regions(data[first:end]) if begin <= at - first < end), at)


def is_edited(data: bytes, at: int) -> bool:
    """Whether what is edited stands near a place."""
    begin, end = _around(data, at, at, 0, len(data))
    return may_change(data[begin:end])


def _around(data: bytes, begin: int, end: int, first: int, last: int) -> tuple[int, int]:
    """Return where some lines before a place and behind another one begin and end."""
    for _ in range(_AROUND):
        begin, end = data.rfind(b"\n", first, begin), data.find(b"\n", end, last) + 1
        begin, end = (begin if begin >= 0 else first), (end or last)
    return begin, end


def regions(data: bytes) -> list[tuple[int, int]]:
    """Return runs of lines around changes, in order and apart from each other."""
    if not may_change(data):
        return []
    found: list[tuple[int, int]] = []
    borders = [0, *(ended.start() for ended in _ENDED.finditer(data)), len(data)]
    for first, last in itertools.pairwise(borders):
        at = first
        while (change := _CHANGE.search(data, at, last)) is not None:
            begin, end = _around(data, *change.span(), first, last)
            if found and begin <= found[-1][1] and first <= found[-1][0]:
                found[-1] = (found[-1][0], end)
            else:
                found.append((begin, end))
            at = data.find(b"\n", change.end(), last) + 1 or last
    return found


def _widths(data: bytes, begin: int, end: int) -> list[int]:
    """Return how wide the screen may be; where editors say different things, more than one."""
    said = Counter(int(found[1]) + 2 for found in _FULL.finditer(data, begin, end))
    # Before its prompt one fills a row, to see whether the cursor was at the left edge.
    before = max(0, begin - _BEFORE)
    said.update(len(found[1]) + 1 for found in _FILLED.finditer(data, before, end))
    return [width for width, _ in said.most_common(_MOST_WIDTHS) if _NARROWEST <= width < _WIDEST] or [_WIDEST]


class _DrawnRows:
    """Rows of cells, each a character and the offset of what drew it, -1 for a blank that nothing drew.

    Attributes:
        texts: the secrets that were found.
    """

    def __init__(self, data: bytes, find: Callable[[bytes], Spans], width: int) -> None:
        self._data = data
        self._find = find
        self._width = width
        self._chars: list[bytearray] = [bytearray()]
        self._ats: list[list[int]] = [[]]
        self._y = self._x = 0
        # What was drawn: row, column, offset and characters, in the order of time; one that is not ASCII by itself.
        self._drawn: list[tuple[int, int, int, int]] = []
        self._strings: Spans = []
        self._changed = False
        self._looks = 0
        self._secret: set[int] = set()
        self._cells: set[tuple[int, int]] = set()
        self.texts: set[bytes] = set()

    def spans(self, begin: int, end: int) -> Spans:
        """Draw a part of the data, and return the secrets in it."""
        for piece in _PIECE.finditer(self._data, begin, end):
            kind = piece.lastgroup
            if kind == "text":
                self._draw(piece[0], piece.start())
            elif kind == "final":
                self._control(piece["final"], piece["arguments"])
            elif kind == "control":
                self._move(piece[0], piece.start())
            elif kind == "string":
                self._strings.append(piece.span("string"))
            elif kind == "wide":
                self._draw_other(piece[0], piece.start())
        self._look()
        if not self.texts:
            return []
        self._cover_drawn()
        return [(at, at + _length(self._data, at)) for at in sorted(self._secret)]

    def _draw(self, text: bytes, at: int) -> None:
        while text:
            room = self._width - self._x
            if room <= 0:
                self._down()
                self._x, room = 0, self._width
            piece, text = text[:room], text[room:]
            self._put(piece, range(at, at + len(piece)))
            self._drawn.append((self._y, self._x - len(piece), at, len(piece)))
            at += len(piece)

    def _draw_other(self, character: bytes, at: int) -> None:
        one = character.decode("utf-8", "replace")[:1]
        if unicodedata.category(one) in ("Mn", "Me", "Cf"):
            return
        wide = 2 if unicodedata.east_asian_width(one) in ("W", "F") else 1
        if self._x + wide > self._width:
            self._down()
            self._x = 0
        self._put(bytes([_OTHER]) * wide, [at] * wide)
        self._drawn.append((self._y, self._x - wide, at, 1))

    def _put(self, text: bytes, ats: Iterable[int]) -> None:
        chars, x = self._chars[self._y], self._x
        if x < len(chars) and chars[x : x + len(text)] != text[: len(chars) - x]:
            self._look_before_a_change()
        self._fill(x)
        chars[x : x + len(text)] = text
        self._ats[self._y][x : x + len(text)] = ats
        self._x = x + len(text)
        self._changed = True

    def _fill(self, length: int) -> None:
        chars = self._chars[self._y]
        if length > len(chars):
            self._ats[self._y] += [-1] * (length - len(chars))
            chars += b" " * (length - len(chars))

    def _down(self) -> None:
        self._y += 1
        if self._y == len(self._chars):
            self._chars.append(bytearray())
            self._ats.append([])

    def _move(self, control: bytes, at: int) -> None:
        if control == b"\r":
            self._return(at)
        elif control == b"\n":
            if self._y >= _MOST_ROWS:
                self._clear()
            self._down()
        elif control == b"\x08":
            self._x = max(0, min(self._x, self._width - 1) - 1)
        else:
            self._x = min(self._width - 1, self._x // 8 * 8 + 8)

    def _return(self, at: int) -> None:
        if self._width == _WIDEST:
            chars, x = self._chars[self._y], self._x
            if (
                x == len(chars) > _NARROWEST and chars[-2] != 32 and _WRAPPED.match(self._data, at - 1) is not None
            ):  # fmt: skip
                # A blank that begins the next row, and the way back to its left edge.
                self._width = x - 1
                del chars[-1], self._ats[self._y][-1]
                self._down()
        self._x = 0

    def _control(self, final: bytes, arguments: bytes) -> None:
        first = arguments.partition(b";")[0]
        if not first.isdigit() and first:
            return
        count = min(int(first or b"0"), _WIDEST)
        times = max(1, count)
        chars, ats, x = self._chars[self._y], self._ats[self._y], min(self._x, self._width - 1)
        if final == b"A":
            self._y = max(0, self._y - times)
        elif final == b"B":
            self._y = min(len(self._chars) - 1, self._y + times)
        elif final in (b"C", b"a"):
            self._x = min(self._width - 1, self._x + times)
        elif final == b"D":
            self._x = max(0, x - times)
        elif final in (b"G", b"`"):
            self._x = min(times, self._width) - 1
        elif final in (b"H", b"f", b"d"):
            self._clear()
        elif final in (b"K", b"J", b"P", b"X", b"@"):
            self._look_before_a_change()
            if final == b"P":
                del chars[x : x + times], ats[x : x + times]
            elif final == b"@":
                if x < len(chars):
                    chars[x:x], ats[x:x] = b" " * times, [-1] * times
                    del chars[self._width :], ats[self._width :]
            elif final == b"X" or count == 1:
                first_gone, last = (x, min(x + times, len(chars))) if final == b"X" else (0, min(x + 1, len(chars)))
                chars[first_gone:last] = b" " * (last - first_gone)
                ats[first_gone:last] = [-1] * (last - first_gone)
            else:
                begin = 0 if count else self._x
                del chars[begin:], ats[begin:]
                if final == b"J":
                    del self._chars[self._y + 1 :], self._ats[self._y + 1 :]
        else:
            return

    def _clear(self) -> None:
        """Begin anew: the cursor goes where it is not known what stands."""
        self._look()
        self._chars, self._ats, self._y, self._x = [bytearray()], [[]], 0, 0

    def _look_before_a_change(self) -> None:
        if self._changed and self._looks < _MOST_LOOKS:
            self._looks += 1
            self._look()

    def _look(self) -> None:
        """Look for secrets in what is there."""
        if not self._changed:
            return
        self._changed = False
        texts: list[bytes] = []
        cells: list[tuple[int, int, int]] = []  # where each row begins in the text
        size = 0
        for y, chars in enumerate(self._chars):
            cells.append((size, y, len(chars)))
            texts.append(bytes(chars) if len(chars) == self._width else bytes(chars) + b"\n")
            size += len(texts[-1])
        text = b"".join(texts)
        for begin, end in self._find(text):
            self.texts.add(text[begin:end].replace(b"\n", b""))
            for first, y, length in cells:
                for x in range(max(begin - first, 0), min(end - first, length)):
                    self._cells.add((y, x))
                    if self._ats[y][x] >= 0:
                        self._secret.add(self._ats[y][x])

    def _cover_drawn(self) -> None:
        """Add what was drawn in the cells of secrets at any time, and what elsewhere is like a part of one."""
        grams = _grams(self.texts, _GRAM)
        data, run, ats = self._data, bytearray(), list[int]()
        behind = (-1, -1)
        for y, x, at, count in self._drawn:
            if (y, x) != behind and not (x == 0 and behind == (y - 1, self._width)):
                self._cover_like(bytes(run), ats, grams)
                run, ats = bytearray(), []
            behind = (y, x + count)
            run += data[at : at + count] if data[at] < 0x80 else bytes([_OTHER])
            ats += range(at, at + count)
            self._secret.update(at + place for place in range(count) if (y, x + place) in self._cells)
        self._cover_like(bytes(run), ats, grams)
        for begin, end in self._strings:
            self._cover_like(data[begin:end], range(begin, end), grams)
        self._secret = {at for at in self._secret if data[at] != 32}

    def _cover_like(self, text: bytes, ats: Sequence[int], grams: set[bytes]) -> None:
        for place in range(len(text) - _GRAM + 1):
            if text[place : place + _GRAM] in grams:
                self._secret.update(ats[place : place + _GRAM])


def _length(data: bytes, at: int) -> int:
    """Return how many bytes the character at a place has."""
    one = data[at]
    return 1 if one < 0xC0 else 2 if one < 0xE0 else 3 if one < 0xF0 else 4
