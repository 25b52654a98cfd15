"""Reader of the timeline.

What cannot be read is passed over and reported: in front of the next entry stands one of kind `DAMAGED`, with the
bytes of the file that were lost. So it is part of the record, and the same for every reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from blockpty.errors import SpoolError
from blockpty.files.lines import is_sound
from blockpty.model.entries import DAMAGED, Entry
from blockpty.spool.checkpoint import load_meta
from blockpty.spool.line_reader import LineReader
from blockpty.spool.log_start import load_log_start

_SEALED_SINCE: Final = 2


class TimelineReader:
    """Follows a conversation's timeline from a byte position, by default from where the record begins.

    With `holding`, only lines that hold these bytes are read.

    Attributes:
        ended: whether the last read came to the end of the file, or to where it was to stop.
    """

    def __init__(self, path: Path, position: int = 0, *, holding: bytes = b"") -> None:
        self._path = path
        if not position and (beginning := load_log_start(path.parent)) is not None:
            position = beginning.timeline
        self._sealed: bool | None = None
        self._lines = LineReader(path, position, sound=self._sound, holding=holding)
        self._unreported: list[tuple[int, int]] = []
        self.ended = False

    @property
    def damaged(self) -> list[tuple[int, int]]:
        """Byte ranges that could not be read."""
        return self._lines.damaged

    def read_new(self, until: int | None = None, *, some: bool = False) -> list[tuple[Entry, int]]:
        """Return the entries that have come since, each with the byte position after its line; none behind `until`.

        With `some` only about 128 KiB of lines; an empty list then may mean that none of them was an entry.
        """
        begin, damaged = self._lines.position, self._lines.damaged
        seen = len(damaged)
        lines = self._lines.read_new(until, some=some)
        self.ended = self._lines.ended
        self._unreported += damaged[seen:]
        entries: list[tuple[Entry, int]] = []
        for line, position in lines:
            try:
                entry = Entry.from_dict(line)
            except (KeyError, TypeError, ValueError):
                damaged.append((begin, position))
                self._unreported.append((begin, position))
            else:
                if self._unreported:
                    entries += self._damage_before(position, entry)
                entries.append((entry, position))
            begin = position
        return entries

    def _damage_before(self, position: int, entry: Entry) -> list[tuple[Entry, int]]:
        """Return the entries for the damage since the last one, joined where one range begins at the end of another."""
        joined: list[tuple[int, int]] = []
        for begin, end in sorted(damage for damage in self._unreported if damage[0] < position):
            if joined and begin <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((begin, end))
        if joined:
            self._unreported = [damage for damage in self._unreported if damage[0] >= position]
        return [(Entry(entry.offset, entry.ts, DAMAGED, {"bytes": [begin, end]}), end) for begin, end in joined]

    def _sound(self, line: bytes) -> bool:
        sound = is_sound(line)
        if sound is not None:
            return sound
        if self._sealed is None:
            self._sealed = _is_sealed(self._path.with_name("meta.json"))
        return not self._sealed

    @property
    def position(self) -> int:
        """Byte position after the last line that was read."""
        return self._lines.position

    def sync(self) -> None:
        """Make the file's content durable."""
        self._lines.sync()

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


def _is_sealed(meta: Path) -> bool:
    """Whether every line of the record has a seal; without one an unsealed line is one of an older version."""
    try:
        return int(load_meta(meta)["format"]) >= _SEALED_SINCE
    except (OSError, SpoolError):
        return False
