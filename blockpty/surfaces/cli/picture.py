"""Screens drawn on a terminal: cells and colours, and nothing else of what a program wrote.

Rules of this file: every control sequence that is written is made here. The text of cells goes through `sanitize`; of
a screen that is larger than the terminal the rows around the cursor and the first columns are shown.
"""

from __future__ import annotations

import os
from typing import Final, TextIO

from blockpty.model.replay_frames import Moment
from blockpty.runtime.screens import AFTER_ANOTHER
from blockpty.screen import fastforward
from blockpty.screen.cells import width
from blockpty.screen.emulator import Emulator
from blockpty.screen.pens import Pen
from blockpty.screen.protocol import Frame, Line, Modes
from blockpty.screen.snapshot import sgr
from blockpty.surfaces.cli.render import colours_wanted
from blockpty.surfaces.sanitize import RESET, sanitize

# Without wrapping: what is shown in place of a character that misleads is longer than that.
_ENTER: Final = "\x1b[?1049h\x1b[?7l\x1b[2J\x1b[H"
_LEAVE: Final = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"


class Picture:
    """The screen of a conversation on a terminal; `leave` gives the terminal back.

    Attributes:
        modes: those that the program has set.
    """

    def __init__(self, out: TextIO, cols: int, rows: int) -> None:
        self._out = out
        self._emulator = Emulator(cols, rows)
        self._colour = colours_wanted()
        self._size = (0, 0)
        self._shown: list[str] = []
        self._said = ""
        self.enter()

    @property
    def modes(self) -> Modes:
        return self._emulator.frame().modes

    def enter(self) -> None:
        """Take the terminal, also after `leave`."""
        self._size = (0, 0)
        self._write(_ENTER)

    def take(self, moment: Moment) -> None:
        """Take what happened; what this version does not know changes nothing."""
        if moment.type == "screen" and moment.cols and moment.rows:
            self.join(moment.cols, moment.rows, b"")
        elif moment.type == "resize" and moment.cols and moment.rows:
            self.resize(moment.cols, moment.rows, fresh=moment.fresh)
        if moment.data:
            self.feed(moment.data)

    def join(self, cols: int, rows: int, data: bytes) -> None:
        """Begin again with a screen of this size that `data` draws."""
        self._emulator = Emulator(cols, rows)
        self.feed(data)

    def resize(self, cols: int, rows: int, *, fresh: bool) -> None:
        """Take another size; `fresh`: for another shell, which finds the terminal as after another program."""
        if fresh:
            self._emulator.feed(AFTER_ANOTHER)
        self._emulator.resize(cols, rows)

    def feed(self, data: bytes) -> None:
        """Draw output; it is shown by `draw`."""
        fastforward.feed(self._emulator, data)

    def say(self, text: str) -> None:
        """Show a line of our own in place of the last row of the terminal, "" for none."""
        if text != self._said:
            self._said, self._size = text, (0, 0)
            self.draw()

    def draw(self) -> None:
        """Show what has been taken."""
        frame = self._emulator.frame()
        columns, lines = os.get_terminal_size(self._out.fileno())
        top = max(0, min(frame.cursor.y - lines + 1, frame.rows - lines))
        rows = [self._row(line, columns) for line in frame.lines[top : top + lines]]
        parts = ["\x1b[?25l"]
        if self._size != (columns, lines) or len(rows) < len(self._shown):
            self._size, self._shown = (columns, lines), []
            parts.append("\x1b[2J")
        for y, row in enumerate(rows):
            if y >= len(self._shown) or self._shown[y] != row:
                parts.append(f"\x1b[{y + 1};1H{RESET}\x1b[2K{row}")
        self._shown = rows
        if self._said:
            line = sanitize(_first(self._said, columns), colour=False)
            parts.append(f"\x1b[{lines};1H{RESET}\x1b[2K\x1b[7m{line}")
        parts.append(RESET + _cursor(frame, top, columns))
        self._write("".join(parts))

    def leave(self, *, keep: bool = True) -> None:
        """Give the terminal back, with the last picture on it unless `keep` is false."""
        shown = self._emulator.frame().lines if self._shown and keep else ()
        rows = [self._row(line, self._size[0]) for line in shown]
        while rows and not rows[-1]:
            rows.pop()
        self._write(_LEAVE + "".join(f"{row}{RESET}\n" for row in rows))

    def _row(self, line: Line, columns: int) -> str:
        parts = []
        runs = list(line.runs)
        while runs and runs[-1].pen == Pen() and not runs[-1].text.strip(" "):
            runs.pop()
        if runs and runs[-1].pen == Pen():
            runs[-1] = runs[-1]._replace(text=runs[-1].text.rstrip(" "))
        for run in runs:
            if columns <= 0:
                break
            shown = run.text if run.width <= columns else _first(run.text, columns)
            columns -= run.width
            plain = run.pen._replace(link=None)
            text = sanitize(shown, colour=False)
            parts.append(f"\x1b[{sgr(plain)}m{text}" if self._colour and plain != Pen() else f"{RESET}{text}")
        return "".join(parts)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _first(text: str, columns: int) -> str:
    """Return as much of a text as fits."""
    for at, character in enumerate(text):
        columns -= width(character)
        if columns < 0:
            return text[:at]
    return text


def _cursor(frame: Frame, top: int, columns: int) -> str:
    cursor = frame.cursor
    place = f"\x1b[{cursor.y - top + 1};{min(cursor.x, columns - 1) + 1}H"
    return f"{place}\x1b[?25h" if cursor.visible else place
