"""Reader of files of JSON lines that another process may be appending to; only whole lines are ever returned."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from blockpty.files.holes import first_data
from blockpty.spool.storage import open_file, open_restored

_PIECE: Final = 1024 * 1024
# What is read for a caller that wants only some: 1,000 lines or so, 2 ms.
_SOME: Final = 128 * 1024
# Asked for beyond the end that a file had: memory is taken for all that is asked for.
_GROWTH: Final = 4096


class LineReader:
    """Follows one file from a byte position.

    Attributes:
        position: byte after the last line that was returned.
        ended: whether the last read came to the end of the file, or to where it was to stop.
        damaged: byte ranges of lines that are no JSON object, and of NUL bytes before a line; they are passed over,
            the lines after them are read.
    """

    def __init__(
        self,
        path: Path,
        position: int = 0,
        *,
        sound: Callable[[bytes], bool] | None = None,
        holes: bool = False,
        holding: bytes = b"",
    ) -> None:
        self._path = path
        # Whether what was at the beginning may have been given back.
        self._holes = holes and position == 0
        # Lines without it are passed over, for a caller that wants what few of them have.
        self._holding = holding
        # What else a line must be.
        self._sound = sound
        self._descriptor = -1
        self.position = position
        self.ended = False
        self.damaged: list[tuple[int, int]] = []

    def read_new(self, until: int | None = None, *, some: bool = False) -> list[tuple[dict[str, Any], int]]:
        """Return the whole lines that have come since, each with the byte position after it; none behind `until`.

        With `some` only about 128 KiB of them, and none only when there is none.
        """
        self.ended = True
        if self._descriptor < 0:
            try:
                self._descriptor = open_file(self._path)
            except FileNotFoundError:
                return []
            if self._holes and not self.position:
                self.position = first_data(self._descriptor)
            size = os.fstat(self._descriptor).st_size
        else:
            found = os.fstat(self._descriptor)
            size = found.st_size
            if not found.st_nlink:
                # Checked each time: what comes next may be in another file already.
                if (fresh := open_restored(self._descriptor, self._path, self.position)) is not None:
                    os.close(self._descriptor)
                    self._descriptor = fresh
                    size = os.fstat(fresh).st_size
            elif size == self.position:
                return []
        lines: list[tuple[dict[str, Any], int]] = []
        data = b""
        while room := self._room(len(data), size, until, some):
            piece = os.pread(self._descriptor, room, self.position + len(data))
            # Of a plain file less comes only at its end.
            self.ended = len(piece) < room
            data += piece
            end = data.rfind(b"\n") + 1
            for line in data[:end].split(b"\n")[:-1]:
                begin, self.position = self.position, self.position + len(line) + 1
                if self._holding not in line:
                    continue
                parsed = parse_line(line)
                if parsed is None or not (self._sound is None or self._sound(line.lstrip(b"\x00"))):
                    self.damaged.append((begin, self.position))
                    continue
                if line.startswith(b"\x00"):
                    self.damaged.append((begin, begin + len(line) - len(line.lstrip(b"\x00"))))
                lines.append((parsed, self.position))
            data = data[end:]
            if self._holes and data and not data.strip(b"\0"):
                # A copy of a file with a hole may have zeros in its place.
                self.position, data = self.position + len(data), b""
            if self.ended or (some and lines):
                break
        else:
            self.ended = True
        # What follows the last line feed is not kept: the writer takes half a line back when it cannot write the rest.
        return lines

    def _room(self, held: int, size: int, until: int | None, some: bool) -> int:
        begin = self.position + held
        # A line that is longer than a piece is read in ever larger ones.
        room = min(max(_SOME, held) if some else _PIECE, max(0, size - begin) + _GROWTH)
        return room if until is None else max(0, min(room, until - begin))

    def sync(self) -> None:
        """Make the file's content durable."""
        if self._descriptor >= 0:
            os.fdatasync(self._descriptor)

    def __del__(self) -> None:
        # A reader that was dropped without being closed.
        self.close()

    def close(self) -> None:
        """Close the file; the reader can be used again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the object of one line, or None when it is none."""
    try:
        parsed = orjson.loads(line.lstrip(b"\x00"))
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) else None


