"""Safe open of regular files owned by us, and what is done about open files that were removed.

A link is not followed, a FIFO is not waited for, a device is not touched. A file that has a second name is not written
to, and no file in a directory that is a link or belongs to another user.
"""

from __future__ import annotations

import errno
import os
import stat
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Not imported by the processes of a host, which start with each shell.
    from pathlib import Path

# ENXIO: a FIFO without a reader, or a socket; EISDIR, ENOTDIR: a directory here, or none above.
_UNSAFE: Final = (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR, errno.ENOTDIR, errno.ENODEV)
# Without O_NONBLOCK the open would wait at a FIFO; a regular file ignores the flag.
_ALWAYS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_DIRECTORY: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_COPY: Final = 1024 * 1024
_WRITES: Final = os.O_WRONLY | os.O_RDWR

CHECK_SECONDS: Final = 1.0
"""How long a removal may go unnoticed. Nothing is lost meanwhile: an open file keeps what is written to it."""


class UnsafeFile(OSError):
    """Something other than a regular file owned by us is at a file's path."""


def open_directory(path: str | Path) -> int:
    """Return a descriptor of a directory of ours, for `open_regular`; it stays valid wherever the directory is moved.

    Raises UnsafeFile, and OSError for all else.
    """
    try:
        directory = os.open(path, _DIRECTORY)
    except OSError as problem:
        if problem.errno in _UNSAFE:
            raise UnsafeFile(problem.errno, problem.strerror, str(path)) from None
        raise
    owner = os.fstat(directory).st_uid
    if owner != os.geteuid():
        os.close(directory)
        raise UnsafeFile(errno.EINVAL, f"a directory of user {owner}", str(path))
    return directory


def open_regular(
    path: str | Path, flags: int = os.O_RDONLY, *, ours: bool = False, directory: int | None = None
) -> int:
    """Return a descriptor of a regular file; new ones are 0600. With `directory` only the last part of the path counts.

    To be written to, the file must be owned by us and have one name; with `ours` also to be read. Raises UnsafeFile,
    and OSError for all else.
    """
    try:
        descriptor = _open(path, (flags & ~os.O_TRUNC) | _ALWAYS, directory)
    except UnsafeFile:
        raise
    except OSError as problem:
        if problem.errno in _UNSAFE:
            raise UnsafeFile(problem.errno, problem.strerror, str(path)) from None
        raise
    found = os.fstat(descriptor)
    owned = ours or flags & _WRITES
    wrong = None
    if not stat.S_ISREG(found.st_mode):
        wrong = "not a regular file"
    elif owned and found.st_uid != os.geteuid():
        wrong = f"a file of user {found.st_uid}"
    elif owned and found.st_nlink > 1:
        wrong = "a file that has another name as well"
    if wrong is not None:
        os.close(descriptor)
        raise UnsafeFile(errno.EINVAL, wrong, str(path))
    if flags & os.O_TRUNC:
        os.ftruncate(descriptor, 0)
    return descriptor


def _open(path: str | Path, flags: int, directory: int | None) -> int:
    if directory is not None:
        return os.open(os.fspath(path).rpartition("/")[2], flags, 0o600, dir_fd=directory)
    if not flags & (_WRITES | os.O_CREAT):
        return os.open(path, flags)
    # The file is opened in the directory that was checked, even when another directory takes its path meanwhile.
    above, slash, name = os.fspath(path).rpartition("/")
    parent = os.open(above or slash or ".", _DIRECTORY)
    try:
        owner = os.fstat(parent).st_uid
        if owner != os.geteuid():
            raise UnsafeFile(errno.EINVAL, f"its directory is of user {owner}", str(path))
        return os.open(name, flags, 0o600, dir_fd=parent)
    finally:
        os.close(parent)


def make_directory(path: str) -> None:
    """Make a directory 0700, or check that there is one; raises UnsafeFile, OSError."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise UnsafeFile(errno.ENOTDIR, "not a directory", path) from None


def is_removed(descriptor: int) -> bool:
    """Whether an open file has no name any more: no reader can find what is written to it now."""
    return os.fstat(descriptor).st_nlink == 0


class Rarely:
    """Says at most once a second that it is time to check again whether a file was removed or replaced."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = monotonic() + CHECK_SECONDS

    def due(self) -> bool:
        """Return whether the last check is a second ago; the caller then checks."""
        now = monotonic()
        if now < self._next:
            return False
        self._next = now + CHECK_SECONDS
        return True


def restore_file(descriptor: int, path: str | Path) -> int:
    """Put the content of a removed file at its path again; return a descriptor of the new file, to read and write.

    `descriptor` stays open. No reader sees half of the file. Raises OSError, and then nothing has changed.
    """
    fresh = f"{path}.again"
    new = open_regular(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        at = 0
        while data := os.pread(descriptor, _COPY, at):
            at += os.pwrite(new, data, at)
        os.rename(fresh, path)
    except BaseException:
        os.close(new)
        raise
    return new
