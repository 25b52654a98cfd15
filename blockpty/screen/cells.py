"""Cells and rows of the screen, and the few ways to change a row.

Rules of this file: a row is two strings of the screen's width. In `text` each column has one character: itself, or
`SPACER` for the right half of the wide character before it, or a stand-in for several code points (a `Clusters`
entry) in one cell. In `attrs` each column has the mark of its brush (pens.py). Both are immutable, so that a picture of
the screen is a list of references, and equal rows are found by comparing strings. No function leaves half of a wide
character.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from typing import Final

from blockpty.screen import widths

# No control character is ever stored, so NUL is free.
SPACER: Final = "\0"
# Where a row goes on in the next one: after its last column, or, with `PADDED`, before it, because a wide character
# did not fit there.
WRAPPED: Final = 1
PADDED: Final = 2

# Stand-ins are of plane 16; a real character of that plane gets a stand-in too.
_STAND_INS: Final = 0x100000
_MOST_CLUSTERS: Final = 0xFFFF
# Code points in one cell. No terminal draws longer piles, and they must not grow without bound.
_MOST_IN_CELL: Final = 64
_CLUSTER: Final = re.compile("[\U00100000-\U0010ffff]")

# Characters of one column that text is mostly made of; tests hold this against the table.
NARROW_RANGES: Final = (
    " -~\xa1-\xac\xae-\u02ff\u0370-\u0482\u048a-\u058f\u2010-\u2027\u2030-\u205e\u2070-\u20cf\u2100-\u2319"
    "\u231c-\u2328\u2500-\u25fc\u25ff-\u2613\u2800-\u28ff\ue000-\uf8ff"
)
is_narrow: Final = re.compile(f"[{NARROW_RANGES}]*").fullmatch


@functools.lru_cache(8192)
def width(character: str) -> int:
    """Return how many columns a character takes: 0, 1 or 2. What has no width of its own joins the cell before it."""
    code = ord(character)
    return 0 if _among(widths.ZERO, code) else 2 if _among(widths.WIDE, code) else 1


def _among(ranges: tuple[tuple[int, int], ...], code: int) -> bool:
    at = bisect_right(ranges, (code, 0x110000)) - 1
    return at >= 0 and code <= ranges[at][1]


@functools.lru_cache(8192)
def joins(cluster: str, character: str) -> bool:
    """Whether a character belongs to the grapheme cluster before it (mode 2027); a cluster is not empty."""
    code = ord(character)
    if width(character) == 0 or _among(widths.SPACING, code):
        return True
    if _is_half_flag(character):
        return len(cluster) == 1 and _is_half_flag(cluster)
    if not _among(widths.PICTOGRAPHS, ord(cluster[0])):
        return False
    return 0x1F3FB <= code <= 0x1F3FF or (cluster[-1] == "\u200d" and _among(widths.PICTOGRAPHS, code))


@functools.lru_cache(8192)
def cluster_width(cluster: str) -> int:
    """Return how many columns a grapheme cluster takes: the most of its characters, 2 for flags and with VS16."""
    pictograph = _among(widths.PICTOGRAPHS, ord(cluster[0])) or cluster[0] in "#*0123456789"
    if (pictograph and "\ufe0f" in cluster) or (len(cluster) == 2 and _is_half_flag(cluster[1])):
        return 2
    return max(map(width, cluster))


def _is_half_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


class Row:
    """One row of the screen.

    Attributes:
        text, attrs: see the rules above.
        wrapped: 0, or `WRAPPED` or `PADDED` where the text goes on in the next row.
    """

    __slots__ = ("attrs", "text", "wrapped")

    def __init__(self, text: str, attrs: str, wrapped: int = 0) -> None:
        self.text = text
        self.attrs = attrs
        self.wrapped = wrapped

    def copy(self) -> Row:
        """Return a row that changes on its own."""
        return Row(self.text, self.attrs, self.wrapped)

    def cut(self, x: int) -> None:
        """Blank a wide character whose halves lie on both sides of column `x`'s left edge."""
        text = self.text
        if 0 < x < len(text) and text[x] == SPACER:
            self.text = f"{text[: x - 1]}  {text[x + 1 :]}"

    def put(self, x: int, text: str, mark: str) -> None:
        """Overwrite from column `x`; `text` is as wide as it is long and must fit."""
        end = x + len(text)
        if SPACER in self.text:
            self.cut(x)
            self.cut(end)
        self.text = f"{self.text[:x]}{text}{self.text[end:]}"
        self.attrs = f"{self.attrs[:x]}{mark * len(text)}{self.attrs[end:]}"

    def insert(self, x: int, count: int, end: int, mark: str) -> None:
        """Shift columns `x` to `end` right by `count`, leaving blanks; what passes `end` is lost."""
        count = min(count, end - x)
        if SPACER in self.text:
            for place in (x, end - count, end):
                self.cut(place)
        text, attrs = self.text, self.attrs
        self.text = f"{text[:x]}{' ' * count}{text[x : end - count]}{text[end:]}"
        self.attrs = f"{attrs[:x]}{mark * count}{attrs[x : end - count]}{attrs[end:]}"

    def delete(self, x: int, count: int, end: int, mark: str) -> None:
        """Remove `count` columns from `x`; what follows up to `end` moves left, and blanks come in there."""
        count = min(count, end - x)
        if SPACER in self.text:
            for place in (x, x + count, end):
                self.cut(place)
        text, attrs = self.text, self.attrs
        self.text = f"{text[:x]}{text[x + count : end]}{' ' * count}{text[end:]}"
        self.attrs = f"{attrs[:x]}{attrs[x + count : end]}{mark * count}{attrs[end:]}"


class Clusters:
    """Cells of several code points, and the characters that stand for them in a row's text."""

    def __init__(self) -> None:
        self._all: list[str] = []
        self._of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._all)

    @property
    def full(self) -> bool:
        """Whether no further cluster can get a stand-in."""
        return len(self._all) >= _MOST_CLUSTERS

    def of(self, cluster: str) -> str:
        """Return the stand-in of a cell's code points; U+FFFD when there are too many different ones."""
        stand_in = self._of.get(cluster)
        if stand_in is None:
            if self.full:
                return "\ufffd"
            stand_in = self._of[cluster] = chr(_STAND_INS + len(self._all))
            self._all.append(cluster)
        return stand_in

    def text(self, text: str) -> str:
        """Return a row's text as the characters that were printed; spacers stay."""
        if not self._all or text.isascii():
            return text
        return _CLUSTER.sub(lambda found: self._all[ord(found.group()) - _STAND_INS], text)

    def joined(self, character: str, mark: str) -> str:
        """Return the stand-in for a cell's character with one more of zero width."""
        cluster = self.text(character)
        return self.of(cluster + mark) if len(cluster) < _MOST_IN_CELL else character


def is_stand_in(character: str) -> bool:
    """Whether a character of the input must not be stored as it is."""
    return character >= "\U00100000"
