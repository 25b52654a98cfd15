"""What an emulator sets aside: the saved cursor, and the picture before a synchronized update. Data only."""

from __future__ import annotations

from typing import NamedTuple

from blockpty.screen.cells import Row
from blockpty.screen.pens import Pen
from blockpty.screen.protocol import Cursor


class Saved(NamedTuple):
    """What DECSC keeps; each screen has one slot."""

    x: int = 0
    y: int = 0
    pending: bool = False
    pen: Pen = Pen()
    origin: bool = False
    charsets: tuple[str, ...] = ("B", "B", "B", "B")
    shift: int = 0


class Held(NamedTuple):
    """What was shown when a synchronized update began."""

    lines: list[Row]
    cursor: Cursor
    pen: Pen
    alt: bool
