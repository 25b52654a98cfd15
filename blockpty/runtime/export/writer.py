"""Writing an export to a file of the home, or returning it where it is small.

Rules of this file: memory does not grow with the record; a file is private (0600), complete or not there; no nonce is
in it, wherever a format has cut its text.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, Self

from blockpty.api.progress import Progress
from blockpty.errors import BadRequest, InternalError, StorageFull
from blockpty.model.results import ExportResult
from blockpty.runtime.export import pages
from blockpty.runtime.export.asciicast import cast
from blockpty.runtime.export.recording_events import Source
from blockpty.runtime.export.typescript import typescript
from blockpty.runtime.worker_threads import Pace
from blockpty.spool.layout import make_private
from blockpty.spool.masking import Mask

SUFFIXES: Final[Mapping[str, str]] = {
    "cast": ".cast", "cast3": ".cast", "typescript": ".typescript", "text": ".txt", "html": ".html",
    "markdown": ".md", "jsonl": ".jsonl",
}  # fmt: skip
TIMING_SUFFIX: Final = ".timing"

_PIECES: Final[Mapping[str, Callable[[Source], Iterator[bytes]]]] = {
    "cast": lambda source: cast(source, 2),
    "cast3": lambda source: cast(source, 3),
    "text": pages.text,
    "html": pages.html,
    "markdown": pages.markdown,
    "jsonl": pages.jsonl,
}
_BUFFER: Final = 256 * 1024
# How long an export stays in the home when it is not fetched, and what a killed writer has left.
KEPT_SECONDS: Final = 7 * 86400.0
_PART_SECONDS: Final = 86400.0


def check_format(name: str) -> None:
    """Raise BadRequest for a format that there is not."""
    if name not in SUFFIXES:
        raise BadRequest(f"no export format is called {name[:20]!r}", hint=f"one of {', '.join(SUFFIXES)}")


class ExportStopped(Exception):
    """The caller of the export has gone."""


def export(source: Source, style: str, max_bytes: int, stopped: threading.Event) -> ExportResult:
    """Export a source, in any thread. Raises StorageFull, and ExportStopped when its caller has gone."""
    Progress.of_caller().begin("export", source.end - source.begin)
    directory = source.layout.exports
    make_private(directory)
    _clean(directory, time.time())
    when = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    path = directory / f"{source.conversation_id}-{when}-{secrets.token_hex(3)}{SUFFIXES[style]}"
    timing = write(source, style, path, stopped)
    size = path.stat().st_size
    small = timing is None and size <= max_bytes
    data = path.read_bytes().decode() if small else None
    if small:
        path.unlink()
    return ExportResult(
        cursor=source.end,
        format=style,
        span=(source.begin, source.end),
        export_bytes=size,
        data=data,
        path=None if small else str(path),
        timing_path=None if timing is None else str(timing),
    )


def _clean(directory: Path, now: float) -> None:
    """Remove what was not fetched for days, and what killed writers have left; captures stay, they are asked for."""
    for entry in os.scandir(directory):
        kept_seconds = _PART_SECONDS if entry.name.startswith(".") else KEPT_SECONDS
        if "-capture-" in entry.name and not entry.name.startswith("."):
            continue
        with contextlib.suppress(OSError):
            if entry.is_file(follow_symlinks=False) and now - entry.stat(follow_symlinks=False).st_mtime > kept_seconds:
                os.unlink(entry.path)


def write(source: Source, style: str, path: Path, stopped: threading.Event) -> Path | None:
    """Write an export to a file in a directory of ours; return the file of the times, for a typescript."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(3)}.part")
    timing = part.with_name(part.name + TIMING_SUFFIX) if style == "typescript" else None
    try:
        with contextlib.ExitStack() as files:
            out = files.enter_context(_File(part, source.redactor.mask, stopped))
            if timing is not None:
                typescript(source, out.write, files.enter_context(_File(timing, source.redactor.mask, stopped)).write)
            else:
                for piece in _PIECES[style](source):
                    out.write(piece)
        if timing is not None:
            timing = timing.rename(path.with_name(path.name + TIMING_SUFFIX))
        part.rename(path)
    except BaseException as problem:
        _remove([part] if timing is None else [part, timing])
        if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"no space for an export in {path.parent}", hint="make space, or export a span") from None
        if isinstance(problem, OSError):
            raise InternalError(f"the export cannot be written: {problem}") from problem
        raise
    return timing


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


class _File:
    """A private file in which no nonce is ever written."""

    def __init__(self, path: Path, mask: Mask, stopped: threading.Event) -> None:
        self._mask = mask
        self._stopped = stopped
        self._pace = Pace()
        self._held: list[bytes] = []
        self._size = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)

    def write(self, data: bytes) -> None:
        """Take what comes next."""
        self._pace.rest()
        self._held.append(data)
        self._size += len(data)
        if self._size >= _BUFFER:
            self._flush()

    def _flush(self, *, last: bool = False) -> None:
        if self._stopped.is_set():
            raise ExportStopped
        data = self._mask.hide(b"".join(self._held))
        keep = 0 if last else self._mask.partial(data)
        self._held, self._size = [data[len(data) - keep :]], keep
        view = memoryview(data)[: len(data) - keep]
        while view:
            view = view[self._file.write(view) :]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self._flush(last=True)
        finally:
            self._file.close()
