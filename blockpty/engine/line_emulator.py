"""A terminal emulator of one command line, for what the line editor printed, played in one go.

Rules of this file: it is pure and total. It knows only what readline writes on a terminal that wraps (terminfo `am` and
`xenl`): printable characters, BS, CR, LF, and CSI A B C D G H J K P @ X; all other sequences take no room. It sees the
echo and nothing else, so what is typed with echo off cannot be in it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Stands in the data where the shell said that its prompt ends; no UTF-8 text holds this byte.
ANCHOR: Final = b"\xff"
_ANCHOR: Final = "\ufdd0"

_TOKEN: Final = re.compile(
    r"\x1b\[([0-9;:<=>?]*)[ -/]*([@-~])"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and other strings
    r"|\x1b[ -/]*[0-~]?"
    r"|([\s\S])"
)

# Most prompts are printable ASCII with colours and titles; they need no screen to be measured.
_NO_ROOM: Final = re.compile(rb"\x1b(?:\[(?:[0-9;]*m|\?2004[hl])|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_PRINTABLE: Final = re.compile(rb"[ -~]*")


class LineEmulator:
    """The rows from where the prompt began; a cell holds a character, with what is combined with it.

    Attributes:
        row, column: where the cursor is; the column equals `width` after the last cell of a row was written.
    """

    def __init__(self, column: int, width: int) -> None:
        self.width = max(2, width)
        self.row, self.column = 0, min(column, self.width)
        self._rows: list[list[str]] = [[]]
        # Whether a row goes on with what the one before could not hold.
        self._goes_on = [False]
        self._anchor = (0, self.column)

    def play(self, data: bytes) -> None:
        """Take everything that was printed."""
        text = data.replace(ANCHOR, _ANCHOR.encode()).decode("utf-8", "replace")
        for found in _TOKEN.finditer(text):
            if found.group(3) is not None:
                self._character(found.group(3))
            elif found.group(2) is not None and not found.group(1).startswith(("?", "<", "=", ">")):
                self._control(found.group(2), found.group(1))

    def text(self) -> str:
        """Return what stands behind the end of the prompt; lines that were entered as such are joined by LF."""
        first, column = self._anchor
        parts: list[str] = []
        for number in range(first, len(self._rows)):
            row = "".join(cell or "" for cell in self._rows[number][column if number == first else 0 :])
            if number > first and not self._goes_on[number]:
                parts.append("\n")
            parts.append(row)
        return "".join(parts).rstrip(" \n")

    def _character(self, character: str) -> None:
        if character == _ANCHOR:
            self._anchor = (self.row, self.column)
        elif character == "\r":
            self.column = 0
        elif character == "\n":
            self._down(goes_on=False)
        elif character == "\b":
            self.column = max(0, min(self.column, self.width - 1) - 1)
        elif character >= " " and character != "\x7f":
            self._print(character)

    def _print(self, character: str) -> None:
        room = _room(character)
        cells = self._rows[self.row]
        if room == 0:
            before = min(self.column, len(cells)) - 1
            while before > 0 and not cells[before]:
                before -= 1
            if before >= 0:
                cells[before] += character
            return
        if self.column + room > self.width:
            self._down(goes_on=True)
            self.column = 0
            cells = self._rows[self.row]
        self._fill(self.column + room)
        cells[self.column] = character
        if room == 2:
            cells[self.column + 1] = ""
        self.column += room

    def _down(self, *, goes_on: bool) -> None:
        self.row += 1
        if self.row == len(self._rows):
            self._rows.append([])
            self._goes_on.append(goes_on)

    def _fill(self, length: int) -> None:
        cells = self._rows[self.row]
        cells.extend(" " * (length - len(cells)))

    # Each sequence is one line; split, there would be two tables.
    def _control(self, final: str, arguments: str) -> None:
        first = arguments.split(";")[0].split(":")[0]
        count = int(first) if first.isdigit() and len(first) < 5 else 0
        times, cells = max(1, min(count, self.width)), self._rows[self.row]
        if final == "A":
            self.row = max(0, self.row - times)
        elif final == "B":
            self.row = min(len(self._rows) - 1, self.row + times)
        elif final == "C":
            self.column = min(self.width - 1, self.column + times)
        elif final == "D":
            self.column = max(0, min(self.column, self.width - 1) - times)
        elif final == "G":
            self.column = times - 1
        elif final == "H":
            # The line editor clears the screen and draws everything again.
            self._rows, self._goes_on, self._anchor = [[]], [False], (0, 0)
            self.row = self.column = 0
        elif final in "JK" and count == 0:
            del cells[self.column :]
            if final == "J":
                del self._rows[self.row + 1 :], self._goes_on[self.row + 1 :]
        elif final == "P":
            del cells[self.column : self.column + times]
        elif final == "@" and self.column < len(cells):
            cells[self.column : self.column] = [" "] * times
            del cells[self.width :]
        elif final == "X":
            for place in range(self.column, min(self.column + times, len(cells))):
                cells[place] = " "


def _room(character: str) -> int:
    """Return how many columns a character takes."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def column_after(data: bytes, width: int) -> int:
    """Return the column in which a prompt ends, from everything that was printed for it."""
    prompt = data[data.rfind(b"\n") + 1 :]
    plain = _NO_ROOM.sub(b"", prompt)
    if len(plain) <= width and _PRINTABLE.fullmatch(plain):
        return len(plain)
    line = LineEmulator(0, width)
    line.play(prompt)
    return line.column


def entered(data: bytes, column: int, width: int) -> str:
    """Return the line that was entered: `data` begins at the end of a prompt and its last LF is the answer to Enter."""
    end = data.rfind(b"\n")
    line = LineEmulator(column, width)
    line.play(data[: end if end >= 0 else len(data)])
    return line.text()
