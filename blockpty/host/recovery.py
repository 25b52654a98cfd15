"""Recovery of stream and timeline after a loss of power, before they are written on.

What was synced is there. Of what was written after that, any part may be missing, sector by sector: a line of the
timeline may be damaged with whole ones behind it, and the stream may have zeros where bytes were. Neither can be part
of a record that is a prefix of what happened; so both files are cut where the first thing is missing.

The file `forced` says how far both files were durable, and in which start of the machine that was. It is written after
the files were synced, and not synced itself: whatever of it is found was true. Where the machine has not been started
anew nothing is checked, for then the files are what was written.
"""

from __future__ import annotations

import contextlib
import json
import os
from functools import cache
from typing import IO, Any, NamedTuple

from blockpty.files.lines import decode_line, is_sound, sealed
from blockpty.files.opening import open_regular
from blockpty.files.segments import segment_name, segment_offsets
from blockpty.files.sync import cut_tail

SECTOR = 512
PIECE = 1024 * 1024


@cache
def boot_id() -> str:
    """Which start of the machine this is; "" where the system does not name it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


class SyncedSizes(NamedTuple):
    """Sizes up to which stream and timeline are known to be durable, and since which start of the machine."""

    boot: str
    stream: int
    timeline: int


def _reading(path: str) -> IO[bytes]:
    return os.fdopen(open_regular(path, ours=True), "rb")


def synced_path(directory: str) -> str:
    return os.path.join(directory, "forced")


def read_synced(directory: str) -> SyncedSizes | None:
    """What was noted; None when nothing was."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError), _reading(synced_path(directory)) as file:
        line = file.read(SECTOR).partition(b"\n")[0]
        if is_sound(line):
            noted = json.loads(line)
            return SyncedSizes(str(noted["boot"]), int(noted["stream"]), int(noted["timeline"]))
    return None


def note_synced(directory: str, fd: int, sizes: SyncedSizes) -> int:
    """Note how far the files are durable; return the descriptor of the note, to be used again (-1: none yet)."""
    if fd < 0:
        fd = open_regular(synced_path(directory), os.O_RDWR | os.O_CREAT)
    # Blanks behind the line: a shorter one covers what a longer one left, in one sector.
    os.pwrite(fd, sealed(json.dumps(sizes._asdict()).encode()).ljust(200), 0)
    return fd


def _entry(line: bytes) -> dict[str, Any] | None:
    entry = decode_line(line.rstrip(b"\n"))
    return entry if entry is not None and isinstance(entry.get("offset"), int) else None


def recover(directory: str, boot: str) -> bool:
    """Cut both files of a conversation that is not live to a prefix of what happened; return whether that was needed.

    Raises OSError. Killed anywhere in here and called again, the result is the same.
    """
    synced = read_synced(directory) or _without_note(directory)
    if synced is None or not boot or synced.boot == boot:
        return False
    segments = _segments(directory)
    end = _unbroken(segments, synced.stream)
    path = os.path.join(directory, "timeline.jsonl")
    timeline = _sound_lines(path, synced.timeline, end)
    cut = cut_tail(path, timeline)
    for base, segment in reversed(segments):
        if base >= end and base:
            os.rename(segment, segment + ".torn")
            cut = True
        else:
            cut = cut_tail(segment, max(0, end - base)) or cut
    if cut:
        # It speaks of a record that was longer.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, "checkpoint.json"))
    return cut


def _without_note(directory: str) -> SyncedSizes | None:
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
    return SyncedSizes(boot, 0, 0)


def _segments(directory: str) -> list[tuple[int, str]]:
    place = os.path.join(directory, "stream")
    try:
        return [(offset, os.path.join(place, segment_name(offset))) for offset in segment_offsets(place)]
    except FileNotFoundError:
        return []


def _unbroken(segments: list[tuple[int, str]], synced: int) -> int:
    """The end of what is there without a hole: a NUL byte at the end of a sector stands for bytes that are missing."""
    end = segments[0][0] if segments else 0
    for base, path in segments:
        if base != end:
            break
        size = os.stat(path).st_size
        hole = _first_hole(path, max(0, synced - base), size)
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


def _sound_lines(path: str, synced: int, end: int) -> int:
    """Where the first line begins that is damaged or speaks of bytes that are missing."""
    at = 0
    try:
        with _reading(path) as file:
            for line in file:
                entry = _entry(line) if line.endswith(b"\n") else None
                whole = entry is not None and not line.startswith(b"\0")
                offset = None if entry is None else entry["offset"]
                # What was synced and is damaged all the same is damage in the middle: the lines behind it count.
                if (not whole and at >= synced) or (offset is not None and offset > end):
                    break
                at += len(line)
    except FileNotFoundError:
        return 0
    return at
