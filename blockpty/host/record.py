"""Writers of a record's two files, stream and timeline. Only the recorder opens them for writing.

This file knows names, offsets and what a full disk means. It does not know where bytes come from, what a timeline
entry is for, or that there are several conversations.

Rules:
* nothing is cached: what was written is in the file, and its end is the position of the next write;
* neither file is opened with O_APPEND (splice refuses that); there is one writer;
* a line that could not be written whole is taken back (`ftruncate` needs no space), so the timeline holds whole lines
  after any failure; after a kill in mid-line the next writer does the same;
* what was removed is made again where its home is still the same one; else what is open is written on, and nothing by
  its path, which may belong to another record now;
* a full or failing disk raises `StorageFailed`, and nothing has then been written or moved.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from blockpty.files.lines import decode_line, digest_of, link_of, linked
from blockpty.files.opening import is_removed, make_directory, open_regular, restore_file
from blockpty.files.segments import segment_name, segment_offsets
from blockpty.files.sync import quarantine, sync_directory
from blockpty.host.locks import KnownDirectory, lock, same_file, timeline_path
from blockpty.model.entries import SEALS

SPLICE_NONBLOCK = 2
TAIL_BYTES = 256 * 1024
LAST_BYTES = 2048
TICK_SECONDS = 0.002
PIECE = 256 * 1024

_encode_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class StorageFailed(Exception):
    """The stream or the timeline cannot grow now (ENOSPC, EDQUOT, EIO, EROFS, ...)."""

    def __init__(self, error: OSError, path: str) -> None:
        super().__init__(f"{path}: {error.strerror}")
        self.name = errno.errorcode.get(error.errno or errno.EIO, "EIO")
        self.strerror = error.strerror or ""
        self.path = path


class Stream:
    """The raw bytes: `stream/<20-digit first offset>`, contiguous, each segment at most `segment_bytes`."""

    def __init__(self, directory: str, segment_bytes: int) -> None:
        self._directory = os.path.join(directory, "stream")
        self._limit = segment_bytes
        self._fd = -1
        # Whether a segment must be durable before the next one begins.
        self.syncs = False
        make_directory(self._directory)
        # Whether the newest segment was removed and made again, since the flag was cleared.
        self.restored = False
        self._base = last_segment(self._directory)
        self._home = KnownDirectory(os.path.dirname(os.path.dirname(directory)))
        self._open()

    def _open(self) -> None:
        fd = open_regular(self._path(), os.O_RDWR | os.O_CREAT)
        self.close()
        self._fd = fd
        self._size = os.fstat(fd).st_size

    @property
    def fd(self) -> int:
        """The newest segment."""
        return self._fd

    def _path(self) -> str:
        return os.path.join(self._directory, segment_name(self._base))

    @property
    def offset(self) -> int:
        """The size of the whole stream."""
        return self._base + self._size

    def _room(self) -> int:
        """Bytes that fit in the segment, which is a new one if the last is full."""
        self.keep()
        if self._size >= self._limit:
            if not self._home.is_ours():
                return self._limit
            if self.syncs:
                os.fdatasync(self._fd)
            self._base += self._size
            self._size = 0
            try:
                self._open()
            except OSError:
                self._base = last_segment(self._directory)
                self._open()
                raise
            if self.syncs:
                sync_directory(self._directory)
        return self._limit - self._size

    def keep(self) -> None:
        """Make the newest segment again if it was removed; raises OSError."""
        if is_removed(self._fd) and self._home.is_ours():
            fd = _restored(self._fd, self._path())
            os.close(self._fd)
            self._fd, self.restored = fd, True

    def splice(self, pipe: int, count: int) -> int:
        """Move up to `count` bytes that are in the pipe to the end of the stream, without a copy in this process."""
        try:
            room = self._room()
            moved = os.splice(pipe, self._fd, min(count, room), offset_dst=self._size, flags=SPLICE_NONBLOCK)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise StorageFailed(error, self._path()) from error
        self._size += moved
        return moved

    def write(self, data: bytes) -> int:
        """Write a first part of `data`; return its length."""
        try:
            room = self._room()
            moved = os.pwrite(self._fd, data[:room], self._size)
        except OSError as error:
            raise StorageFailed(error, self._path()) from error
        self._size += moved
        return moved

    def pieces(self, begin: int, end: int) -> Iterator[bytes]:
        """The bytes from `begin` to `end`, read back: by splice they never come through this process."""
        newest = _pieces(self._fd, max(begin, self._base) - self._base, end - self._base)
        if begin >= self._base:
            return newest
        return itertools.chain(stream_pieces(self._directory, begin, min(end, self._base)), newest)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _restored(fd: int, path: str) -> int:
    """Put a removed file at its path again, with the directories above; return the new descriptor. Raises OSError."""
    for directory in (os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):
        make_directory(directory)
    return restore_file(fd, path)


def _pieces(fd: int, begin: int, end: int) -> Iterator[bytes]:
    while begin < end and (piece := os.pread(fd, min(PIECE, end - begin), begin)):
        yield piece
        begin += len(piece)


def stream_pieces(directory: str, begin: int, end: int) -> Iterator[bytes]:
    """The bytes from `begin` to `end` of the segments in a directory, as far as they are there; raises OSError."""
    try:
        bases = segment_offsets(directory)
    except FileNotFoundError:
        return
    for base, after in zip(bases, [*bases[1:], end], strict=True):
        if begin < after and base < end:
            fd = open_regular(os.path.join(directory, segment_name(base)), ours=True)
            try:
                yield from _pieces(fd, max(begin, base) - base, min(after, end) - base)
            finally:
                os.close(fd)


def last_segment(directory: str) -> int:
    """The first offset of the newest segment, 0 when there is none."""
    return max(segment_offsets(directory), default=0)


def stream_size(directory: str) -> int:
    """The size of a stream without a live terminal."""
    with contextlib.suppress(OSError):
        base = last_segment(os.path.join(directory, "stream"))
        return base + os.stat(os.path.join(directory, "stream", segment_name(base))).st_size
    return 0


def sizes_of(directory: str) -> dict[str, Any]:
    """The sizes of both files, as Terminal.sizes, of a conversation without a live terminal."""
    timeline = 0
    with contextlib.suppress(OSError):
        timeline = os.stat(timeline_path(directory)).st_size
    return {"offset": stream_size(directory), "timeline": timeline}


def entries_since(directory: str, position: int) -> list[tuple[int, dict[str, Any]]]:
    """(size of the timeline up to and with it, entry) for each entry from the byte `position` on."""
    found = []
    path = os.path.join(directory, "timeline.jsonl")
    with contextlib.suppress(OSError), open(open_regular(path, ours=True), "rb") as file:
        file.seek(position)
        for line in file:
            position += len(line)
            entry = entry_of(line.rstrip(b"\n"))
            if entry is not None:
                found.append((position, entry))
    return found


def entry_of(line: bytes) -> dict[str, Any] | None:
    """The entry of a line; None for a damaged one. Readers have the same rule: spool/timeline.py."""
    entry = decode_line(line)
    if entry is not None:
        for name in SEALS:
            entry.pop(name, None)
    return entry


class Timeline:
    """One JSON object per line; `offset` and `ts` never decrease.

    Each line has the digest of the line before it, and of the bytes of the stream between their offsets. `pieces` reads
    those bytes; without it they are read from the stream's files. The file is locked as long as it is open; `held` is a
    descriptor that has the lock already. Raises LockHeld, OSError.
    """

    def __init__(
        self, directory: str, pieces: Callable[[int, int], Iterable[bytes]] | None = None, held: int = -1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._clock = clock
        stream = os.path.join(directory, "stream")
        self._pieces = pieces or (lambda begin, end: stream_pieces(stream, begin, end))
        self._path = timeline_path(directory)
        self._home = KnownDirectory(os.path.dirname(os.path.dirname(directory)))
        self._fd = open_regular(self._path, os.O_RDWR | os.O_CREAT)
        try:
            # What was removed and made again has lost the lock that came with the descriptors.
            lock(held if held >= 0 and same_file(held, self._fd) else self._fd)
        except OSError:
            os.close(self._fd)
            raise
        self.restored = False
        self.size = os.fstat(self._fd).st_size
        self._cut_torn_line()
        last = self.tail(LAST_BYTES)[-1:]
        self.ts: int = last[0]["ts"] if last else 0
        self._link = link_of(self._last_line())
        # Where the last entry stands in the stream; not known where no line can be read.
        self._covered: int | None = last[0]["offset"] if last else None if self.size else 0
        # When the last entry was written, by the clock; this writer has not written one.
        self._written = float("-inf")

    @property
    def fd(self) -> int:
        """The file."""
        return self._fd

    def _cut_torn_line(self) -> None:
        """Take back a line whose writer was killed in the middle of it."""
        start = self.size
        while start:
            step = min(start, 65536)
            start -= step
            newline = os.pread(self._fd, step, start).rfind(b"\n")
            if newline >= 0:
                start += newline + 1
                break
        if start != self.size:
            quarantine(self._path, os.pread(self._fd, self.size - start, start))
            os.ftruncate(self._fd, start)
            self.size = start

    def _last_line(self) -> bytes:
        """The last line, whatever is in it, without its line feed; b"" when there is none."""
        span = LAST_BYTES
        while True:
            begin = max(0, self.size - span)
            _, found, line = os.pread(self._fd, self.size - begin, begin)[:-1].rpartition(b"\n")
            if found or not begin:
                return line
            span *= 8

    def tail(self, span: int = TAIL_BYTES) -> list[dict[str, Any]]:
        """The last entries (all within the last `span` bytes, at least the very last), oldest first."""
        while True:
            span = min(span, self.size)
            raw = os.pread(self._fd, span, self.size - span)
            whole = span == self.size
            entries = []
            for line in (raw if whole else raw.partition(b"\n")[2]).split(b"\n"):
                entry = entry_of(line)
                if entry is not None and isinstance(entry.get("ts"), int) and "kind" in entry:
                    entries.append(entry)
            if entries or whole:
                return entries
            span *= 8

    def write(self, offset: int, kind: str, fields: dict[str, Any] | None = None, ts: int | None = None) -> None:
        """Append one entry; `ts` is when it happened if that was not just now."""
        ts = self._now() if ts is None else max(ts, self.ts)
        entry = {"offset": offset, "ts": ts, "kind": kind}
        if fields:
            entry.update(fields)
        self._append(offset, _encode_json(entry).encode("utf-8", "replace"))
        self.ts = ts

    def tick(self, offset: int) -> None:
        """Say that the bytes from `offset` on come now or later, unless the last entry is fresh enough to say so."""
        if self._clock() - self._written > TICK_SECONDS:
            ts = self._now()
            self._append(offset, b'{"offset":%d,"ts":%d,"kind":"tick"}' % (offset, ts))
            self.ts = ts

    def _now(self) -> int:
        """The time, or that of the last entry if the clock has been set back."""
        now = time.time_ns() // 1_000_000
        return max(self.ts, now)

    def vouches_for(self, offset: int) -> bool:
        """Whether the last entry stands at the end of the stream, and so vouches for all of it."""
        return self._covered == offset

    def _append(self, offset: int, record: bytes) -> None:
        written = 0
        try:
            grown = self._covered is not None and offset > self._covered
            digest = digest_of(self._pieces(self._covered or 0, offset)) if grown else None
            line = linked(record, self._link, digest)
            if is_removed(self._fd) and self._home.is_ours():
                fd = _restored(self._fd, self._path)
                os.close(self._fd)
                self._fd, self.restored = fd, True
                lock(fd)
            while written < len(line):
                written += os.pwrite(self._fd, line[written:], self.size + written)
        except OSError as error:
            if written:
                os.ftruncate(self._fd, self.size)
            raise StorageFailed(error, self._path) from error
        self.size += len(line)
        self._link, self._covered = link_of(line[:-1]), offset
        self._written = self._clock()

    def close(self) -> None:
        os.close(self._fd)