def is_line_end(path: Path, position: int) -> bool:
    """Whether a line begins, or the file ends, at a byte position."""
    if position == 0:
        return True
    with open(open_file(path), "rb") as file:
        file.seek(position - 1)
        return file.read(1) == b"\n"


def iterate_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file's whole lines, from the beginning to where it ends now."""
    reader = LineReader(path, holes=True)
    try:
        while lines := reader.read_new(some=True):
            for line, _ in lines:
                yield line
    finally:
        reader.close()


def iterate_lines_back(path: Path, end: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file's whole lines, the last one first: those before a line's end, by default all."""
    try:
        descriptor = open_file(path)
    except FileNotFoundError:
        return
    try:
        first = first_data(descriptor)
        at = os.fstat(descriptor).st_size if end is None else end
        # What has been read of the line that begins before `at`, up to its end.
        rest = b""
        while at > first:
            # A line that is longer than a piece is read in ever larger ones.
            start = max(first, at - max(_SOME, len(rest)))
            data = os.pread(descriptor, at - start, start) + rest
            at = start
            begin = 0 if start == first else data.find(b"\n") + 1
            if not begin and start > first:
                rest = data
                continue
            # What follows the last line feed is half a line.
            for line in reversed(data[begin : data.rfind(b"\n") + 1].split(b"\n")):
                if (parsed := parse_line(line)) is not None:
                    yield parsed
            rest = data[:begin]
    finally:
        os.close(descriptor)


def line_of_seq(path: Path, seq: int) -> int:
    """Return the byte position of the first line whose `seq` is at least this, or of the end, in a file sorted by it.

    It reads a few lines, however many there are.
    """
    try:
        descriptor = open_file(path)
    except FileNotFoundError:
        return 0
    try:
        low, high = first_data(descriptor), os.fstat(descriptor).st_size
        while high - low > _SOME:
            middle = (low + high) // 2
            found = _first_line(descriptor, middle, high)
            if found is None or found[0] >= seq:
                high = middle
            else:
                low = found[1]
    finally:
        os.close(descriptor)
    reader = LineReader(path, low)
    try:
        while lines := reader.read_new(some=True):
            for line, position in lines:
                if _is_numbered(line) and line["seq"] >= seq:
                    return low
                low = position
        return low
    finally:
        reader.close()


def _first_line(descriptor: int, begin: int, end: int) -> tuple[int, int] | None:
    """Return the `seq` of the first numbered line that begins behind a place and before another, and where it ends."""
    data, at, line = b"", begin, 0
    while piece := os.pread(descriptor, _SOME, at):
        data, at = data + piece, at + len(piece)
        while after := data.find(b"\n", line) + 1:
            # The line that the place lies in begins before it.
            if line and (parsed := parse_line(data[line:after])) is not None and _is_numbered(parsed):
                return int(parsed["seq"]), begin + after
            line = after
            if begin + line >= end:
                return None
    return None


def _is_numbered(line: dict[str, Any]) -> bool:
    """Whether a line has a number; one that is an object but has none is a damaged one."""
    return type(line.get("seq")) is int


def last_line(path: Path) -> tuple[dict[str, Any] | None, int]:
    """Return the last whole line that is a numbered JSON object and the byte position after it, or (None, 0)."""
    try:
        with open(open_file(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            span = 64 * 1024
            while True:
                begin = max(0, size - span)
                file.seek(begin)
                data = file.read(size - begin)
                end = data.rfind(b"\n") + 1
                while end:
                    start = data.rfind(b"\n", 0, end - 1) + 1
                    if not start and begin:
                        break
                    parsed = parse_line(data[start:end])
                    if parsed is not None and _is_numbered(parsed):
                        return parsed, begin + end
                    end = start
                if not begin:
                    return None, 0
                span *= 4
    except FileNotFoundError:
        return None, 0
