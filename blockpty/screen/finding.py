"""Finding a text on a screen, and the cell in the middle of it.

Rules of this file: a pure function of a frame. A text is found inside one row, as the row is shown.
"""

from __future__ import annotations

from collections.abc import Callable

from blockpty.screen.cells import width
from blockpty.screen.protocol import Frame


def find_text(frame: Frame) -> Callable[[str, int], tuple[tuple[int, int] | None, int]]:
    """Return what finds a text for the n-th time, from 1: its column and row, None without, and how often it stands."""

    def find(text: str, number: int) -> tuple[tuple[int, int] | None, int]:
        places = []
        for y, line in enumerate(frame.lines):
            row = line.text
            at = row.find(text)
            while at >= 0:
                places.append((_columns(row[:at]) + max(0, _columns(text) - 1) // 2, y))
                at = row.find(text, at + len(text))
        return (places[number - 1] if 0 < number <= len(places) else None), len(places)

    return find


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(width, text))
