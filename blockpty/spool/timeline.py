"""Reading the timeline."""

from __future__ import annotations

from pathlib import Path

from blockpty.model.entries import Entry
from blockpty.spool.lines import LineReader


class TimelineReader:
    """Follows a conversation's timeline from a byte position; lines that are no entries are passed over."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self._lines = LineReader(path, position)

    @property
    def damaged(self) -> list[tuple[int, int]]:
        """Byte ranges that could not be read."""
        return self._lines.damaged

    def read_new(self, until: int | None = None, *, some: bool = False) -> list[tuple[Entry, int]]:
        """Return the entries that have come since, each with the byte position after its line; none behind `until`.

        With `some` only about a mebibyte of lines; an empty list then may mean that none of them was an entry.
        """
        entries: list[tuple[Entry, int]] = []
        for line, position in self._lines.read_new(until, some=some):
            try:
                entries.append((Entry.from_dict(line), position))
            except (KeyError, TypeError, ValueError):
                self._lines.damaged.append((position, position))
        return entries

    @property
    def position(self) -> int:
        """Byte position after the last line that was read."""
        return self._lines.position

    def force(self) -> None:
        """Have the file's content on the medium."""
        self._lines.force()

    def close(self) -> None:
        """Close the file."""
        self._lines.close()
