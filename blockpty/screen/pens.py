"""Pens: how a cell is drawn, and what SGR makes of them.

Rules of this file: a colour is None (the terminal's own), 0 to 255 (a palette index, kept as such) or `RGB` plus
24 bits. A pen is a value; a `Brush` is a pen as one emulator uses it: the one character that stands for it in the
attribute string of a row, and what each SGR sequence made of it before. Nothing here raises on any parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

RGB: Final = 0x1000000

BOLD: Final = 1
FAINT: Final = 2
ITALIC: Final = 4
BLINK: Final = 8
REVERSE: Final = 16
CONCEAL: Final = 32
STRIKE: Final = 64
OVERLINE: Final = 128
# DECSCA: selective erasing leaves the cell alone. Not visible.
PROTECTED: Final = 256

FLAG_NAMES: Final = {
    BOLD: "bold",
    FAINT: "faint",
    ITALIC: "italic",
    BLINK: "blink",
    REVERSE: "reverse",
    CONCEAL: "conceal",
    STRIKE: "strike",
    OVERLINE: "overline",
}
UNDERLINES: Final = ("none", "single", "double", "curly", "dotted", "dashed")

_SET: Final = {1: BOLD, 2: FAINT, 3: ITALIC, 5: BLINK, 6: BLINK, 7: REVERSE, 8: CONCEAL, 9: STRIKE, 53: OVERLINE}
_CLEAR: Final = {
    22: BOLD | FAINT,
    23: ITALIC,
    25: BLINK,
    27: REVERSE,
    28: CONCEAL,
    29: STRIKE,
    55: OVERLINE,
}
_UNDERLINE: Final = 3
# What sets one value: which (foreground, background, colour of the underline, underline), and to what.
_VALUES: Final[dict[int, tuple[int, int | None]]] = {
    **{code: (0, code - 30) for code in range(30, 38)},
    **{code: (1, code - 40) for code in range(40, 48)},
    **{code: (0, code - 82) for code in range(90, 98)},
    **{code: (1, code - 92) for code in range(100, 108)},
    39: (0, None),
    49: (1, None),
    59: (2, None),
    4: (3, 1),
    24: (3, 0),
}
_COLORS: Final = {38: 0, 48: 1, 58: 2}
_SGR: Final = re.compile(r"\x1b\[([0-9;:]*)m")
# How many sequences one brush remembers, and how many parameters of one are looked at.
_REMEMBERED: Final = 512
_PARAMETERS: Final = 64


class Link(NamedTuple):
    """A hyperlink of OSC 8; cells with the same identifier belong together."""

    uri: str
    id: str = ""


class Pen(NamedTuple):
    """Attributes of a cell.

    Attributes:
        fg, bg: colours.
        flags: sum of the constants of this file.
        underline: index into `UNDERLINES`.
        underline_color: its colour; None for that of the text.
        link: the hyperlink, or None.
    """

    fg: int | None = None
    bg: int | None = None
    flags: int = 0
    underline: int = 0
    underline_color: int | None = None
    link: Link | None = None


DEFAULT: Final = Pen()


def styled(pen: Pen, parameters: str) -> Pen:
    """Return the pen after SGR with these parameters (the part between `CSI` and `m`)."""
    values: list[int | None] = [pen.fg, pen.bg, pen.underline_color, pen.underline]
    flags = pen.flags
    groups = iter(parameters.split(";", _PARAMETERS)[:_PARAMETERS])
    for group in groups:
        code, *rest = group.split(":", 16)
        number = _number(code)
        if number in _COLORS:
            found = _colon_color(rest) if rest else _semicolon_color(groups)
            if found is not None:
                values[_COLORS[number]] = found
        elif rest:
            if number == 4:
                values[_UNDERLINE] = min(_number(rest[0]), 5)
        elif number in _SET:
            flags |= _SET[number]
        elif number in _CLEAR:
            flags &= ~_CLEAR[number]
        elif number == 21:
            # Double underline to ECMA-48 and xterm, bold off to the Linux console and those who learned from it: so it
            # does not take away a style that was asked for by name.
            values[_UNDERLINE] = max(values[_UNDERLINE] or 0, 2)
        elif number in _VALUES:
            place, value = _VALUES[number]
            values[place] = value
        elif number == 0:
            values, flags = [None, None, None, 0], flags & PROTECTED
    return Pen(values[0], values[1], flags, values[_UNDERLINE] or 0, values[2], pen.link)


def _number(text: str) -> int:
    """Return a parameter; what is absent is 0, and what is too long to mean anything a number without meaning."""
    text = text.lstrip("0")
    return 0 if not text else int(text) if len(text) <= 5 else 65535


def _rgb(red: str, green: str, blue: str) -> int:
    return RGB | min(_number(red), 255) << 16 | min(_number(green), 255) << 8 | min(_number(blue), 255)


def _colon_color(rest: list[str]) -> int | None:
    """Return the colour of `5:n`, `2:r:g:b` or `2:colour space:r:g:b`."""
    kind, *values = rest
    if _number(kind) == 5 and values:
        return _number(values[0]) if _number(values[0]) < 256 else None
    if _number(kind) == 2 and len(values) >= 3:
        red, green, blue = values[1:4] if len(values) >= 4 else values
        return _rgb(red, green, blue)
    return None


def _semicolon_color(groups: Iterator[str]) -> int | None:
    """Return the colour of `5;n` or `2;r;g;b`, taking its parameters away."""
    kind = next(groups, "")
    if _number(kind) == 5:
        number = _number(next(groups, "256").partition(":")[0])
        return number if number < 256 else None
    if _number(kind) == 2:
        values = [next(groups, "").partition(":")[0] for _ in range(3)]
        return _rgb(values[0], values[1], values[2])
    return None


class Brush:
    """A pen in use.

    Attributes:
        mark: the character that stands for it in attribute strings.
        blank: the mark of an erased cell, which keeps the background and nothing else.
        after: brush by SGR sequence.
    """

    __slots__ = ("after", "blank", "mark", "pen")

    def __init__(self, mark: str, pen: Pen, blank: str | None) -> None:
        self.mark = mark
        self.pen = pen
        self.blank = mark if blank is None else blank
        self.after: dict[str, Brush] = {}


class Brushes:
    """The brushes of one emulator; the first is the default one, with mark U+0000."""

    def __init__(self, pens: Iterable[Pen] = ()) -> None:
        self._of: dict[Pen, Brush] = {}
        self._all: list[Brush] = []
        self.default = self.of(DEFAULT)
        for pen in pens:
            self.of(pen)

    def __len__(self) -> int:
        return len(self._all)

    def of(self, pen: Pen) -> Brush:
        """Return the brush of a pen."""
        brush = self._of.get(pen)
        if brush is None:
            blank = None if pen == Pen(bg=pen.bg) else self.of(Pen(bg=pen.bg)).mark
            brush = self._of[pen] = Brush(chr(len(self._all)), pen, blank)
            self._all.append(brush)
        return brush

    def pen(self, mark: str) -> Pen:
        """Return the pen that a mark stands for."""
        return self._all[ord(mark)].pen

    def apply(self, brush: Brush, sequence: str) -> Brush:
        """Return the brush after a sequence that ends with `m`; private ones (`CSI > 4 ; 2 m`) change nothing."""
        found = _SGR.fullmatch(sequence)
        after = self.of(styled(brush.pen, found.group(1))) if found else brush
        if len(brush.after) >= _REMEMBERED:
            brush.after.clear()
        brush.after[sequence] = after
        return after
