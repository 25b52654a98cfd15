"""Reader of the stream: contiguous segments named by the offset they begin at, appended to by the recorder only."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from blockpty.errors import SpoolError
from blockpty.files.opening import Rarely
from blockpty.files.segments import segment_name, segment_offsets
from blockpty.spool import archived
from blockpty.spool.log_start import BEGINNING, load_log_start
from blockpty.spool.storage import open_file, open_restored
from blockpty.spool.timeline import TimelineReader

SEGMENT_BYTES: Final = 256 * 1024 * 1024
_MIB: Final = 1024 * 1024
# Of a terminal that changes its size again and again.
_MOST_SIZES: Final = 4


class StreamReader:
    """Random access to a stream that may be growing; keeps the segments it has read from open until `close`."""

    def __init__(self, directory: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._directory = str(directory)
        self._conversation = Path(directory).parent
        self._segment_bytes = segment_bytes
        self._segments: list[tuple[int, int]] = []
        # Bytes in the newest segment, as of the last look.
        self._newest = 0
        self._elsewhere = Rarely()
        self._beginning = str(self._conversation / BEGINNING)
        self._shown: tuple[tuple[int, ...], int] = ((), 0)
        # How far the timeline was read for the sizes of the terminal.
        self._sizes_up_to = 0
        self._columns: dict[int, None] = {}

    @property
    def begin(self) -> int:
        """First offset that can still be read: of what is kept, and shown. Raises SpoolCorrupt."""
        # Asked before each read that is redacted: it checks no more than whether something was removed.
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
            seen = ()  # reading it raises what is wrong
        if not seen or seen != self._shown[0]:
            # One that has come since the look is read again the next time.
            beginning = load_log_start(self._conversation)
            self._shown = (seen, 0 if beginning is None else beginning.readable)
        return self._shown[1]

    def columns(self) -> list[int]:
        """Return how many columns the terminal has had, as far as that is known."""
        with contextlib.suppress(OSError, SpoolError):
            timeline = TimelineReader(self._conversation / "timeline.jsonl", self._sizes_up_to, holding=b'"cols":')
            try:
                found = [entry.fields.get("cols") for entry, _ in timeline.read_new()]
                self._sizes_up_to = timeline.position
            finally:
                timeline.close()
            self._columns.update(dict.fromkeys(one for one in found if isinstance(one, int) and one > 0))
        return list(self._columns)[-_MOST_SIZES:]

    def size(self) -> int:
        """Return the offset after the last byte that is in the files now, or in the archive."""
        if self._segments:
            self._discover()
        else:
            # Opened before the archive is asked, so that nothing is fetched that is moved there meanwhile.
            self._open_all()
            if (end := archived.end_of(self._directory)) is not None:
                self.close()
                return end
        return self._segments[-1][0] + self._newest if self._segments else 0

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
            return False  # closed meanwhile by its user

    def sync(self) -> None:
        """Make the newest segment durable (the writer has done that for those before it)."""
        self._discover()
        if self._segments:
            os.fdatasync(self._segments[-1][1])

    def __del__(self) -> None:
        # A reader that was dropped without being closed.
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
            self._open_all()
            while archived.fetch(self._directory):
                self.close()
                self._open_all()
            return bool(self._segments)
        while len(self._segments) > 1 and self._is_dropped(self._segments[0][1], self._segments[1][0]):
            os.close(self._segments.pop(0)[1])
        while True:
            base, descriptor = self._segments[-1]
            found_now = os.fstat(descriptor)
            size = self._newest = found_now.st_size
            if not found_now.st_nlink:
                # It was removed. Its writer makes it again, with all that was in it.
                fresh = open_restored(descriptor, f"{self._directory}/{segment_name(base)}", size)
                if fresh is None:
                    if not self._is_dropped(descriptor, base + size) or not self._later(base):
                        return found
                    found = True
                    continue
                os.close(descriptor)
                self._segments[-1], self._newest, found = (base, fresh), os.fstat(fresh).st_size, True
                continue
            # Asking for the next segment costs more than everything else here, so only a full one is asked after.
            full = min(
                self._segment_bytes, base - self._segments[-2][0] if len(self._segments) > 1 else self._segment_bytes
            )
            # A writer's segments may be shorter: whole mebibytes.
            # Those of a writer whose length was changed lie anywhere: asked after now and then.
            asks = size >= full or not size % _MIB or self._elsewhere.due()
            if not size or not asks or not self._open(base + size):
                return found
            found = True

    def _open_all(self) -> None:
        """Open the segments that are here; what is moved to the archive after that can still be read from them."""
        with contextlib.suppress(FileNotFoundError):
            for base in self._bases():
                self._open(base)
        if self._segments:
            self._newest = os.fstat(self._segments[-1][1]).st_size

    def _bases(self) -> list[int]:
        return segment_offsets(self._directory)

    def _is_dropped(self, descriptor: int, end: int) -> bool:
        """Whether a segment is not kept any more; it takes space as long as a process has it open."""
        if os.fstat(descriptor).st_nlink:
            return False
        beginning = load_log_start(self._conversation)
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
