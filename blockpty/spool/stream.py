"""Reading the stream: contiguous segments named by the offset they begin at, appended to by the recorder only."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from blockpty.spool import archived
from blockpty.spool.beginning import BEGINNING, load_beginning
from blockpty.spool.opening import open_file, opened_again

NAME_DIGITS: Final = 20
SEGMENT_BYTES: Final = 256 * 1024 * 1024
_MIB: Final = 1024 * 1024


def segment_name(offset: int) -> str:
    """Return the file name of the segment that begins at an offset."""
    return f"{offset:0{NAME_DIGITS}d}"


class StreamReader:
    """Random access to a stream that may be growing; keeps the segments it has read from open until `close`."""

    def __init__(self, directory: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._directory = str(directory)
        self._conversation = Path(directory).parent
        self._segment_bytes = segment_bytes
        self._segments: list[tuple[int, int]] = []
        self._before = -1
        self._beginning = str(self._conversation / BEGINNING)
        self._shown: tuple[tuple[int, ...], int] = ((), 0)

    @property
    def begin(self) -> int:
        """First offset that can still be read: of what is kept, and shown. Raises SpoolCorrupt."""
        # Asked before each read that is covered: no more is looked at than what tells whether something was removed.
        if not self._segments or not os.fstat(self._segments[0][1]).st_nlink:
            self._discover()
        first = self._segments[0][0] if self._segments else 0
        return max(first, self._readable())

    def _readable(self) -> int:
        """Return where what is shown begins; the file that says it is read again when it is another one."""
        try:
            found = os.lstat(self._beginning)
            seen: tuple[int, ...] = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
        except FileNotFoundError:
            return 0
        except OSError:
            seen = ()  # reading it tells what is wrong
        if not seen or seen != self._shown[0]:
            # One that has come since the look is read again the next time.
            beginning = load_beginning(self._conversation)
            self._shown = (seen, 0 if beginning is None else beginning.readable)
        return self._shown[1]

    def size(self) -> int:
        """Return the offset after the last byte that is in the files now, or in the archive."""
        if not self._segments and (end := archived.end_of(self._directory)) is not None:
            return end
        self._discover()
        if not self._segments:
            return 0
        base, descriptor = self._segments[-1]
        return base + os.fstat(descriptor).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`; fewer only at the end of the stream."""
        if self._segments and offset >= self._segments[-1][0]:
            # Nearly always all of it is in the newest segment.
            data = os.pread(self._segments[-1][1], length, offset - self._segments[-1][0])
            if len(data) == length:
                return data
        pieces: list[bytes] = []
        while length > 0:
            index = self._index(offset)
            if index is None:
                break
            base, descriptor = self._segments[index]
            end = self._segments[index + 1][0] if index + 1 < len(self._segments) else None
            wanted = length if end is None else min(length, end - offset)
            data = os.pread(descriptor, wanted, offset - base)
            if not data:
                if end is not None or not self._discover():
                    break
                continue
            pieces.append(data)
            offset, length = offset + len(data), length - len(data)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def unjoined(self) -> list[tuple[int, int]]:
        """Return where segments end other than where the next one begins: each end, and that beginning."""
        self.size()
        ends = [(base + os.fstat(descriptor).st_size) for base, descriptor in self._segments]
        return [(end, base) for end, (base, _) in zip(ends, self._segments[1:], strict=False) if end != base]

    def expect(self, spans: Iterable[tuple[int, int]]) -> None:
        """Have the system read these spans, all at once, as far as they are not in memory; nothing waits for it."""
        if not hasattr(os, "posix_fadvise"):
            return
        for begin, end in spans:
            index = self._index(begin)
            if index is not None:
                base, descriptor = self._segments[index]
                os.posix_fadvise(descriptor, begin - base, end - begin, os.POSIX_FADV_WILLNEED)

    def holds_removed(self) -> bool:
        """Whether the oldest segment that is open was removed."""
        try:
            return bool(self._segments) and not os.fstat(self._segments[0][1]).st_nlink
        except (OSError, IndexError):
            return False  # closed meanwhile by whoever uses it

    def force(self) -> None:
        """Have what is in the newest segment on the medium (those before it are: the writer sees to that)."""
        self._discover()
        if self._segments:
            os.fdatasync(self._segments[-1][1])

    def __del__(self) -> None:
        # Whoever let go of it without closing it.
        if hasattr(self, "_segments"):
            self.close()

    def close(self) -> None:
        """Close the files; the reader can be used again."""
        for _, descriptor in self._segments:
            os.close(descriptor)
        self._segments.clear()

    def _index(self, offset: int) -> int | None:
        if not self._segments and not self._discover():
            return None
        for index in range(len(self._segments) - 1, -1, -1):
            if self._segments[index][0] <= offset:
                return index
        return None

    def _discover(self) -> bool:
        """Open segments that have appeared since; return whether there were any."""
        found = False
        if not self._segments:
            try:
                bases = self._bases()
            except FileNotFoundError:
                return False
            if archived.fetch(self._directory):
                return self._discover()
            for base in bases:
                found = self._open(base) or found
            return found
        while len(self._segments) > 1 and self._is_dropped(self._segments[0][1], self._segments[1][0]):
            os.close(self._segments.pop(0)[1])
        while True:
            base, descriptor = self._segments[-1]
            found_now = os.fstat(descriptor)
            size = found_now.st_size
            if not found_now.st_nlink:
                # It was removed. Whoever writes it makes it again, with all that was in it.
                fresh = opened_again(descriptor, f"{self._directory}/{segment_name(base)}", size)
                if fresh is None:
                    if not self._is_dropped(descriptor, base + size) or not self._later(base):
                        return found
                    found = True
                    continue
                os.close(descriptor)
                self._segments[-1], found = (base, fresh), True
                continue
            # Asking for the next segment costs more than everything else here, so only a full one is asked after.
            full = min(
                self._segment_bytes, base - self._segments[-2][0] if len(self._segments) > 1 else self._segment_bytes
            )
            # A writer's segments may be shorter: whole mebibytes, or what they had when their length was changed.
            rests, self._before = size == self._before, size
            asks = size >= full or rests or not size % _MIB
            if not size or not asks or not self._open(base + size):
                return found
            found = True

    def _bases(self) -> list[int]:
        return sorted(int(name) for name in os.listdir(self._directory) if name.isdigit() and len(name) == NAME_DIGITS)

    def _is_dropped(self, descriptor: int, end: int) -> bool:
        """Whether a segment is not kept any more; it takes space as long as somebody has it open."""
        if os.fstat(descriptor).st_nlink:
            return False
        beginning = load_beginning(self._conversation)
        return beginning is not None and end <= beginning.needed

    def _later(self, base: int) -> bool:
        """Go on behind the newest segment that was known."""
        with contextlib.suppress(FileNotFoundError):
            known = len(self._segments)
            for later in self._bases():
                if later > base:
                    self._open(later)
            if len(self._segments) > known:
                os.close(self._segments.pop(known - 1)[1])
                return True
        return False

    def _open(self, base: int) -> bool:
        try:
            descriptor = open_file(f"{self._directory}/{segment_name(base)}")
        except FileNotFoundError:
            return False
        self._segments.append((base, descriptor))
        return True
