"""The state of a terminal: the grid of cells, cursor, margins and modes, and how text and line feeds change them.

Rules of this file: it draws and scrolls. The parts that obey sequences, wrap lines anew, take pictures and write
checkpoints are functions of this state, and none of them knows the emulator, which feeds it. The design is pyte's (a
stream that cuts, a screen that listens), with rows as strings because that is what makes it fast
(docs/decisions/screen.md).

Conventions: `x` and `y` count from 0; `left`, `right`, `top`, `bottom` are the margins, inclusive. After a character in
the last column the cursor stays there with `pending` set, and the next character wraps first, as in xterm.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from blockpty.screen import modes
from blockpty.screen.cells import (
    PADDED,
    SPACER,
    WRAPPED,
    Clusters,
    Row,
    cluster_width,
    is_narrow,
    is_stand_in,
    joins,
    width,
)  # fmt: skip
from blockpty.screen.pens import Brush, Brushes, Pen
from blockpty.screen.protocol import Cursor, Line

# Rows that scrolled off the main screen and are kept, for a window that grows. Scrollback proper is rendered from the
# stream (scrollback.py).
HISTORY_ROWS: Final = 100
MOST_CELLS: Final = 1_000_000
# How many kinds of sequences that are not obeyed have a count of their own.
MOST_KINDS: Final = 32
OTHER_KINDS: Final = "others"
_FEW_BRUSHES: Final = 4096
_FEW_CLUSTERS: Final = 32768
_BRITISH: Final = {ord("#"): "\xa3"}


def character_set(designator: str) -> dict[int, str] | None:
    """Return what the characters of a set are; None for ASCII. Of the national sets only the British one is met."""
    if designator == "0":
        return _line_drawing()
    return _BRITISH if designator == "A" else None


@functools.cache
def _line_drawing() -> dict[int, str]:
    # Few programs use it, and pyte takes a while to import.
    from pyte.charsets import VT100_MAP

    # pyte has what the Linux console shows for `h`; a VT100 and xterm show NL.
    return {code: VT100_MAP[code] for code in range(0x60, 0x7F)} | {ord("_"): " ", ord("h"): "\u2424"}


class SavedCursor(NamedTuple):
    """The slot of DECSC; each of the two screens has one."""

    x: int = 0
    y: int = 0
    pending: bool = False
    pen: Pen = Pen()
    origin: bool = False
    charsets: tuple[str, ...] = ("B", "B", "B", "B")
    shift: int = 0


class HeldFrame(NamedTuple):
    """The picture that was shown when a synchronized update began."""

    lines: list[Row]
    cursor: Cursor
    pen: Pen
    alt: bool


class ScreenState:
    """A terminal of `cols` by `rows`, between two sequences.

    Raises:
        ValueError: the size is not one of a screen.
    """

    def __init__(self, cols: int, rows: int, history_rows: int) -> None:
        self.cols, self.rows = checked_size(cols, rows)
        self.history: deque[Row] = deque(maxlen=history_rows)
        self.title = ""
        self.icon_title = ""
        self.titles: list[str] = []
        self.cwd = ""
        self.zone = ""
        # Since the record began: how often the bell rang, and what was not obeyed, by its kind.
        self.bells = 0
        self.unhandled: dict[str, int] = {}
        # Called with each row that leaves the top of the main screen for good.
        self.scrolled_off: Callable[[Row], None] | None = None
        self.reset()

    def reset(self) -> None:
        """Do what RIS does; the title stays."""
        self.brushes = Brushes()
        self.clusters = Clusters()
        self._blanks: dict[str, str] = {}
        self._blank = " " * self.cols
        self._most_brushes = _FEW_BRUSHES
        self._most_clusters = _FEW_CLUSTERS
        # The lines of the last frame, by what they were made of: most rows do not change between two.
        self.shown: dict[tuple[str, str, int], Line] = {}
        self.brush: Brush = self.brushes.default
        self.history.clear()
        self.lines = [self.blank_row() for _ in range(self.rows)]
        self.other_lines = [self.blank_row() for _ in range(self.rows)]
        self.alt = False
        self.x = self.y = 0
        self.pending = False
        # The text that was drawn just before, of which REP repeats the end; empty after anything else.
        self.last = ""
        # Whether SPA was used last, and not DECSCA: then ED, EL and ECH leave protected cells alone.
        self.guarded = False
        self.saved = [SavedCursor(), SavedCursor()]
        self.keyboard: list[list[int]] = [[0], [0]]
        self.modify_other_keys = 0
        self.cursor_style = 0
        self.tabs = list(range(8, self.cols, 8))
        self.modes = dict(modes.INITIAL)
        self.saved_modes: dict[int, bool] = {}
        self.charsets = ["B", "B", "B", "B"]
        self.shift = 0
        self.single_shift = 0
        self.held_frame: HeldFrame | None = None
        self.full_margins()
        self.settle()

    def pass_over(self, kind: str) -> None:
        """Count a sequence that is not obeyed; of kinds that there are too many of only that they were."""
        if kind not in self.unhandled and len(self.unhandled) >= MOST_KINDS:
            kind = OTHER_KINDS
        self.unhandled[kind] = self.unhandled.get(kind, 0) + 1

    def full_margins(self) -> None:
        """Make the whole screen the scrolling region."""
        self.top, self.bottom = 0, self.rows - 1
        self.left, self.right = 0, self.cols - 1

    def settle(self) -> None:
        """Take over what modes, margins and character sets mean for the fast path."""
        mode = self.modes
        if len(self._blank) != self.cols:
            self._blank = " " * self.cols
            self._blanks.clear()
        self.insert = mode[modes.IRM]
        self.newline = mode[modes.LNM]
        self.origin = mode[modes.DECOM]
        self.autowrap = mode[modes.DECAWM]
        self.narrowed = self.left > 0 or self.right < self.cols - 1
        self.mapping = character_set(self.charsets[self.shift])
        self.clustered = mode[modes.CLUSTERS]
        self.plain = not (self.insert or self.narrowed or self.single_shift or self.mapping or self.clustered)

    # --- drawing ------------------------------------------------------------------------------------------------------

    def draw(self, text: str) -> None:
        """Print text at the cursor, whatever the modes."""
        if self.single_shift:
            mapping = character_set(self.charsets[self.single_shift])
            self.single_shift = 0
            self.settle()
            if mapping:
                self._draw_mapped(text[0].translate(mapping))
                text = text[1:]
        if self.mapping:
            text = text.translate(self.mapping)
        if text:
            self._draw_mapped(text)

    def _draw_mapped(self, text: str) -> None:
        if text.isascii() or (is_narrow(text) and not self.clustered):
            self.last = text
            self._put(text, 1)
            return
        if self.clustered:
            self._draw_clusters(text)
            return
        run: list[str] = []
        unit = 1
        for character in text:
            columns = width(character)
            if columns == 0 or columns != unit:
                self._put("".join(run), unit)
                run.clear()
            if columns == 0:
                self._join(character)
                continue
            unit = columns if self.cols > 1 else 1
            stored = self.clusters.of(character) if is_stand_in(character) else character
            run.append(stored if unit == 1 else stored + SPACER)
            self.last = character
        self._put("".join(run), unit)

    def _draw_clusters(self, text: str) -> None:
        """Print text with one cell for each grapheme cluster (mode 2027)."""
        for character in text:
            if self.last and self.pending | self.x and self._extend(character):
                continue
            columns = min(width(character), self.cols)
            if columns == 0:
                self._join(character)
                continue
            stored = self.clusters.of(character) if is_stand_in(character) else character
            self._put(stored if columns == 1 else stored + SPACER, columns)
            self.last = character

    def _extend(self, character: str) -> bool:
        """Add a character to the cluster that was just drawn, if it belongs to it; a cell may become a wide one."""
        row, x = self.lines[self.y], self._cell_before()
        cluster = self.clusters.text(row.text[x])
        if not joins(cluster, character):
            return False
        self._join(character)
        if self.pending or cluster_width(cluster + character) == 1 or row.text[x + 1 : x + 2] == SPACER:
            return True
        limit = self.right + 1 if self.narrowed and x <= self.right else self.cols
        if x + 1 < limit:
            if self.insert:
                row.insert(x + 1, 1, limit, self.brush.mark)
            row.put(x, row.text[x] + SPACER, row.attrs[x])
            self.x = min(x + 2, limit - 1)
            self.pending = x + 2 >= limit
        return True

    def _put(self, text: str, unit: int) -> None:
        """Write cells of `unit` columns each, wrapping."""
        at, total = 0, len(text)
        while at < total:
            if self.pending:
                self.pending = False
                if self.autowrap:
                    self._wrap(WRAPPED)
            x = self.x
            limit = self.right + 1 if self.narrowed and x <= self.right else self.cols
            room = limit - x
            if room < unit:
                # A wide character in the last column.
                if self.autowrap and limit - self.left >= unit:
                    self.lines[self.y].put(x, " " * room, self.brush.mark)
                    self._wrap(PADDED)
                    continue
                # Without wrapping there is no place for it; xterm.js and alacritty drop it too.
                return
            room -= room % unit
            piece = text[at : at + room]
            at += room
            if at < total and not self.autowrap:
                # What does not fit lands on the last column, each on top of the one before; wide ones do not fit there.
                piece, at = (piece[:-1] + text[-1] if unit == 1 else piece), total
            row = self.lines[self.y]
            if self.insert:
                row.insert(x, len(piece), limit, self.brush.mark)
            if len(piece) == self.cols:
                row.text, row.attrs = piece, self.blank_attrs(self.brush.mark)
            else:
                row.put(x, piece, self.brush.mark)
            self.x = x + len(piece)
            if self.x >= limit:
                self.x = limit - 1
                self.pending = True

    def _wrap(self, how: int) -> None:
        row = self.lines[self.y]
        self.x = self.left if self.x >= self.left else 0
        if self.narrowed:
            self.index()
            return
        # Before the row moves: it may leave the screen at once.
        before, row.wrapped = row.wrapped, how
        self.index()
        if self.lines[self.y] is row:
            row.wrapped = before

    def _join(self, mark: str) -> None:
        """Add a character without width to the cell before the cursor."""
        row, x = self.lines[self.y], self._cell_before()
        row.text = f"{row.text[:x]}{self.clusters.joined(row.text[x], mark)}{row.text[x + 1 :]}"

    def _cell_before(self) -> int:
        x = self.x if self.pending else max(0, self.x - 1)
        return x - (self.lines[self.y].text[x] == SPACER)

    # --- scrolling ----------------------------------------------------------------------------------------------------

    def blank_row(self) -> Row:
        """Return a row erased with the current background."""
        mark = self.brush.blank
        return Row(self._blank, self.blank_attrs(mark))

    def blank_attrs(self, mark: str) -> str:
        """Return the attributes of a row of one mark; equal ones are one string."""
        attrs = self._blanks.get(mark)
        if attrs is None:
            attrs = self._blanks[mark] = mark * self.cols
        return attrs

    def index(self) -> None:
        """Move down a row, and scroll at the bottom margin."""
        self.pending = False
        if self.y != self.bottom:
            if self.y < self.rows - 1:
                self.y += 1
        elif not self.narrowed or self.left <= self.x <= self.right:
            self.scroll_up(self.top, 1)

    def reverse_index(self) -> None:
        """Move up a row, and scroll at the top margin."""
        self.pending = False
        if self.y != self.top:
            if self.y > 0:
                self.y -= 1
        elif not self.narrowed or self.left <= self.x <= self.right:
            self.scroll_down(self.top, 1)

    def scroll_up(self, top: int, count: int, *, keep: bool = True) -> None:
        """Move the rows from `top` to the bottom margin up; with `keep`, rows of the main screen go to the history."""
        count = min(count, self.bottom - top + 1)
        if self.narrowed:
            self._move_box(top, count)
            return
        lines = self.lines
        if top == 0 and keep and not self.alt:
            self._remember(lines[:count])
        elif top > 0:
            lines[top - 1].wrapped = 0
        del lines[top : top + count]
        lines[self.bottom + 1 - count : self.bottom + 1 - count] = [self.blank_row() for _ in range(count)]

    def scroll_down(self, top: int, count: int) -> None:
        """Move the rows from `top` to the bottom margin down."""
        count = min(count, self.bottom - top + 1)
        if self.narrowed:
            self._move_box(top, -count)
            return
        lines = self.lines
        if top > 0:
            lines[top - 1].wrapped = 0
        del lines[self.bottom + 1 - count : self.bottom + 1]
        lines[top:top] = [self.blank_row() for _ in range(count)]
        lines[self.bottom].wrapped = 0

    def _remember(self, rows: list[Row]) -> None:
        self.history.extend(rows)
        if self.scrolled_off is not None:
            for row in rows:
                self.scrolled_off(row)

    def _move_box(self, top: int, up: int) -> None:
        """Scroll inside left and right margins, where rows cannot move whole."""
        left, end = self.left, self.right + 1
        box = self.lines[top : self.bottom + 1]
        for row in box:
            row.cut(left)
            row.cut(end)
            row.wrapped = 0
        old = [(row.text[left:end], row.attrs[left:end]) for row in box]
        blank = (" " * (end - left), self.brush.blank * (end - left))
        for number, row in enumerate(box):
            text, attrs = old[number + up] if 0 <= number + up < len(box) else blank
            row.text = row.text[:left] + text + row.text[end:]
            row.attrs = row.attrs[:left] + attrs + row.attrs[end:]

    # --- keeping the tables small -------------------------------------------------------------------------------------

    def all_rows(self) -> list[Row]:
        """Return every row there is."""
        held = self.held_frame.lines if self.held_frame else []
        return [*self.lines, *self.other_lines, *self.history, *held]

    def compact(self) -> None:
        """Forget brushes and clusters that no cell has any more."""
        rows = self.all_rows()
        # In the order of appearance, so that the tables do not depend on what was there before.
        pens = {mark: self.brushes.pen(mark) for mark in dict.fromkeys("".join([row.attrs for row in rows]))}
        marks = dict.fromkeys("".join([row.text for row in rows if not row.text.isascii()]))
        used = {mark: self.clusters.text(mark) for mark in marks if is_stand_in(mark)}
        current = self.brush.pen
        self.brushes = Brushes()
        self.clusters = Clusters()
        self._blanks.clear()
        self.shown = {}
        attrs = {ord(mark): self.brushes.of(pen).mark for mark, pen in pens.items()}
        text = {ord(mark): self.clusters.of(cluster) for mark, cluster in used.items()}
        for row in rows:
            row.attrs = row.attrs.translate(attrs)
            if text:
                row.text = row.text.translate(text)
        self.brush = self.brushes.of(current)
        self._most_brushes = max(_FEW_BRUSHES, 2 * len(self.brushes))
        self._most_clusters = max(_FEW_CLUSTERS, min(2 * len(self.clusters), 65000))


def checked_size(cols: int, rows: int) -> tuple[int, int]:
    """Return the size of a screen.

    Raises:
        ValueError: it has no cells, or too many.
    """
    if cols < 1 or rows < 1 or cols * rows > MOST_CELLS:
        raise ValueError(f"a screen of {cols}x{rows}: both at least 1, and at most {MOST_CELLS} cells")
    return cols, rows
