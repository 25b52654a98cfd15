"""Audit log of a home: one line for each verdict, change of control, lifecycle call and use of a token elsewhere.

    <home>/audit.jsonl   append-only, 0600; each line is sealed and linked to the line before it, as in a timeline
    <home>/audit.head    size, number and link of the last line: a cut at the end is found by it

Rules of this file: it writes digests and sizes of what was typed or asked, never the text. Any number of processes may
append. Nothing waits for it and nothing fails because of it: what cannot be written now (a full disk, a lock that is
held) is kept in memory, up to PENDING_MOST entries, and written with the next entry that can be; what was dropped is
counted in an entry of the type `gap`. Who may write the files may also write both anew: keep the head that `verify`
returns somewhere else to notice that.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson
from msgspec import Struct, field

from blockpty.errors import SpoolError
from blockpty.files.lines import decode_line, link_of, linked, sealed
from blockpty.files.opening import is_removed, open_regular
from blockpty.spool.layout import make_private

FORMAT: Final = 1
AUDIT_NAME: Final = "audit.jsonl"
HEAD_NAME: Final = "audit.head"
PENDING_MOST: Final = 1000
"""Entries that are kept in memory while they cannot be written."""

_RESERVED: Final = frozenset({"format", "seq", "ts", "type", "principal", "conversation_id", "prev", "crc", "sum"})
_NO_LINK: Final = link_of(b"")
# One who appends holds the lock for some 20 us; a stopped process may hold it for long.
_LOCK_TRIES: Final = 20
_LOCK_PAUSE: Final = 0.0001
_FINDINGS_MOST: Final = 100
_LONGEST: Final = 1024 * 1024

Entry = dict[str, Any]


def digest_fields(content: str | bytes) -> dict[str, Any]:
    """Return what an entry says in place of a content: its SHA-256 and its size in bytes."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return {"sha256": sha256(data).hexdigest(), "size": len(data)}


class AuditFilter(Struct, frozen=True):
    """Which entries are asked for; None: any.

    Attributes:
        since, until: ms since 1970, both included.
        before: only entries with a smaller number.
    """

    conversation_id: str | None = None
    principal: str | None = None
    type: str | None = None
    since: int | None = None
    until: int | None = None
    before: int | None = None

    def admits(self, entry: Mapping[str, Any]) -> bool:
        """Whether an entry is asked for."""
        ts, seq = entry.get("ts", 0), entry.get("seq", 0)
        return (
            (self.conversation_id is None or entry.get("conversation_id") == self.conversation_id)
            and (self.principal is None or entry.get("principal") == self.principal)
            and (self.type is None or entry.get("type") == self.type)
            and (self.since is None or ts >= self.since)
            and (self.until is None or ts <= self.until)
            and (self.before is None or seq < self.before)
        )


class AuditFinding(Struct, frozen=True):
    """One place at which the log is not what was written; `line` counts from 1."""

    line: int
    message: str


class _Head(Struct, frozen=True):
    """Head of the log: its size, and number and link of the last line."""

    size: int = 0
    seq: int = 0
    link: str = _NO_LINK

    @classmethod
    def parse(cls, content: bytes) -> _Head | None:
        """Return the head that a file holds; None for one that is damaged."""
        record = decode_line(content.rstrip(b"\n"), orjson.loads)
        if record is None or not isinstance(record.get("link"), str):
            return None
        if type(record.get("size")) is not int or type(record.get("seq")) is not int:
            return None
        return cls(record["size"], record["seq"], record["link"])

    def render(self) -> bytes:
        # Always of one length, so that a shorter head leaves nothing of a longer one.
        return sealed(b'{"format":%d,"size":%20d,"seq":%20d,"link":"%s"}' % (
            FORMAT, self.size, self.seq, self.link.encode(),
        ))  # fmt: skip


class _Files(Struct):
    """The two open files, and the head as this process wrote it last."""

    log: int
    head: int
    known: _Head | None = None

    def close(self) -> None:
        os.close(self.log)
        os.close(self.head)


class AuditCheck(Struct):
    """Result of checking the whole log.

    Attributes:
        findings: the places at which the log is not what was written, at most 100.
        entries: how many lines were read.
        head: link of the last line; keep it elsewhere to know this log again.
    """

    findings: list[AuditFinding] = field(default_factory=list)
    entries: int = 0
    head: str | None = None

    def find(self, line: int, message: str) -> None:
        """Add a finding."""
        if len(self.findings) < _FINDINGS_MOST:
            self.findings.append(AuditFinding(line, message))

    def compare(self, line: int, entry: Entry, seq: int, link: str) -> None:
        """Compare a line with number and link of the line before it."""
        if entry.get("prev") != link:
            self.find(line, "is not the one that followed the line before it: changed, removed, added or moved")
        if entry["seq"] != seq + 1:
            self.find(line, f"has the number {entry['seq']}, the line before it {seq}")
        if entry.get("type") == "gap":
            self.find(line, f"says that {entry.get('dropped')} entries could not be written")
        elif entry.get("type") == "repaired" and entry.get("what") == "head":
            self.find(line, "says that audit.head was missing: what was cut before this line is not known")


