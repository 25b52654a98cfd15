"""Putting the files of truth in order before somebody writes on: what a loss of power left at their ends.

What was forced to the medium is there. Of what was written after that, any part may be missing, sector by sector: a
line of the timeline may be damaged with whole ones behind it, and the stream may have zeros where bytes were. Neither
can be part of a record that is a prefix of what happened; so both files are cut where the first thing is missing.

The file `forced` says how far both files were on the medium, and in which start of the machine that was. It is written
after the files were forced, and not forced itself: whatever of it is found was true. Where the machine has not been
started anew nothing is looked at, for then the files are what was written.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from functools import cache
from typing import IO, Any, NamedTuple

from blockpty.host.plain import open_plain
from blockpty.model.seal import is_sound, sealed

SECTOR = 512
PIECE = 1024 * 1024
# So much of the end of a stream is kept beside it.
KEPT = 1024 * 1024


@cache
def boot_id() -> str:
    """Which start of the machine this is; "" where the system does not name it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def set_aside(path: str, data: bytes) -> None:
    """Append what is about to be cut off a file to `<path>.torn`, 0600, with a line feed behind it."""
    fd = open_plain(path + ".torn", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        left = memoryview(data + b"\n")
        while left:
            left = left[os.write(fd, left) :]
    finally:
        os.close(fd)


class Forced(NamedTuple):
    """How far stream and timeline are known to be on the medium, and since which start of the machine."""

    boot: str
    stream: int
    timeline: int


def _reading(path: str) -> IO[bytes]:
    return os.fdopen(open_plain(path, os.O_RDONLY), "rb")


def forced_path(directory: str) -> str:
    return os.path.join(directory, "forced")


def read_forced(directory: str) -> Forced | None:
    """What was noted; None when nothing was."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError), _reading(forced_path(directory)) as file:
        line = file.read(SECTOR).partition(b"\n")[0]
        if is_sound(line):
            noted = json.loads(line)
            return Forced(str(noted["boot"]), int(noted["stream"]), int(noted["timeline"]))
    return None


def note_forced(directory: str, fd: int, forced: Forced) -> int:
    """Note how far the files are on the medium; return the descriptor of the note, to be used again (-1: none yet)."""
    if fd < 0:
        fd = open_plain(forced_path(directory), os.O_RDWR | os.O_CREAT)
    # Blanks behind the line: a shorter one covers what a longer one left, in one sector.
    os.pwrite(fd, sealed(json.dumps(forced._asdict()).encode()).ljust(200), 0)
    return fd


def _entry(line: bytes) -> dict[str, Any] | None:
    line = line.rstrip(b"\n").lstrip(b"\0")
    if is_sound(line) is False:
        return None
    with contextlib.suppress(ValueError, RecursionError):
        entry = json.loads(line)
        if isinstance(entry, dict) and isinstance(entry.get("offset"), int):
            return entry
    return None


def mend(directory: str, boot: str) -> bool:
    """Cut both files of a conversation that nobody writes to a prefix of what happened; return whether that was needed.

    Raises OSError. Killed anywhere in here and called again, the result is the same.
    """
    forced = read_forced(directory) or _unnoted(directory)
    if forced is None or not boot or forced.boot == boot:
        return False
    segments = _segments(directory)
    end = _unbroken(segments, forced.stream)
    path = os.path.join(directory, "timeline.jsonl")
    timeline = _sound_lines(path, forced.timeline, end)
    cut = _cut_file(path, timeline)
    for base, segment in reversed(segments):
        if base >= end and base:
            os.rename(segment, segment + ".torn")
            cut = True
        else:
            cut = _cut_file(segment, max(0, end - base)) or cut
    if cut:
        # It speaks of a record that was longer.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, "checkpoint.json"))
    return cut


def _unnoted(directory: str) -> Forced | None:
    """What is known where the note was lost itself: the start of the machine that the last shell began in.

    None for a record that is older than the note.
    """
    boot = ""
    with contextlib.suppress(OSError), _reading(os.path.join(directory, "timeline.jsonl")) as file:
        for line in file:
            entry = _entry(line) if b'"spawn"' in line else None
            if entry is not None and entry.get("kind") == "spawn":
                if not isinstance(entry.get("boot"), str):
                    return None
                boot = entry["boot"]
    return Forced(boot, 0, 0)


def _segments(directory: str) -> list[tuple[int, str]]:
    place = os.path.join(directory, "stream")
    try:
        names = sorted(name for name in os.listdir(place) if name.isdigit() and len(name) == 20)
    except FileNotFoundError:
        return []
    return [(int(name), os.path.join(place, name)) for name in names]


def _unbroken(segments: list[tuple[int, str]], forced: int) -> int:
    """The end of what is there without a hole: a NUL byte at the end of a sector stands for bytes that are missing."""
    end = segments[0][0] if segments else 0
    for base, path in segments:
        if base != end:
            break
        size = os.stat(path).st_size
        hole = _first_hole(path, max(0, forced - base), size)
        end = base + hole
        if hole < size:
            break
    return end


def _first_hole(path: str, begin: int, size: int) -> int:
    with _reading(path) as file:
        at = begin - begin % SECTOR
        while at < size:
            file.seek(at)
            piece = file.read(PIECE)
            if not piece:
                break
            if b"\0" in piece:
                for place in range(0, len(piece), SECTOR):
                    sector = piece[place : place + SECTOR]
                    kept = at + place + len(sector.rstrip(b"\0"))
                    if sector.endswith(b"\0") and max(kept, begin) < at + place + len(sector):
                        return max(kept, begin)
            at += len(piece)
    return size


def _sound_lines(path: str, forced: int, end: int) -> int:
    """Where the first line begins that is damaged or speaks of bytes that are missing."""
    at = 0
    try:
        with _reading(path) as file:
            for line in file:
                entry = _entry(line) if line.endswith(b"\n") else None
                whole = entry is not None and not line.startswith(b"\0")
                offset = None if entry is None else entry["offset"]
                # What was forced and is damaged all the same is damage in the middle: the lines behind it count.
                if (not whole and at >= forced) or (offset is not None and offset > end):
                    break
                at += len(line)
    except FileNotFoundError:
        return 0
    return at


def _cut_file(path: str, size: int) -> bool:
    try:
        fd = open_plain(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        found = os.fstat(fd).st_size
        if found <= size:
            return False
        set_aside(path, os.pread(fd, min(KEPT, found - size), size))
        os.ftruncate(fd, size)
        force(fd)
        return True
    finally:
        os.close(fd)


# File systems that cannot force anything say so; then there is nothing to wait for.
CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


def force(fd: int) -> None:
    """Have the content of a file on the medium."""
    try:
        os.fdatasync(fd)
    except OSError as error:
        if error.errno not in CANNOT:
            raise
