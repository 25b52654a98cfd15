"""Chain of the timeline: each line has the digest of the line before it, and of the stream's bytes since.

Rules of this file: it reads the files as they lie there and writes nothing. A damaged line is known by its own
seal; here it is found which lines are not the ones that were written, and which bytes of the stream are not. The lines
of older versions have no links: then nothing is vouched for, and nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from blockpty.files.lines import decode_line, digest_of, link_of
from blockpty.spool.storage import open_file
from blockpty.spool.stream import StreamReader

_PIECE: Final = 1024 * 1024

Differ = Callable[[str, str, str], None]


class Chain:
    """Walks over the lines of a timeline, from a position where one begins up to another.

    Attributes:
        begin: from where on the lines vouch for the stream; None where they do not.
        last: the offset of the last entry, up to which they do.
        head: the link that the next line will have, which is a digest of everything up to here.
        heads: the links at the positions that were asked for.
        over: the shell has ended and its terminal is gone, so that nothing may follow.
        position: how far the lines were looked at.
        torn: where a line begins that has no end; None when there is none.
    """

    def __init__(self, path: Path, stream: StreamReader, differ: Differ, position: int = 0) -> None:
        self._path = path
        self._stream = stream
        self._differ = differ
        self.position = position
        self._first_linked: int | None = None
        # What was read of the line before is not what was written there: its offset is not known.
        self._broken = False
        self._damaged: tuple[int, int] | None = None
        self._ends: set[str] = set()
        self.begin: int | None = None
        self.last: int | None = None if position else 0
        self.head: str | None = None if position else link_of(b"")
        self.heads: dict[int, str] = {}
        self.torn: int | None = None

    @property
    def over(self) -> bool:
        """Whether nothing may follow."""
        return {"exit", "eof"} <= self._ends

    def walk(
        self, until: int, asked: frozenset[int] = frozenset(), reached: Callable[[int], None] = lambda offset: None
    ) -> None:
        """Look at every line up to a position of the file; `reached` is called with each offset in the stream."""
        size = self._stream.size()
        at = self.position
        for line in self._lines(until):
            if not line.endswith(b"\n"):
                self.torn = at
                break
            self._line(at, line[:-1].lstrip(b"\0"), size)
            if self._broken:
                self._damaged = (at, at + len(line))
            at += len(line)
            reached(self.last or 0)
            if at in asked and self.head is not None:
                self.heads[at] = self.head
        if self._broken and self._damaged is not None:
            # Damage before another entry is reported by the reader of the entries.
            begin, end = self._damaged
            self._differ("I1", "timeline.jsonl", f"bytes {begin} to {end} are damaged")
        self.position = at

    def _lines(self, until: int) -> Iterator[bytes]:
        try:
            descriptor = open_file(self._path)
        except FileNotFoundError:
            self._differ("I1", "timeline.jsonl", "is missing")
            return
        with open(descriptor, "rb") as file:
            at = self.position
            file.seek(at)
            while at < until and (line := file.readline(until - at)):
                yield line
                at += len(line)

    def _line(self, at: int, line: bytes, size: int) -> None:
        link, self.head = self.head, link_of(line)
        entry = decode_line(line, orjson.loads)
        if entry is None or type(entry.get("offset")) is not int:
            self._broken = True
            return
        where = f"timeline.jsonl line at byte {at}"
        prev, begin, end = entry.get("prev"), self.last, entry["offset"]
        broken, self._broken, self.last = self._broken, False, end
        self._kind(entry)
        if begin is not None and end < begin:
            self._differ("I1", where, f"speaks of offset {end}, the line before it of {begin}: not in their order")
        if prev is None:
            if self._first_linked is not None:
                self._differ("I1", where, f"has no link to the line before it, as those from byte {self._first_linked}")
            return
        if self._first_linked is None:
            # A line of an older version before it is vouched for as well, but not what that line says of the stream.
            self._first_linked, self.begin = at, begin if begin is not None else end
        if not broken and link is not None and prev != link:
            why = "the line before it is not the one that it was written behind: changed, removed, added or moved"
            self._differ("I1", where, why)
        elif broken or begin is None or not begin < end <= size:
            return
        elif not self._is(begin, end, entry.get("sum")):
            self._differ("I1", f"stream bytes {begin} to {end}", f"are not what the {where} vouches for")

    def _kind(self, entry: dict[str, Any]) -> None:
        kind, note = entry.get("kind"), entry.get("note")
        if kind == "spawn":
            self._ends.clear()
        elif kind in ("exit", "eof"):
            self._ends.add(kind)
        elif kind == "note" and isinstance(note, dict) and note.get("type") == "lost":
            self._ends |= {"exit", "eof"}

    def _is(self, begin: int, end: int, digest: object) -> bool:
        if begin < self._stream.begin:
            return True  # not kept any more
        return digest == digest_of(self._pieces(begin, end))

    def _pieces(self, begin: int, end: int) -> Iterator[bytes]:
        while begin < end and (piece := self._stream.read(begin, min(_PIECE, end - begin))):
            yield piece
            begin += len(piece)
