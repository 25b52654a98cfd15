"""What a person would see of some output in the end: progress bars collapsed, overwriting and cursor moves applied.

Rules of this file: the output is drawn on a screen of the terminal's size, and a row is text once it has left the top,
since nothing can change it any more. So memory is bounded by the screen, and the text comes in order. Soft-wrapped rows
are one line; blanks at a line's end are gone; what was on the alternate screen is not part of it. Long runs of plain
lines take a way around the drawing that gives the same text (tests compare both).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from blockpty.screen import fastforward, frames
from blockpty.screen.cells import NARROW_RANGES, PADDED, SPACER, Row
from blockpty.screen.emulator import Emulator
from blockpty.screen.pens import Brush, Pen
from blockpty.screen.protocol import Line

_SLICE: Final = 128 * 1024
_LEAST_RUN: Final = 8 * 1024
_SHOWS_NOTHING: Final = re.compile(rb"\x1b\[[0-9;:]{0,255}m|\x07")
_ERASE: Final = re.compile(rb"\x1b\[0?K")
_DRAWS_NOTHING: Final = re.compile(r"(\x1b\[[0-9;:]{0,255}[mK])")
# A text with none of these is the same in every style.
_MARKUP: Final = re.compile("[&<>\"']")
_TO_THE_END: Final = ("\x1b[K", "\x1b[0K")
# Of a hostile program each character has another colour.
_REMEMBERED: Final = 4096
_PLAIN: Final = re.compile(f"[{NARROW_RANGES}\n]*")


class Rendered:
    """Output on its way to what is seen in the end. Any bytes, in any pieces."""

    def __init__(self, cols: int = 80, rows: int = 24, least_run: int = _LEAST_RUN) -> None:
        self._emulator = Emulator(cols, rows, history_rows=0)
        self._emulator.scrolled_off = self._scrolled_off
        self._left: list[str] = []
        self._blanks = 0
        # Rows at the top of the screen that only stand for what has been written.
        self._written = 0
        self._least_run = least_run

    def feed(self, data: bytes) -> str:
        """Take the next bytes; return the text that is final now."""
        for at in range(0, len(data), _SLICE):
            self._feed(data[at : at + _SLICE])
        text = "".join(self._left)
        self._left.clear()
        return text

    def resize(self, cols: int, rows: int) -> str:
        """Change the size of the screen; return the text that is final now."""
        for row in _resized(self._emulator, cols, rows):
            self._leave(row)
        text = "".join(self._left)
        self._left.clear()
        return text

    def finish(self) -> str:
        """Return what is still on the screen, because nothing follows."""
        rows = _remaining(self._emulator)
        for row in rows:
            self._leave(row)
        text = "".join(self._left)
        self._left.clear()
        return text if rows[-1].wrapped else text[:-1]

    def _scrolled_off(self, row: Row) -> None:
        if self._written:
            self._written -= 1
        else:
            self._leave(row)

    def _leave(self, row: Row) -> None:
        text = self._emulator.clusters.text(row.text[:-1] if row.wrapped == PADDED else row.text).replace(SPACER, "")
        shown = text.rstrip(" ")
        if shown and self._blanks:
            self._left.append(" " * self._blanks)
        self._left.append(shown)
        if row.wrapped:
            # Blanks where a line wraps belong to it only if something follows them.
            self._blanks = len(text) - len(shown) + (0 if shown else self._blanks)
        else:
            self._left.append("\n")
            self._blanks = 0

    def _feed(self, data: bytes) -> None:
        emulator = self._emulator
        at = 0
        for begin, end in fastforward.pure_runs(data, self._least_run):
            first = data.find(b"\n", begin, end) + 1
            cut = fastforward.cut(data, first, end, 2 * emulator.rows) if first else None
            if cut is None:
                continue
            emulator.feed(data[at:first])
            at = first
            seen = None
            # With so many line feeds the cursor is on the last row, wherever it was.
            if self._on_fresh_line() and data.count(b"\n", first, cut) >= emulator.rows:
                seen = self._seen(data[first:cut])
            if seen is not None:
                for row in emulator.lines[: emulator.y]:
                    self._leave(row)
                if self._blanks and not seen.startswith("\n"):
                    self._left.append(" " * self._blanks)
                self._left.append(seen)
                self._blanks = 0
                fastforward.carry(emulator, data, first, cut)
                # What stands above it has been written; all of it leaves before the run ends.
                emulator.lines[:] = [emulator.blank_row() for _ in range(emulator.rows)]
                emulator.y = self._written = emulator.rows - 1
                at = cut
        emulator.feed(data[at:] if at else data)

    def _seen(self, data: bytes) -> str | None:
        """Return whole lines from a fresh line on as they will be seen; None where they must be drawn for that."""
        return _plain(data)

    def _on_fresh_line(self) -> bool:
        """Whether lines that come now only push up what is there."""
        s = self._emulator
        ready = fastforward.ready(s) and s.plain and s.autowrap and not s.alt and s.x == 0 and not s.pending
        return ready and not any(row.text.strip(" ") for row in s.lines[s.y :])


class Style(NamedTuple):
    """How rows are written.

    Attributes:
        row: a row as it is drawn, with its line end unless it goes on in the next one.
        text: a text that is drawn with nothing.
        around: what stands before and behind a text that is drawn with a pen; both empty for the default one.
    """

    row: Callable[[Line], str]
    text: Callable[[str], str]
    around: Callable[[Pen], tuple[str, str]]


class Drawing(Rendered):
    """Output as `Rendered` takes it, but each row as a style writes what is drawn.

    Lines with nothing but text and colours need no screen for that, as long as no background is among these: it would
    be that of the cells beside the text, too.
    """

    def __init__(self, cols: int, rows: int, style: Style, least_run: int = _LEAST_RUN) -> None:
        super().__init__(cols, rows, least_run)
        self._style = style
        self._around: dict[Brush, tuple[str, str]] = {}

    def finish(self) -> str:
        """Return what is still on the screen, because nothing follows."""
        for row in _remaining(self._emulator):
            self._leave(row)
        text = "".join(self._left)
        self._left.clear()
        return text

    def _leave(self, row: Row) -> None:
        self._left.append(self._style.row(frames.line(self._emulator, row)))

    def _on_fresh_line(self) -> bool:
        s = self._emulator
        blank = s.blank_attrs(s.brushes.default.mark)
        return super()._on_fresh_line() and all(row.attrs == blank for row in s.lines[s.y :])

    def _seen(self, data: bytes) -> str | None:
        s = self._emulator
        if s.brush.pen.bg is not None or s.brush.pen.link is not None:
            return None
        lines = _lines(data)
        if lines is None:
            return None
        out: list[str] = []
        brush = s.brush
        for line in lines:
            if "\x1b" not in line and brush is s.brushes.default:
                # What wraps goes on; only behind the last row's text are there blanks that nobody drew.
                last = max(0, len(line) - 1) // s.cols * s.cols
                out += [self._style.text(line[:last]), self._style.text(line[last:].rstrip(" ")), "\n"]
                continue
            after = self._line(line, brush, out)
            if after is None:
                return None
            brush = after
        return "".join(out)

    def _line(self, line: str, brush: Brush, out: list[str]) -> Brush | None:
        """Write a line that begins with a brush; return the one that it ends with, None for one with a background."""
        s = self._emulator
        cols = s.cols
        write = self._style.text if _MARKUP.search(line) is not None else str
        runs: list[tuple[Brush, str]] = []
        drawn, x = "", 0
        pieces = iter([*_DRAWS_NOTHING.split(line), ""])
        for text, sequence in zip(pieces, pieces, strict=True):
            if text:
                while x + len(text) > cols:
                    self._row([*runs, (brush, drawn + text[: cols - x])], write, out)
                    runs, drawn, text, x = [], "", text[cols - x :], 0
                drawn += text
                x += len(text)
            if not sequence:
                continue
            if sequence[-1] == "K":
                # Behind the text there is nothing to erase.
                if sequence not in _TO_THE_END:
                    return None
                continue
            after = brush.after.get(sequence) or s.brushes.apply(brush, sequence)
            if after is not brush:
                if after.pen.bg is not None:
                    return None
                if drawn:
                    runs.append((brush, drawn))
                    drawn = ""
                brush = after
                if runs and runs[-1][0] is brush:
                    drawn = runs.pop()[1]  # drawn alike, so it is one text
        if drawn:
            runs.append((brush, drawn))
        if runs and runs[-1][0] is s.brushes.default:
            # Behind the last row's text are blanks that nobody drew.
            runs.append((runs[-1][0], runs.pop()[1].rstrip(" ")))
        self._row(runs, write, out)
        out.append("\n")
        return brush

    def _row(self, runs: list[tuple[Brush, str]], write: Callable[[str], str], out: list[str]) -> None:
        """Write what is in one row."""
        for brush, text in runs:
            around = self._around.get(brush)
            if around is None:
                if len(self._around) >= _REMEMBERED:
                    self._around.clear()
                around = self._around[brush] = self._style.around(brush.pen)
            if text:
                out += (around[0], write(text), around[1])


def _resized(emulator: Emulator, cols: int, rows: int) -> list[Row]:
    """Change the size, and return the rows that leave the top by that."""
    kept, emulator.history = emulator.history, deque()
    emulator.resize(cols, rows)
    left, emulator.history = list(emulator.history), kept
    return left


def _remaining(emulator: Emulator) -> list[Row]:
    """Return the rows of the main screen that hold something, at least down to the cursor."""
    rows, y = (emulator.other_lines, emulator.saved[0].y) if emulator.alt else (emulator.lines, emulator.y)
    last = max([number for number, row in enumerate(rows) if row.text.strip(" ")] + [min(y, len(rows) - 1)])
    return rows[: last + 1]


def _lines(data: bytes) -> list[str] | None:
    """Return whole lines of narrow characters, colours and erased ends of lines; None where there is more."""
    if data.count(b"\n") != data.count(b"\r\n"):
        return None
    text = data.replace(b"\x07", b"").replace(b"\r\n", b"\n").decode("utf-8", "replace")
    if _PLAIN.fullmatch(_DRAWS_NOTHING.sub("", text)) is None:
        return None
    return text.split("\n")[:-1]


def _plain(data: bytes) -> str | None:
    """Return lines as they will be seen, where that takes no screen; None where it does."""
    if data.count(b"\n") != data.count(b"\r\n"):
        return None
    if b"K" in data and _ERASE.search(data) is not None:
        data = _ERASE.sub(b"", data)
    text = _SHOWS_NOTHING.sub(b"", data).replace(b"\r\n", b"\n").decode("utf-8", "replace")
    if _PLAIN.fullmatch(text) is None:
        return None
    return re.sub(" +\n", "\n", text) if " \n" in text else text

