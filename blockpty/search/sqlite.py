"""The index of one home in SQLite: a catalogue of conversations and blocks, and segments of time.

Rules of this file: SQLite and nothing else. A segment holds the chunks of the blocks that began in its span of time:
where they lie and which four bytes in a row they hold, but not their text and not where in it.

A batch is committed to its segments before the catalogue says so; what a crash leaves between the two is met again and
recognised. Files that are damaged or of another version are removed, and the index begins anew.

SQLite names the journal of a database by its path, and two processes that make one database at once each make all of
it. An engine that opens or closes a file here, or takes the directory away, therefore has it locked meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from blockpty.errors import BadRequest
from blockpty.model.block import Block
from blockpty.search.index import Candidate, ChunkKey, IndexEntry, IndexUnavailable, IndexWatermark, Page, Positions
from blockpty.search.overview import BLOCK_FIELDS, Asked, Overview, overview, packed
from blockpty.search.planner import Plan
from blockpty.search.sqlite_reading import Reading, unchanged
from blockpty.search.sqlite_segment import add_chunks, close_parts
from blockpty.spool.layout import make_private

# What is written depends on the machine's order of bytes, and on the fields of a block.
VERSION: Final = f"6 {sys.byteorder} {' '.join(BLOCK_FIELDS)}"
# Raw bytes of the chunks in a segment, after which the next one is begun.
SEGMENT_BYTES: Final = 256 * 1024 * 1024
_BUSY_SECONDS: Final = 5.0
# How often a directory is opened that another engine takes away meanwhile.
_OPENINGS: Final = 8
# `flock` waits without a limit or not at all.
_LOOK_AGAIN_SECONDS: Final = 0.002
_PAGE_BYTES: Final = 16 * 1024

P = ParamSpec("P")
T = TypeVar("T")


def supported() -> bool:
    """Whether this SQLite has what the index needs (tables made of JSON)."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("SELECT value FROM json_each('[1]')")
        except sqlite3.Error:
            return False
    return True


