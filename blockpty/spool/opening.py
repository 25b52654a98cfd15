"""Opening the files of a spool: what is there must be a plain file of ours, whatever somebody put in its place.

A link is not followed, a FIFO is not waited for, a device is not touched, a file that has a second name somewhere else
is not written to, and none in a directory that is a link or somebody else's. All of that is `spool_corrupt`, with the
path; no space is `storage_full` (`full.py`).
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from blockpty.errors import SpoolCorrupt, SpoolError
from blockpty.spool.full import REFUSED, full_is_an_error, storage_full

# ENXIO: a FIFO that nobody reads, or a socket; EISDIR, ENOTDIR: a directory here, or none above.
_PLANTED: Final = (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR, errno.ENOTDIR, errno.ENODEV)
# Without O_NONBLOCK a FIFO would be waited for; a plain file does not know the flag.
_ALWAYS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_DIRECTORY: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_COPY: Final = 1024 * 1024
_WRITES: Final = os.O_WRONLY | os.O_RDWR


def open_file(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a plain file; new ones are 0600.

    Raises FileNotFoundError, SpoolCorrupt when something else is in its place, StorageFull when it cannot be made.
    """
    try:
        descriptor = _open(path, (flags & ~os.O_TRUNC) | _ALWAYS)
    except OSError as problem:
        if problem.errno in _PLANTED:
            raise _planted(path, problem.strerror or "no plain file") from None
        if problem.errno in REFUSED:
            raise storage_full(path, problem) from None
        raise
    found = os.fstat(descriptor)
    wrong = None
    if not stat.S_ISREG(found.st_mode):
        wrong = "no plain file"
    elif flags & _WRITES and found.st_uid != os.geteuid():
        wrong = f"a file of user {found.st_uid}"
    elif flags & _WRITES and found.st_nlink > 1:
        wrong = "a file that has another name as well"
    if wrong is not None:
        os.close(descriptor)
        raise _planted(path, wrong)
    if flags & os.O_TRUNC:
        os.ftruncate(descriptor, 0)
    return descriptor


def _open(path: str | Path, flags: int) -> int:
    if not flags & (_WRITES | os.O_CREAT):
        return os.open(path, flags)
    # What is written goes into the directory that was looked at, also when another takes its place meanwhile.
    above, name = os.path.split(path)
    directory = os.open(above or ".", _DIRECTORY)
    try:
        owner = os.fstat(directory).st_uid
        if owner != os.geteuid():
            raise _planted(path, f"its directory is of user {owner}")
        return os.open(name, flags, 0o600, dir_fd=directory)
    finally:
        os.close(directory)


def is_removed(descriptor: int) -> bool:
    """Whether an open file has no name any more."""
    return os.fstat(descriptor).st_nlink == 0


def opened_again(descriptor: int, path: str | Path, at_least: int) -> int | None:
    """Return a descriptor of what has taken a removed file's place, if it holds as much; None otherwise."""
    if not is_removed(descriptor):
        return None
    try:
        fresh = open_file(path)
    except (OSError, SpoolError):
        return None
    if os.fstat(fresh).st_size < at_least:
        os.close(fresh)
        return None
    return fresh


def make_again(descriptor: int, path: str | Path, flags: int) -> int:
    """Give what is in a removed file its place back; return a descriptor opened with `flags`, the old one stays open.

    Raises StorageFull, SpoolCorrupt; FileNotFoundError when the directory is missing.
    """
    fresh = f"{path}.again"
    with open(open_file(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), "wb", 0) as file, full_is_an_error(path):
        at = 0
        while data := os.pread(descriptor, _COPY, at):
            at += file.write(data)
        os.rename(fresh, path)
    return open_file(path, flags)


def _planted(path: str | Path, what: str) -> SpoolCorrupt:
    return SpoolCorrupt(
        f"{path} cannot be used: {what}", hint="move it away; nothing was read from or written to it",
        details={"path": str(path)},
    )  # fmt: skip


def read_file(path: Path) -> bytes:
    """Return the content of a small file; raises as `open_file` does."""
    with open(open_file(path), "rb") as file:
        return file.read()
