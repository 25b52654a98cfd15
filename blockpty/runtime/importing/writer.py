"""Writer of the parts of a recording as the record of a conversation: a stream and a timeline, and nothing derived.

Rules of this file: a conversation is there whole or not at all. Memory does not grow with the recording. What is
written is what a recorder would have written; the blocks are what the file said, as notes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

import orjson

from blockpty.api.progress import Progress
from blockpty.errors import BadRequest, Busy, NotFound, StorageFull
from blockpty.files.lines import DIGEST_DIGITS, link_of, linked
from blockpty.files.segments import segment_name
from blockpty.model.results import ImportResult
from blockpty.runtime.export.typescript import BLOCK
from blockpty.runtime.importing.asciicast import asciicast
from blockpty.runtime.importing.parts import MAX_LINE, Border, Cut, Header, Over, Part, Shown, Sized, bad
from blockpty.runtime.importing.typescript import typescript
from blockpty.screen.widths import VERSION as WIDTHS
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout, conversations_directory, make_private
from blockpty.spool.stream import SEGMENT_BYTES

TIMING_SUFFIX: Final = ".timing"
# Of a line, in which the code of an event or the name of a fact stands.
_NEAR: Final = 64


class ImportStopped(Exception):
    """The caller of the import has gone."""


def import_file(
    home: Path, conversation_id: str, path: Path, timing: Path | None, stopped: threading.Event
) -> ImportResult:
    """Make a conversation of a recording; runs in any thread. Raises BadRequest, NotFound, Busy, StorageFull."""
    parts, marked = _parts(path, timing)
    Progress.of_caller().begin("import", path.stat().st_size)
    header = next(parts)
    assert isinstance(header, Header)
    ts = header.ts if header.ts is not None else max(0, path.stat().st_mtime_ns // 1_000_000)
    # Not among the conversations before it is whole.
    waiting = home / "imports"
    make_private(waiting)
    layout = Layout(waiting / f"{conversation_id}.{secrets.token_hex(4)}")
    try:
        result = _Writing(layout, header, ts, stopped, marked).write(parts, conversation_id)
        meta = {
            "format": checkpoint.FORMAT_VERSION,
            "conversation_id": conversation_id,
            "created_ts": ts,
            "shell": header.shell,
            "widths": WIDTHS,
            "open": {
                "shell": None, "cwd": "/", "cols": header.cols, "rows": header.rows, "login": False, "persist": False,
            },
            "imported": {"format": header.style, "title": header.title},
        }  # fmt: skip
        checkpoint.replace(layout.meta, meta)
        make_private(conversations_directory(home))
        os.rename(layout.directory, conversations_directory(home) / conversation_id)
        return result
    except OSError as problem:
        shutil.rmtree(layout.directory, ignore_errors=True)
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"no space for {conversation_id} in {home}", hint="make space") from None
        if problem.errno in (errno.EEXIST, errno.ENOTEMPTY):
            raise exists(conversation_id) from None
        raise
    except BaseException:
        shutil.rmtree(layout.directory, ignore_errors=True)
        raise
    finally:
        with contextlib.suppress(OSError):
            waiting.rmdir()  # as soon as no import uses it


def exists(conversation_id: str) -> Busy:
    """Return the error for a name that is taken."""
    return Busy(f"there is a conversation {conversation_id} already", hint="choose another conversation_id")


def _parts(path: Path, timing: Path | None) -> tuple[Iterator[Part], bool]:
    """Return the parts of a file, whatever it is, and whether it may name blocks."""
    for one in (path,) if timing is None else (path, timing):
        try:
            found = one.stat()
        except (OSError, ValueError):
            raise NotFound(f"there is no file {one}", hint="give the path of a recording") from None
        if not stat.S_ISREG(found.st_mode):
            raise bad(str(one), "no regular file")
    try:
        with path.open("rb") as file:
            first = file.read(64).lstrip()
        if timing is not None:
            return typescript(path, timing), _mentions(timing, BLOCK.encode())
        if first.startswith((b"{", b"[")):
            return asciicast(path), _mentions(path, b'"m"')
        beside = path.with_name(path.name + TIMING_SUFFIX)
        if beside.is_file():
            return typescript(path, beside), _mentions(beside, BLOCK.encode())
    except PermissionError:
        raise BadRequest(f"{path} cannot be read", hint="look at its permissions") from None
    if first.startswith(b"Script started"):
        raise bad(path.name, "a typescript needs the file with its times", "name it with timing")
    raise bad(path.name, "no recording")


def _mentions(path: Path, word: bytes) -> bool:
    """Whether a line has a word near its begin."""
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE):
            if word in line[:_NEAR]:
                return True
    return False


class _Writing:
    def __init__(self, layout: Layout, header: Header, ts: int, stopped: threading.Event, marked: bool) -> None:
        self._marked = marked
        self._layout = layout
        self._header = header
        self._ts = ts
        self._stopped = stopped
        self._last_ts = ts
        self._at = 0
        self._ticked = -1
        # For the next line of the timeline: the digest of the line before it, and of the bytes since.
        self._link = link_of(b"")
        self._sum = sha256()
        self._summed = 0
        self._blocks = 0
        self._files = contextlib.ExitStack()
        self._stream: IO[bytes] | None = None
        self._segment_end = 0

    def write(self, parts: Iterator[Part], conversation_id: str) -> ImportResult:
        for directory in (self._layout.directory, self._layout.stream, self._layout.outputs, self._layout.commands):
            make_private(directory)
        with self._files:
            self._timeline = self._files.enter_context(_new(self._layout.timeline))
            self._spawn()
            over, cut = self._take(parts)
            self._line("exit", status=over, signal=None)
            self._line("eof")
            if self._stream is None:
                self._segment()
        return ImportResult(
            conversation_id=conversation_id,
            cursor=self._at,
            format=self._header.style,
            imported_bytes=self._at,
            duration_seconds=(self._last_ts - self._ts) / 1000,
            blocks=self._blocks,
            cut=cut,
        )

    def _take(self, parts: Iterator[Part]) -> tuple[int | None, bool]:
        """Write the parts; return the exit status at their end, and whether the file was cut."""
        header = self._header
        if not self._marked:
            # Where the file names no blocks, all of it is one.
            self._border(header.command or header.title, None)
        for part in parts:
            if self._stopped.is_set():
                raise ImportStopped
            if isinstance(part, Header):
                continue
            self._last_ts = max(self._last_ts, self._ts + part.at_ms)
            match part:
                case Shown(_, data):
                    self._show(data)
                case Sized(_, cols, rows):
                    self._line("resize", cols=cols, rows=rows, author="user")
                case Border(_, cmd, status):
                    self._border(cmd, status)
                case Over(_, status):
                    return status, False
                case Cut():
                    return None, True
        return None, False

    def _border(self, cmd: str | None, status: int | None) -> None:
        note: dict[str, Any] = {"type": "imported"}
        if cmd is not None:
            note["cmd"] = cmd
            self._blocks += 1
        if status is not None:
            note["status"] = status
        self._line("note", note=note)

    def _spawn(self) -> None:
        shell = os.path.basename(self._header.shell) or "recording"
        self._line(
            "spawn", instance=1, nonce=secrets.token_urlsafe(16), shell=shell, argv=[shell], cwd="/",
            cols=self._header.cols, rows=self._header.rows, hooks=False, pid=1, transport="read",
        )  # fmt: skip

    def _line(self, kind: str, **fields: Any) -> None:
        line = {"offset": self._at, "ts": self._last_ts, "kind": kind, **fields}
        digest = self._sum.hexdigest()[:DIGEST_DIGITS] if self._at > self._summed else None
        written = linked(orjson.dumps(line), self._link, digest)
        self._timeline.write(written)
        self._link, self._sum, self._summed = link_of(written[:-1]), sha256(), self._at
        self._ticked = self._last_ts

    def _show(self, data: bytes) -> None:
        if self._last_ts > self._ticked:
            self._line("tick")
        self._sum.update(data)
        view = memoryview(data)
        while view:
            if self._at >= self._segment_end:
                self._segment()
            assert self._stream is not None
            taken = min(len(view), self._segment_end - self._at)
            self._stream.write(view[:taken])
            self._at += taken
            view = view[taken:]

    def _segment(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = self._files.enter_context(_new(self._layout.stream / segment_name(self._at)))
        self._segment_end = self._at + SEGMENT_BYTES


def _new(path: Path) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o600), "wb", buffering=256 * 1024)


def free_name(stem: str) -> str:
    """Return a name for a conversation that a file of this name becomes."""
    kept = "".join(character if character.isascii() and character.isalnum() else "-" for character in stem).strip("-")
    return f"{(kept or 'recording')[:60]}-{time.strftime('%Y%m%d')}-{secrets.token_hex(3)}"