class SqliteIndex:
    """An index in a directory, which others may read, and one may write, at the same time."""

    page = 16
    # A quarter of it would be packed once more. For each byte of it 4.5 are taken meanwhile.
    batch_bytes = 16 * 1024 * 1024

    def __init__(self, directory: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._lock = threading.Lock()
        self._catalogue: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        # Of the directory that holds it, also when that has no name any more.
        self._descriptor = -1
        self._segments: dict[int, sqlite3.Connection] = {}
        self._generation = ""
        # The generation that `positions` returned last: what is added is meant for no other.
        self._asked_generation = ""
        self._known: tuple[int, Positions] | None = None

    # The interface

    def add(self, entries: Sequence[IndexEntry], positions: Mapping[str, IndexWatermark]) -> None:
        """Take blocks and chunks, and with them how far their conversations are indexed."""
        with self._lock:
            self._attempt(lambda: self._add(entries, positions))

    def positions(self) -> Positions:
        """Return how far every conversation is indexed."""
        with self._lock:
            return self._attempt(self._positions)

    def candidates(self, plan: Plan, below: ChunkKey | None, limit: int, timeout_seconds: float) -> Page:
        """Return chunks that may match, the greatest keys first, all below the given one."""
        with self._lock:
            try:
                return self._candidates(plan, below, limit, time.monotonic() + timeout_seconds)
            except (sqlite3.Error, OSError) as problem:
                if isinstance(problem, sqlite3.OperationalError):
                    self._close()
                else:
                    self._remove()
                raise IndexUnavailable(str(problem)) from None

    def overview(self, asked: Asked) -> Overview:
        """Return what there is to see, as far as it is indexed."""
        with self._lock:
            return self._attempt(lambda: overview(self._opened(), asked))

    def forget(self, conversation_id: str) -> None:
        """Drop a conversation; its chunks stay where they are and are named no more."""
        with self._lock:
            self._attempt(lambda: self._forget(conversation_id))

    def drop(self) -> None:
        """Drop everything and begin anew."""
        with self._lock:
            self._remove()

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._close()

    # Files

    def _attempt(self, action: Callable[[], T]) -> T:
        """Do something with the files; where they are damaged, do it again with new ones."""
        for attempt in (1, 2):
            try:
                self._open()
                return action()
            except sqlite3.OperationalError as problem:
                # Locked, full, read-only: nothing is wrong with what is there.
                self._close()
                if attempt == 1 and "disk I/O error" in str(problem):
                    continue  # so it says as well where another process has just replaced the files
                if "no such table" not in str(problem):
                    raise IndexUnavailable(str(problem)) from None
                self._remove()
            except (sqlite3.Error, OSError) as problem:
                self._close()
                if attempt == 2:
                    raise IndexUnavailable(str(problem)) from None
                self._remove()
        raise IndexUnavailable("the index cannot be opened")

    def _open(self) -> None:
        path = self._directory / "catalogue.sqlite"
        if self._catalogue is not None:
            if _identity(path) == self._file:
                return
            # Another engine has removed it; what is open has no name any more.
            self._close()
        for _ in range(_OPENINGS):
            try:
                # A home that was moved or removed is not made again: another may come to lie there.
                make_private(self._directory, parents=False)
            except BadRequest as problem:
                raise IndexUnavailable(problem.message) from None
            self._clear_removed()
            try:
                self._descriptor = _open_directory(self._directory)
            except FileNotFoundError:
                continue
            try:
                with _locked(self._descriptor):
                    if _identity(self._directory) == _identity(self._descriptor):
                        self._catalogue, self._generation = self._connected(path)
                        self._file = _identity(path)
                        return
            finally:
                if self._catalogue is None:
                    self._close()
        raise IndexUnavailable("the index is made anew again and again")

    def _connected(self, path: Path) -> tuple[sqlite3.Connection, str]:
        """Open a catalogue, making it where there is none; return it and its generation."""
        database = _connect(path, "sqlite_catalogue.sql")
        try:
            row = database.execute("SELECT version, generation FROM about").fetchone()
            if row is None:
                row = (VERSION, secrets.token_hex(8))
                database.execute("INSERT INTO about VALUES (?, ?)", row)
            if row[0] != VERSION:
                raise sqlite3.DatabaseError(f"the index has version {row[0]}")
        except BaseException:
            database.close()
            raise
        return database, str(row[1])

    def _opened(self) -> sqlite3.Connection:
        assert self._catalogue is not None  # _attempt has opened it
        return self._catalogue

    def _segment(self, begin: int, *, create: bool = False) -> sqlite3.Connection:
        database = self._segments.get(begin)
        if database is None:
            path, catalogue = self._directory / f"{begin:020d}.sqlite", self._directory / "catalogue.sqlite"
            with _locked(self._descriptor):
                if _identity(catalogue) != self._file:
                    raise IndexUnavailable("the index has begun anew")
                if not create and not path.exists():
                    raise sqlite3.DatabaseError(f"{path.name} has gone")
                database = _connect(path, "sqlite_segment.sql")
                try:
                    database.execute("ATTACH ? AS catalogue", (str(catalogue),))
                    # SQLite opens it at its first use.
                    database.execute("SELECT generation FROM catalogue.about").fetchone()
                except BaseException:
                    database.close()
                    raise
            self._segments[begin] = database
        return database

    def _close(self) -> None:
        if self._descriptor < 0:
            return
        databases = [one for one in (*self._segments.values(), self._catalogue) if one is not None]
        if databases:
            # Where an engine that has it does not go on, they are closed all the same.
            with contextlib.suppress(IndexUnavailable):
                _lock(self._descriptor)
        for database in databases:
            database.close()
        os.close(self._descriptor)  # which unlocks it
        self._segments.clear()
        self._catalogue = self._known = None
        self._descriptor = -1

    def _remove(self) -> None:
        """Remove the files, all at once: one by one, some would be those of a catalogue that was just made."""
        self._close()
        aside = self._directory.with_name(f"{self._directory.name}.{secrets.token_hex(4)}.removed")
        try:
            descriptor = _open_directory(self._directory)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise IndexUnavailable(str(problem)) from None
        try:
            _lock(descriptor)
            if _identity(self._directory) != _identity(descriptor):
                return  # another engine has just done so
            try:
                os.rename(self._directory, aside)
            except OSError:
                shutil.rmtree(self._directory, ignore_errors=True)  # a file system of its own, say
        finally:
            os.close(descriptor)
        self._clear_removed()

    def _clear_removed(self) -> None:
        """Delete what was taken away, also by an engine that was killed before it could."""
        for left in self._directory.parent.glob(f"{self._directory.name}.*.removed"):
            shutil.rmtree(left, ignore_errors=True)

    # Writing

    def _add(self, entries: Sequence[IndexEntry], positions: Mapping[str, IndexWatermark]) -> None:
        catalogue = self._catalogue
        assert catalogue is not None  # _attempt has opened it
        if self._asked_generation not in ("", self._generation):
            raise IndexUnavailable("the index has begun anew")
        with _transaction(catalogue):
            numbers = {name: self._number(catalogue, name) for name in {entry.conversation_id for entry in entries}}
        self._known = None
        sizes: dict[int, list[int]] = {}
        by_segment: dict[int, list[IndexEntry]] = {}
        segments = {begin: [size, last] for begin, size, last in catalogue.execute("SELECT * FROM segments")}
        for entry in sorted(entries, key=lambda entry: entry.block.ts_begin):
            begin = self._place(segments, entry.block.ts_begin)
            by_segment.setdefault(begin, []).append(entry)
            segments[begin][0] += sum(len(chunk.raw) for chunk in entry.chunks)
            segments[begin][1] = max(segments[begin][1], entry.block.ts_begin)
            sizes[begin] = segments[begin]
        before = [begin for (begin,) in catalogue.execute("SELECT begin FROM segments")]
        if before and max(segments) > max(before):
            last = self._segment(max(before))
            with _transaction(last):
                close_parts(last)
        for begin, some in by_segment.items():
            segment = self._segment(begin, create=True)
            with _transaction(segment):
                add_chunks(segment, some, numbers)
        with _transaction(catalogue):
            catalogue.executemany(
                "INSERT OR REPLACE INTO segments VALUES (?, ?, ?)", [(begin, *value) for begin, value in sizes.items()]
            )
            catalogue.executemany(
                "REPLACE INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_block_row(numbers[entry.conversation_id], entry.block) for entry in entries],
            )
            for name, position in positions.items():
                number = self._number(catalogue, name)
                catalogue.execute(
                    "UPDATE conversations SET (lines, seq, settled, open_seq, open_number, open_cursor) ="
                    " (?, ?, ?, ?, ?, ?) WHERE number = ?",
                    (*position, number),
                )

    def _number(self, catalogue: sqlite3.Connection, name: str) -> int:
        row = catalogue.execute("SELECT number FROM conversations WHERE name = ?", (name,)).fetchone()
        if row is not None:
            return int(row[0])
        made = catalogue.execute(
            "INSERT INTO conversations (name, lines, seq, settled, open_seq, open_number, open_cursor)"
            " VALUES (?, 0, 0, -2, 0, 0, 0)",
            (name,),
        )
        return int(made.lastrowid or 0)

    def _place(self, segments: dict[int, list[int]], ts: int) -> int:
        """Return the segment of a time; the newest one makes way for another when it is large."""
        begin = max((begin for begin in segments if begin <= ts), default=-1)
        if begin < 0:
            begin = 0
            segments[begin] = [0, 0]
        size, last = segments[begin]
        if size >= self._segment_bytes and begin == max(segments) and ts > last:
            begin = ts
            segments[begin] = [0, ts]
        return begin

    def _forget(self, conversation_id: str) -> None:
        catalogue, self._known = self._catalogue, None
        assert catalogue is not None
        with _transaction(catalogue):
            row = catalogue.execute("SELECT number FROM conversations WHERE name = ?", (conversation_id,)).fetchone()
            if row is not None:
                catalogue.execute("DELETE FROM blocks WHERE conversation = ?", row)
                catalogue.execute("UPDATE conversations SET settled = -2 WHERE number = ?", row)

    # Reading

    def _positions(self) -> Positions:
        assert self._catalogue is not None
        (version,) = self._catalogue.execute("PRAGMA data_version").fetchone()
        if self._known is None or self._known[0] != version:
            rows = self._catalogue.execute(
                "SELECT name, lines, seq, settled, open_seq, open_number, open_cursor"
                " FROM conversations WHERE settled > -2"
            )
            positions = Positions(self._generation, {row[0]: IndexWatermark(*row[1:]) for row in rows})
            # Said by SQLite to be another one when another connection has written; our own writing forgets it.
            self._known = (version, positions)
        self._asked_generation = self._generation
        return self._known[1]

    def _candidates(self, plan: Plan, below: ChunkKey | None, limit: int, deadline: float) -> Page:
        if self._catalogue is None:
            raise IndexUnavailable("positions are asked for first")
        begins = [begin for (begin,) in self._catalogue.execute("SELECT begin FROM segments ORDER BY begin DESC")]
        found: list[Candidate] = []
        for begin in begins:
            if below is not None and begin > below.ts:
                continue
            segment = self._segment(begin)
            with unchanged(segment):
                held = plan.found.setdefault((self._generation, begin), {})
                reading = Reading(segment, plan, below, held, deadline)
                for candidate in reading.candidates():
                    if len(found) >= limit:
                        return Page(found, True, self._generation)
                    found.append(candidate)
                    if reading.late:
                        return Page(found, True, self._generation)
        return Page(found, False, self._generation)


def _identity(path: Path | int) -> tuple[int, int] | None:
    """Return device and inode of a file or a descriptor; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _open_directory(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _lock(descriptor: int) -> None:
    """Lock a directory; raises IndexUnavailable where another engine has it for too long."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise IndexUnavailable("another engine has locked the index") from None
            time.sleep(_LOOK_AGAIN_SECONDS)
        except OSError:
            return  # a file system that locks no directories
        else:
            return


@contextlib.contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Have no other engine open, close or remove what is in a directory."""
    _lock(descriptor)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _connect(path: Path, schema: str) -> sqlite3.Connection:
    """Open a database; a new one gets the tables of a file beside this one."""
    database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        os.chmod(path, 0o600)
        # Counts only where the file is made: fewer and fuller pages.
        database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        # A page that is not in memory is read alone, in half the time of what a mapping reads around it; and a file
        # that another process cuts short is an error, no signal.
        database.execute("PRAGMA mmap_size = 0")
        # What is removed is seldom a secret, and what is merged is no less readable afterwards.
        database.execute("PRAGMA secure_delete = FAST")
        # A row that is replaced counts as removed.
        database.execute("PRAGMA recursive_triggers = ON")
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            database.executescript(Path(__file__).with_name(schema).read_text("utf-8"))
    except BaseException:
        database.close()
        raise
    return database


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _block_row(conversation: int, block: Block) -> tuple[Any, ...]:
    return (
        conversation, block.seq, block.ts_begin, block.span[1] is None, block.exit_status, block.duration_ms,
        block.author, block.kind, block.cwd, packed(block),
    )  # fmt: skip