class AuditLog:
    """The audit log of a home, for appending and reading; any thread may use it.

    Args:
        home: made when the first entry is written.
        clock: seconds since 1970.
    """

    def __init__(self, home: Path, clock: Callable[[], float] = time.time) -> None:
        self._home = home
        self._path = home / AUDIT_NAME
        self._head_path = home / HEAD_NAME
        self._clock = clock
        self._lock = threading.Lock()
        self._files: _Files | None = None
        self._made = False
        self._pending: list[Entry] = []
        self._dropped = 0
        self._headless = False
        self._closed = False

    def add(self, type: str, *, principal: str, conversation_id: str | None = None, **fields: Any) -> None:
        """Append an entry; it returns within a few ms whatever the disk does, and raises nothing for that.

        `fields`: plain data of the type's own; of a content only `digest_fields(content)`.
        """
        if taken := _RESERVED.intersection(fields):
            raise ValueError(f"fields of every entry: {', '.join(sorted(taken))}")
        entry = {
            "ts": int(self._clock() * 1000), "type": type, "principal": principal,
            "conversation_id": conversation_id, **fields,
        }  # fmt: skip
        with self._lock:
            if len(self._pending) < PENDING_MOST:
                self._pending.append(entry)
            else:
                self._dropped += 1
            self._write_pending()

    @property
    def waiting(self) -> tuple[int, int]:
        """How many entries of this process are not written yet, and how many were dropped since the last write."""
        return len(self._pending), self._dropped

    def flush(self) -> None:
        """Write what is kept in memory, if that is possible now."""
        with self._lock:
            self._write_pending()

    def close(self) -> None:
        """Write what is kept, and close the files; a later entry opens them for itself."""
        with self._lock:
            self._closed = True
            self._write_pending()
            self._close_files()

    def entries(self, asked: AuditFilter | None = None) -> Iterator[Entry]:
        """Return the entries, oldest first; damaged lines are left out (`verify` names them)."""
        asked = asked or AuditFilter()
        # Most lines of a long log are not looked into when one type is asked for.
        has = b'"type":%s' % _encode(asked.type) if asked.type is not None else b""
        for line in self._lines():
            if has not in line:
                continue
            entry = decode_line(line[:-1], orjson.loads) if line.endswith(b"\n") else None
            if entry is not None and asked.admits(entry):
                yield {name: value for name, value in entry.items() if name not in ("prev", "crc")}

    def verify(self) -> list[AuditFinding]:
        """Return where lines were changed, removed, added, moved or cut off."""
        return self.check().findings

    def check(self, pace: Callable[[], None] = lambda: None) -> AuditCheck:
        """Read the whole log and compare each line with its seal, its link and its number; raises OSError.

        `pace` is called for each line.
        """
        # The head first: lines that come meanwhile lie behind it.
        head = self._stored_head()
        found, seq, link, size = AuditCheck(), 0, _NO_LINK, 0
        at_head = _NO_LINK if head is not None and head.size == 0 else None
        for number, line in enumerate(self._lines(), 1):
            pace()
            if not line.endswith(b"\n"):
                found.find(number, "has no end: its writer was stopped; the next entry puts that right")
                break
            found.entries, size, line = number, size + len(line), line[:-1]
            entry = decode_line(line, orjson.loads)
            if entry is None or type(entry.get("seq")) is not int:
                found.find(number, "is damaged: its checksum does not fit")
            else:
                found.compare(number, entry, seq, link)
                seq = entry["seq"]
            link = link_of(line)
            if head is not None and size == head.size:
                at_head = link
        if head is None:
            if found.entries:
                found.find(found.entries, "may not be the last one: audit.head is missing or damaged")
        elif at_head is None and size < head.size:
            found.find(found.entries + 1, f"is missing: the log went on to number {head.seq} and was cut")
        elif at_head != head.link:
            found.find(found.entries, f"or one before it is not what was written up to number {head.seq}")
        found.head = link if found.entries else None
        return found

    # Writing

    def _write_pending(self) -> None:
        if self._pending or self._dropped:
            with contextlib.suppress(OSError, SpoolError):
                self._append()
            if self._closed:
                self._close_files()

    def _close_files(self) -> None:
        if self._files is not None:
            self._files.close()
            self._files = None

    def _append(self) -> None:
        files = self._opened()
        if not _locked(files.log):
            return
        try:
            size = os.fstat(files.log).st_size
            head = files.known
            if head is None or head.size != size:
                head = self._recover(files, size)
            lines, seq, link = self._render(head)
            try:
                if os.write(files.log, lines) != len(lines):
                    raise OSError(errno.ENOSPC, "only a part was written")
            except OSError:
                # A part of a line is no entry; the file ends where it ended.
                os.ftruncate(files.log, head.size)
                raise
            self._pending.clear()
            self._dropped = 0
            self._headless = False
            files.known = _Head(head.size + len(lines), seq, link)
            os.pwrite(files.head, files.known.render(), 0)
        finally:
            fcntl.flock(files.log, fcntl.LOCK_UN)

    def _render(self, head: _Head) -> tuple[bytes, int, str]:
        """Return the lines of what waits, and number and link of the last one."""
        entries = list(self._pending)
        if self._dropped:
            entries.append(self._own("gap", dropped=self._dropped))
        seq, link, lines = head.seq, head.link, []
        for entry in entries:
            seq += 1
            line = linked(_encode({"format": FORMAT, "seq": seq, **entry}), link, None)
            link = link_of(line[:-1])
            lines.append(line)
        return b"".join(lines), seq, link

    def _own(self, type: str, **fields: Any) -> Entry:
        now = int(self._clock() * 1000)
        return {"ts": now, "type": type, "principal": "engine", "conversation_id": None, **fields}

    def _opened(self) -> _Files:
        if self._files is not None:
            if not is_removed(self._files.log) and _is_at(self._files.log, self._path):
                return self._files
            self._close_files()
        if not self._made:
            # Only once: where a home was moved or removed, another may come to lie.
            make_private(self._home)
            self._made = True
        log = open_regular(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, ours=True)
        try:
            head = open_regular(self._head_path, os.O_RDWR | os.O_CREAT, ours=True)
        except BaseException:
            os.close(log)
            raise
        self._files = _Files(log, head)
        return self._files

    def _recover(self, files: _Files, size: int) -> _Head:
        """Return where to go on: another process has appended, a writer was killed, or the log was changed.

        After a cut, number and link go on from the head, so that the place stays visible in the chain.
        """
        stored = _Head.parse(os.pread(files.head, 4096, 0))
        if stored is None and not size:
            # Before the first line: a writer that is killed behind that one leaves no log that has lost its head.
            os.pwrite(files.head, _Head().render(), 0)
        elif stored is None and not self._headless:
            # What was cut before this cannot be known; said once, however often the write is tried.
            self._headless = True
            self._pending.insert(0, self._own("repaired", what="head"))
        if stored is None or stored.size < size:
            head = stored or _Head()
            begin, rest = head.size, _read_from(files.log, head.size)
        elif stored.size == size:
            return stored
        else:
            head = stored
            begin = max(0, size - _LONGEST)
            rest = _read_from(files.log, begin)
            # Only what is torn counts: the lines before it were written before the head.
            begin += rest.rfind(b"\n") + 1
            rest = rest[rest.rfind(b"\n") + 1 :]
        whole = rest[: rest.rfind(b"\n") + 1]
        seq, link = head.seq, head.link
        for line in whole.split(b"\n")[:-1]:
            entry = decode_line(line, orjson.loads)
            seq = entry["seq"] if entry is not None and type(entry.get("seq")) is int else seq + 1
            link = link_of(line)
        end = begin + len(whole)
        if torn := rest[len(whole) :]:
            os.ftruncate(files.log, end)
            self._pending.insert(0, self._own("repaired", what="line", **digest_fields(torn)))
        return _Head(end, seq, link)

    # Reading

    def _lines(self) -> Iterator[bytes]:
        """Return the lines; one without a line feed at its end is torn."""
        try:
            descriptor = open_regular(self._path, ours=True)
        except FileNotFoundError:
            return
        with open(descriptor, "rb") as file:
            yield from file

    def _stored_head(self) -> _Head | None:
        try:
            descriptor = open_regular(self._head_path, ours=True)
        except FileNotFoundError:
            return None
        with open(descriptor, "rb") as file:
            return _Head.parse(file.read(4096))


def _encode(entry: Entry | str) -> bytes:
    try:
        return orjson.dumps(entry, default=str)
    except TypeError:  # a lone surrogate, a number of more than 64 bits
        text = json.dumps(entry, default=str, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def _locked(descriptor: int) -> bool:
    for attempt in range(_LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt < _LOCK_TRIES - 1:
                time.sleep(_LOCK_PAUSE)
            continue
        return True
    return False


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _read_from(descriptor: int, at: int) -> bytes:
    pieces = []
    while piece := os.pread(descriptor, 1024 * 1024, at):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)
