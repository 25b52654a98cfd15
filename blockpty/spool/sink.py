"""Sink for derived files: the only place that opens them for writing.

Rules of this file: everything is written at a known place, so that a second writing of the same puts the same bytes
where they are already. After a crash the journals are followed from the place that a checkpoint vouches for: what
stands there is compared, and only what is not as it must be is written again. When all has been derived, what is left
behind the end is torn or was derived from bytes that are lost; it is set aside and cut.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from zlib import crc32

from blockpty.errors import StorageFull
from blockpty.files.opening import is_removed
from blockpty.files.sync import QUARANTINE_BYTES, quarantine
from blockpty.spool.compare import foreign
from blockpty.spool.layout import Layout, make_private
from blockpty.spool.line_reader import iterate_lines
from blockpty.spool.storage import full_is_an_error, open_directory, open_file, read_file, refused, restored

# Output files that are finished and wait, open, to be synced together: beside the event loop, or at once.
FINISHED: Final = 16
_FINISHED: Final = 64
# Finished output files that a checkpoint vouches for: those that a loss of power may have reached.
_VOUCHED: Final = 16
_PIECE: Final = 1024 * 1024


class FileWatermark(NamedTuple):
    """A place in a file: its first `size` bytes, those before `base` left out, have this CRC-32.

    `last` is the number of the last line (journals).
    """

    size: int = 0
    crc: int = 0
    last: int = -1
    base: int = 0

    @classmethod
    def of(cls, record: Sequence[Any]) -> Self:
        """Read what a checkpoint says; raises TypeError or ValueError."""
        size, crc, last, *base = record
        return cls(int(size), int(crc), int(last), *(int(value) for value in base))

    def holds(self, path: Path, *, whole: bool, finished: bool = False) -> bool:
        """Whether a file reaches that far, `finished`: and no farther, and with `whole` has these bytes.

        A missing file has none.
        """
        try:
            descriptor = open_file(path)
        except FileNotFoundError:
            return self.size == 0
        try:
            size = os.fstat(descriptor).st_size
            if size < self.size or (finished and size > self.size):
                return False
            crc, at = 0, self.base
            while whole and at < self.size:
                piece = os.pread(descriptor, min(_PIECE, self.size - at), at)
                crc, at = crc32(piece, crc), at + len(piece)
            return not whole or crc == self.crc
        finally:
            os.close(descriptor)


class Lines:
    """One journal."""

    def __init__(self, path: Path, mark: FileWatermark) -> None:
        self._path = path
        self._name = path.name
        self.mark = mark
        # Whether something was written since the last sync.
        self.unsynced = False
        self.descriptor = open_file(path, os.O_CREAT | os.O_RDWR)
        self._end = os.fstat(self.descriptor).st_size

    def __del__(self) -> None:
        # One that was dropped without being closed.
        if hasattr(self, "descriptor"):
            self.close()

    def close(self) -> None:
        """Close the file."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def write(self, lines: Sequence[tuple[int, bytes]]) -> int:
        """Have these lines in the file, all or none of them; return how many bytes may not be durable."""
        fresh = b"".join([line for number, line in lines if number > self.mark.last])
        if not fresh:
            return 0
        place = self.mark.size
        found = os.pread(self.descriptor, len(fresh), place) if place < self._end else b""
        # What is there already was written by an engine that may have been killed before it was durable.
        self.unsynced = True
        if found != fresh:
            self._put(fresh, found)
        self._end = max(self._end, place + len(fresh))
        self.mark = FileWatermark(place + len(fresh), crc32(fresh, self.mark.crc), lines[-1][0], self.mark.base)
        return len(fresh)

    def _put(self, fresh: bytes, found: bytes) -> None:
        place = self.mark.size
        if found:
            with full_is_an_error(self._name):
                if len(found) == len(fresh) and found.endswith(b"\n"):
                    # Damage inside lines: those behind it stay where they are.
                    quarantine(self._path, found[:QUARANTINE_BYTES])
                elif not fresh.startswith(found):
                    self._cut(place)
        before = self._end
        try:
            write_all(self.descriptor, fresh, place, self._name)
        except StorageFull:
            if before <= place:
                # Half a line would be taken for damage.
                os.ftruncate(self.descriptor, place)
            raise

    def settle(self) -> None:
        """Everything that follows from the record has been written: what stands behind it is set aside and cut."""
        if self._end > self.mark.size:
            with full_is_an_error(self._name):
                self._cut(self.mark.size)

    def _cut(self, place: int) -> None:
        if rest := os.pread(self.descriptor, QUARANTINE_BYTES, place):
            quarantine(self._path, rest)
        os.ftruncate(self.descriptor, place)
        self._end = place


