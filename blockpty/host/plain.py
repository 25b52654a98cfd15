"""The recorder's files: what is opened is a plain file of ours, and one that was removed meanwhile is made again.

This file knows what can stand in a file's place and how a removed file comes back. It does not know what is in it.
"""

from __future__ import annotations

import errno
import os
import stat

COPY_BYTES = 1024 * 1024


class Planted(OSError):
    """Something else than a plain file of ours is in the place of one."""


def open_plain(path: str, flags: int) -> int:
    """Return a descriptor of a plain file; new ones are 0600. Raises Planted, and OSError for all else."""
    always = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    try:
        fd = _open(path, flags | always)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR, errno.ENOTDIR, errno.ENODEV):
            raise Planted(error.errno, error.strerror, path) from None
        raise
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink > 1:
        os.close(fd)
        raise Planted(errno.EINVAL, "not a plain file of ours with one name", path)
    return fd


def _open(path: str, flags: int) -> int:
    if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return os.open(path, flags)
    # What is written goes into the directory that was looked at, also when another takes its place meanwhile.
    above, name = os.path.split(path)
    always = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = os.open(above or ".", always)
    try:
        if os.fstat(directory).st_uid != os.geteuid():
            raise Planted(errno.EINVAL, "in a directory of another user", path)
        return os.open(name, flags, 0o600, dir_fd=directory)
    finally:
        os.close(directory)


def make_directory(path: str) -> None:
    """Make a directory 0700, or see that what is there is one; raises Planted, OSError."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise Planted(errno.ENOTDIR, "not a directory", path) from None


def is_removed(fd: int) -> bool:
    """Whether an open file has no name any more: what is written to it now, nobody will ever read."""
    return os.fstat(fd).st_nlink == 0


def make_again(fd: int, path: str) -> int:
    """Give the content of a removed file its place back, with the directories above; return the new descriptor.

    `fd` stays open. Nobody sees half of the file. Raises OSError, and then nothing has changed.
    """
    for directory in (os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):
        make_directory(directory)
    fresh = f"{path}.again"
    new = open_plain(fresh, os.O_RDWR | os.O_CREAT)
    try:
        os.ftruncate(new, 0)
        at = 0
        while data := os.pread(fd, COPY_BYTES, at):
            at += os.pwrite(new, data, at)
        os.rename(fresh, path)
    except BaseException:
        os.close(new)
        raise
    return new
