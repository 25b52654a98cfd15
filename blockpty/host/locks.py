"""Locks of a host on its home and on the records that it writes.

Both are flocks on descriptors that are open in keeper and recorder, and that go to their successors: a
lock is free when the last process has ended that had it. So there is one host of a home, whatever became of its
socket, and one writer of a record, wherever its directory was moved.

This file knows what a lock is on and when a place has become another. It does not know what is done about it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator

from blockpty.files.opening import open_regular

# File systems without locks: there the socket alone has to do.
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
_GONE = (errno.ENOENT, errno.ENOTDIR)


class LockHeld(OSError):
    """Another host has the lock."""


def lock(fd: int) -> None:
    """Lock an open file, or keep it locked; raises LockHeld, OSError."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LockHeld(errno.EBUSY, "another PTY host has it") from None
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise


def unlock(fd: int) -> None:
    """Release a lock, whatever other process has the descriptor."""
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)


def timeline_path(directory: str) -> str:
    return os.path.join(directory, "timeline.jsonl")


def hold_record(directory: str) -> int:
    """Return a descriptor that has the lock of a record, which is begun if need be; raises LockHeld, OSError."""
    fd = open_regular(timeline_path(directory), os.O_RDWR | os.O_CREAT)
    try:
        lock(fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def is_held(directory: str) -> bool:
    """Whether some host writes a record that this one does not."""
    try:
        fd = open_regular(timeline_path(directory), ours=True)
    except OSError:
        return False
    try:
        lock(fd)
    except LockHeld:
        return True
    finally:
        os.close(fd)
    return False


@contextlib.contextmanager
def held_record(directory: str) -> Iterator[None]:
    """Hold a record for a while; raises as `hold_record` does."""
    fd = hold_record(directory)
    try:
        yield
    finally:
        os.close(fd)


def hold_home(home: str) -> int:
    """Return a descriptor that has the lock of a home, which must be there; raises LockHeld, OSError."""
    fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock(fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def same_file(fd: int, other: int) -> bool:
    """Whether two descriptors are of one file."""
    return os.path.samestat(os.fstat(fd), os.fstat(other))


class KnownDirectory:
    """A directory as it was found; the same path may be another one later."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._found = os.stat(path)

    def is_ours(self) -> bool:
        """Whether the path still leads there; also when the system cannot say."""
        try:
            return os.path.samestat(os.stat(self._path), self._found)
        except OSError as error:
            return error.errno not in _GONE