class FileSink:
    """Writes derived files; what is there already is compared and left alone.

    Attributes:
        events, blocks: the journals.
        unsynced: bytes written since `sync`.
        made_again: whether what had been removed was made again, since it was last asked.
        removed: set it to have the next write check whether files or their directories were removed.
    """

    def __init__(
        self, layout: Layout, *, syncs: bool = False, marks: Mapping[str, Any] | None = None,
        first_block: int | None = None, check: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.unsynced = 0
        self.made_again = False
        self.removed = False
        self._check = check
        # The directory of the outputs; below 0 while it is to be opened.
        self._outputs = -1
        # After a start that was not in order, what a record left that is lost now may lie among the outputs.
        self._first_block = first_block
        self._syncs = syncs
        self._finished: list[int] = []
        self._layout = layout
        self._directory = str(layout.directory)
        # What a conversation is known by; written again when it was removed.
        self._meta = read_file(layout.meta) if layout.meta.exists() else b""
        self._open_name = ""
        self._open_descriptor = -1
        self._open_mark = FileWatermark()
        self._outs: dict[str, FileWatermark] = {}
        at = _marks(marks)
        self._outs = at.outs
        if at.open is not None:
            self._open_name, self._open_mark = at.open
        self.events = Lines(layout.events, at.events)
        try:
            self.blocks = Lines(layout.blocks, at.blocks)
        except BaseException:
            self.events.close()
            raise

    def out(self, name: str, position: int, data: bytes) -> None:
        """Write bytes of a `.out` file; the same bytes may be written twice."""
        if self.removed:
            self._keep()
        if name != self._open_name or self._open_descriptor < 0:
            if self._outputs < 0:
                self._outputs = open_directory(self._layout.outputs)
            descriptor = open_file(f"{self._directory}/{name}", os.O_CREAT | os.O_RDWR, directory=self._outputs)
            self._close_out()
            if name != self._open_name:
                self._open_name, self._open_mark = name, FileWatermark()
            self._open_descriptor = descriptor
        if data:
            write_all(self._open_descriptor, data, position, name)
            self.unsynced += len(data)
            if position == self._open_mark.size:
                crc = crc32(data, self._open_mark.crc)
                self._open_mark = self._open_mark._replace(size=position + len(data), crc=crc)

    def out_end(self, name: str, size: int) -> None:
        """Cut what a torn earlier attempt may have left behind the end."""
        self._keep()
        self.out(name, size, b"")
        try:
            os.ftruncate(self._open_descriptor, size)
        except OSError as problem:
            raise refused(name, problem) from None
        if self._open_mark.size == size:
            self._outs[name] = self._open_mark
            if len(self._outs) > _VOUCHED:
                del self._outs[next(iter(self._outs))]
        self._close_out()
        self._open_name = ""

    def lines(self, events: list[tuple[int, bytes]], blocks: list[tuple[int, bytes]]) -> None:
        """Have lines in the journals; those that were given before are passed over."""
        self._keep()
        self.unsynced += self.events.write(events)
        self.unsynced += self.blocks.write(blocks)

    def _keep(self) -> None:
        """Make what was removed meanwhile again, as far as it is open here: the journals, the open block's output."""
        # One of them stands for the whole directory; which single files are missing is checked when asked.
        if not self.removed and not is_removed(self.events.descriptor):
            return
        self.removed = False
        self._close_outputs()
        if not is_removed(self.events.descriptor) and not is_removed(self.blocks.descriptor):
            return
        # Another record may lie there by now: nothing of this one may be made in it.
        self._check()
        self.made_again = True
        make_private(self._layout.directory)
        make_private(self._layout.outputs)
        for lines, path in ((self.events, self._layout.events), (self.blocks, self._layout.blocks)):
            lines.descriptor = restored(lines.descriptor, path)
        if self._open_descriptor >= 0:
            self._open_descriptor = restored(self._open_descriptor, self._layout.directory / self._open_name)
        if self._meta and not os.path.lexists(self._layout.meta):
            descriptor = open_file(self._layout.meta, os.O_CREAT | os.O_WRONLY)
            with full_is_an_error("meta.json"), open(descriptor, "wb") as file:
                file.write(self._meta)

    def settle(self) -> None:
        """Everything that follows from the record has been given; raises StorageFull."""
        if self._open_name:
            self.out(self._open_name, self._open_mark.size, b"")
            if os.fstat(self._open_descriptor).st_size > self._open_mark.size:
                with full_is_an_error(self._open_name):
                    os.ftruncate(self._open_descriptor, self._open_mark.size)
        self.events.settle()
        self.blocks.settle()
        if self._first_block is not None:
            known = {str(line.get("out_path")).rpartition("/")[2] for line in iterate_lines(self._layout.blocks)}
            known.add(self._open_name.rpartition("/")[2])
            with full_is_an_error("blocks"):
                for name in foreign(os.listdir(self._layout.outputs), known, self._first_block):
                    os.replace(self._layout.outputs / name, self._layout.outputs / f"{name}.torn")
            self._first_block = None

    def sync(self) -> None:
        """Make everything that was written durable; what was finished since is kept open for that."""
        if self.unsynced:
            for descriptor in self._written():
                os.fdatasync(descriptor)
            self._synced()
        self._close_finished()

    def unsynced_files(self) -> list[int]:
        """Return descriptors, of the caller's own, of all that `sync` would sync: to do that beside the loop.

        It counts as durable from now on; a caller whose sync fails says so by `doubt`.
        """
        found = []
        if self.unsynced:
            found = [os.dup(descriptor) for descriptor in self._written()]
            self._synced()
        self._close_finished()
        return found

    @property
    def crowded(self) -> bool:
        """Whether so many finished files wait to be synced that it should be done soon."""
        return len(self._finished) >= FINISHED

    def doubt(self, count: int) -> None:
        """So many bytes that count as durable may not be."""
        self.unsynced += count
        self.events.unsynced = self.blocks.unsynced = True

    def _written(self) -> list[int]:
        """Return the files that have something to sync: a sync of any other waits for the disk all the same."""
        journals = [lines.descriptor for lines in (self.events, self.blocks) if lines.unsynced]
        return [*self._finished, *((self._open_descriptor,) if self._open_descriptor >= 0 else ()), *journals]

    def _synced(self) -> None:
        self.unsynced = 0
        self.events.unsynced = self.blocks.unsynced = False

    def marks(self) -> dict[str, Any]:
        """Return what a checkpoint vouches for, JSON-compatible; `FileSink` and `hold` take it."""
        return {
            "events": [*self.events.mark],
            "blocks": [*self.blocks.mark],
            "open": [self._open_name, *self._open_mark] if self._open_name else None,
            "outs": [[name, *mark] for name, mark in self._outs.items()],
        }

    def rebase(self, first_block: int) -> None:
        """Vouch for nothing that is written by now, since its beginning will be given back, nor for older blocks."""
        for lines in (self.events, self.blocks):
            lines.mark = lines.mark._replace(crc=0, base=lines.mark.size)
        self._open_mark = self._open_mark._replace(crc=0, base=self._open_mark.size)
        for name in list(self._outs):
            if int(name.rpartition("/")[2].partition("_")[0]) < first_block:
                del self._outs[name]

    def sizes(self) -> tuple[int, int]:
        """Return how far events.jsonl and blocks.jsonl have been written."""
        return self.events.mark.size, self.blocks.mark.size

    def close(self) -> None:
        """Close the files."""
        self._close_out()
        self._close_outputs()
        self._close_finished()
        self.events.close()
        self.blocks.close()

    def _close_finished(self) -> None:
        while self._finished:
            os.close(self._finished.pop())

    def _close_outputs(self) -> None:
        if self._outputs >= 0:
            os.close(self._outputs)
            self._outputs = -1

    def _close_out(self) -> None:
        if self._open_descriptor >= 0:
            self._finished.append(self._open_descriptor)
            self._open_descriptor = -1
            if not self._open_mark.size:
                # Nothing was written: a missing file means the same.
                os.close(self._finished.pop())
            elif not self._syncs:
                self._close_finished()
            elif len(self._finished) > _FINISHED:
                oldest = self._finished.pop(0)
                os.fdatasync(oldest)
                os.close(oldest)


class _Marks(NamedTuple):
    events: FileWatermark
    blocks: FileWatermark
    open: tuple[str, FileWatermark] | None
    outs: dict[str, FileWatermark]


def _marks(record: Mapping[str, Any] | None) -> _Marks:
    if record is None:
        return _Marks(FileWatermark(), FileWatermark(), None, {})
    opened = record["open"]
    return _Marks(
        FileWatermark.of(record["events"]),
        FileWatermark.of(record["blocks"]),
        (str(opened[0]), FileWatermark.of(opened[1:])) if opened is not None else None,
        {str(name): FileWatermark.of(mark) for name, *mark in record["outs"]},
    )


def hold(layout: Layout, record: Mapping[str, Any], *, whole: bool) -> bool:
    """Whether the derived files are at least as long as a checkpoint says, and with `whole` have those bytes.

    The output of a block that has ended is exactly as long.

    Raises KeyError, TypeError or ValueError for what is no record of `FileSink.marks`.
    """
    marks = _marks(record)
    growing = [(layout.events, marks.events), (layout.blocks, marks.blocks)]
    if marks.open is not None:
        growing.append((layout.directory / marks.open[0], marks.open[1]))
    return all(mark.holds(path, whole=whole) for path, mark in growing) and all(
        mark.holds(layout.directory / name, whole=whole, finished=True)
        for name, mark in marks.outs.items()
        if marks.open is None or name != marks.open[0]
    )


def write_all(descriptor: int, data: bytes, position: int, name: str) -> None:
    """Write all of it at a position; raises StorageFull naming the file."""
    try:
        written = os.pwrite(descriptor, data, position)
        while written < len(data):
            # Mostly all of it was.
            written += os.pwrite(descriptor, memoryview(data)[written:], position + written)
    except OSError as problem:
        raise refused(name, problem) from None
