"""Durability and quarantine: fsync of files and directories, and the torn tail of a file, which is kept beside it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from blockpty.files.opening import open_regular

if TYPE_CHECKING:
    from pathlib import Path

# At most this much of one torn tail is kept.
QUARANTINE_BYTES: Final = 1024 * 1024
# File systems that cannot sync say so; then there is nothing to wait for.
_CANNOT: Final = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


def sync_file(descriptor: int) -> None:
    """Make a file's content durable, where the file system can; raises OSError."""
    try:
        os.fdatasync(descriptor)
    except OSError as problem:
        if problem.errno not in _CANNOT:
            raise


def sync_directory(path: str | Path) -> None:
    """Make the names in a directory durable; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def quarantine(path: str | Path, data: bytes) -> None:
    """Append bytes that are about to be cut off a file to `<path>.torn`, 0600, with a line feed behind them.

    Raises OSError.
    """
    descriptor = open_regular(f"{path}.torn", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        left = memoryview(data + b"\n")
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)


def cut_tail(path: str | Path, size: int) -> bool:
    """Quarantine what a file has behind `size` bytes and cut it, durably; return whether there was anything.

    Raises OSError.
    """
    try:
        descriptor = open_regular(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        found = os.fstat(descriptor).st_size
        if found <= size:
            return False
        quarantine(path, os.pread(descriptor, min(QUARANTINE_BYTES, found - size), size))
        os.ftruncate(descriptor, size)
        sync_file(descriptor)
        return True
    finally:
        os.close(descriptor)
