"""Accents: what a program draws so that it stands out, in words: focused, selected, highlighted.

Rules of this file: a pure function of one frame. It knows cells, not programs. A person sees the bar in a menu, the
active button or the found words by their colours; a reader of the text alone does not. A colour behind the text stands
out where it is no ground: the colour of a large part of the screen, or of a box of several rows. Then

* `focused` is where the cursor stands, be it shown or not;
* `selected` is the only text that is drawn like this, in neither the first nor the last row, where bars stand;
* `highlighted` is all else: bars, found words, names of keys, buttons that are not chosen.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Final, NamedTuple

from blockpty.screen.pens import REVERSE, RGB, Pen
from blockpty.screen.protocol import Frame, Line

# Of all cells: what more of them have behind them is a ground. Bars of some rows and marked words have less.
_GROUND: Final = 1 / 6
# A colour in so many rows above each other is a box, such as a dialogue.
_BOX_ROWS: Final = 3
_LONGEST: Final = 120
_NAMES: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_DEFAULT: Final = "default"
# What lies behind text of the terminal's own colours when they are exchanged.
_REVERSED: Final = -1

Colors = tuple[int | None, int | None]


class Accent(NamedTuple):
    """Neighbouring cells of one row that stand out.

    Attributes:
        kind: `focused`, `selected` or `highlighted`.
        row, column: where it begins, from 0; width: its columns.
        text: the characters, without the blanks around them.
        drawn: its colours in words.
    """

    kind: str
    row: int
    column: int
    width: int
    text: str
    drawn: str

    @property
    def sentence(self) -> str:
        """The same on one line."""
        shown = self.text if len(self.text) <= _LONGEST else f"{self.text[: _LONGEST - 3]}..."
        columns = f"columns {self.column}-{self.column + self.width - 1}"
        return f"{self.kind}: row {self.row}, {columns}, {json.dumps(shown, ensure_ascii=False)} ({self.drawn})"


class _Stretch(NamedTuple):
    row: int
    column: int
    width: int
    text: str
    colors: Colors


def accents(frame: Frame) -> list[Accent]:
    """Return what stands out, from top to bottom."""
    rows = [_stretches(y, line) for y, line in enumerate(frame.lines)]
    cells: Counter[int | None] = Counter()
    for row in rows:
        for one in row:
            cells[one.colors[1]] += one.width
    most = cells.most_common(1)[0][0]
    grounds = {most} | {behind for behind, count in cells.items() if count > _GROUND * frame.cols * frame.rows}
    behind = [[one.colors[1] for one in row for _ in range(one.width)] for row in rows]
    found = []
    for row in rows:
        for number, one in enumerate(row):
            if not one.text.strip():
                continue
            neighbours = [other.colors[1] for other in row[max(0, number - 1) : number + 2] if other is not one]
            # One cell is the cursor itself, as some programs draw it.
            field = one.width > 1 and neighbours != [] and one.colors[1] not in neighbours
            if (field and _has_cursor(frame, one)) or (one.colors[1] not in grounds and not _in_box(behind, one)):
                found.append(one)
    alike = Counter(one.colors for one in found if 0 < one.row < frame.rows - 1)
    focused_rows = {one.row for one in found if _has_cursor(frame, one)}
    return [_accent(frame, one, alike, focused_rows) for one in found]


def _accent(frame: Frame, one: _Stretch, alike: Counter[Colors], focused_rows: set[int]) -> Accent:
    if _has_cursor(frame, one):
        kind = "focused"
    elif 0 < one.row < frame.rows - 1 and alike[one.colors] == 1 and one.row not in focused_rows:
        kind = "selected"
    else:
        kind = "highlighted"
    text = one.text.rstrip()
    return Accent(kind, one.row, one.column, one.width, text.lstrip(), _words(one.colors))


def _has_cursor(frame: Frame, one: _Stretch) -> bool:
    return one.row == frame.cursor.y and one.column <= frame.cursor.x < one.column + one.width


def _in_box(behind: list[list[int | None]], one: _Stretch) -> bool:
    """Whether the same colour goes on above and below, at both ends of it."""
    if one.colors[1] == _REVERSED:
        return False
    return all(_height(behind, one.row, x) >= _BOX_ROWS for x in (one.column, one.column + one.width - 1))


def _height(behind: list[list[int | None]], row: int, x: int) -> int:
    top = bottom = row
    while top > 0 and behind[top - 1][x] == behind[row][x]:
        top -= 1
    while bottom < len(behind) - 1 and behind[bottom + 1][x] == behind[row][x]:
        bottom += 1
    return bottom - top + 1


def _stretches(row: int, line: Line) -> list[_Stretch]:
    """Return the runs of a row with what is drawn in the same colours joined."""
    found: list[_Stretch] = []
    column = 0
    for run in line.runs:
        colors = _colors(run.pen)
        if found and found[-1].colors == colors:
            last = found[-1]
            found[-1] = last._replace(width=last.width + run.width, text=last.text + run.text)
        else:
            found.append(_Stretch(row, column, run.width, run.text, colors))
        column += run.width
    return found


def _colors(pen: Pen) -> Colors:
    if not pen.flags & REVERSE:
        return pen.fg, pen.bg
    return (_REVERSED if pen.bg is None else pen.bg), (_REVERSED if pen.fg is None else pen.fg)


def _words(colors: Colors) -> str:
    if colors == (_REVERSED, _REVERSED):
        return "reverse video"
    return f"{_color(colors[0])} on {_color(colors[1])}"


def _color(color: int | None) -> str:
    if color is None or color == _REVERSED:
        return _DEFAULT
    if color >= RGB:
        return f"#{color - RGB:06x}"
    if color < 16:
        return f"{'bright ' if color > 7 else ''}{_NAMES[color % 8]}"
    return f"color {color}"
