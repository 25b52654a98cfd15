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
from typing import Final

from blockpty.screen import fastforward, frames
from blockpty.screen.cells import NARROW_RANGES, PADDED, SPACER, Row
from blockpty.screen.emulator import Emulator
from blockpty.screen.pens import Pen
from blockpty.screen.protocol import Line

_SLICE: Final = 128 * 1024
_LEAST_RUN: Final = 8 * 1024
_DRAWN_ONLY: Final = re.compile(rb"\x1b\[(?:[0-9;:]{0,255}m|0?K)|\x07")
_PLAIN: Final = re.compile(f"[{NARROW_RANGES}\n]*")


class Rendered:
    """Output on its way to what is seen in the end. Any bytes, in any pieces."""

    def __init__(self, cols: int = 80, rows: int = 24, least_run: int = _LEAST_RUN) -> None:
        self._emulator = Emulator(cols, rows, history_rows=0)
        self._emulator.scrolled_off = self._leave
        self._left: list[str] = []
        self._blanks = 0
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
            plain = None if cut is None else self._plain(data[first:cut])
            if cut is None or plain is None:
                continue
            emulator.feed(data[at:first])
            at = first
            if self._on_fresh_line():
                for row in emulator.lines[: emulator.y]:
                    self._leave(row)
                self._left.append(plain)
                self._blanks = 0
                fastforward.carry(emulator, data, first, cut)
                emulator.lines[:] = [emulator.blank_row() for _ in range(emulator.rows)]
                emulator.y = 0
                at = cut
        emulator.feed(data[at:] if at else data)

    def _plain(self, data: bytes) -> str | None:
        return _plain(data)

    def _on_fresh_line(self) -> bool:
        """Whether lines that come now only push up what is there."""
        s = self._emulator
        ready = fastforward.ready(s) and s.plain and s.autowrap and not s.alt and s.x == 0 and not s.pending
        return ready and not any(row.text.strip(" ") for row in s.lines[s.y :])


class Drawing(Rendered):
    """Output as `Rendered` takes it, but each row as `shown` makes it of how it is drawn.

    `plain` makes the same of lines that are drawn with nothing, which need no rows for that.
    """

    def __init__(self, cols: int, rows: int, shown: Callable[[Line], str], plain: Callable[[str], str]) -> None:
        super().__init__(cols, rows)
        self._shown = shown
        self._as_plain = plain

    def finish(self) -> str:
        """Return what is still on the screen, because nothing follows."""
        for row in _remaining(self._emulator):
            self._leave(row)
        text = "".join(self._left)
        self._left.clear()
        return text

    def _leave(self, row: Row) -> None:
        self._left.append(self._shown(frames.line(self._emulator, row)))

    def _plain(self, data: bytes) -> str | None:
        # Where a row ends in blanks, how many of them are shown depends on where the rows are cut.
        text = None if b"\x1b" in data or b" \r\n" in data or b" \n" in data else _plain(data)
        return None if text is None else self._as_plain(text)

    def _on_fresh_line(self) -> bool:
        return super()._on_fresh_line() and self._emulator.brush.pen == Pen()


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


def _plain(data: bytes) -> str | None:
    """Return lines as they will be seen, where that takes no screen; None where it does."""
    text = _DRAWN_ONLY.sub(b"", data).replace(b"\r\n", b"\n").decode("utf-8", "replace")
    if _PLAIN.fullmatch(text) is None:
        return None
    return re.sub(" +\n", "\n", text) if " \n" in text else text
