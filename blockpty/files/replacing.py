"""Whole files of the user: read within a bound, and replaced at once or not at all.

Rules of this file: only regular files. A link is followed where the system lets a shell of this user follow it, and no
further: the file is opened by its own name before another one takes its place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import Final

from blockpty.files.opening import UnsafeFile

# Without O_NONBLOCK the open would wait at a FIFO that takes the file's place.
_ALWAYS: Final = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_STEP: Final = 1024 * 1024


def read_whole(path: str, most: int) -> bytes:
    """Return the content of a regular file; of one that is longer than `most`, one byte more than that.

    Raises UnsafeFile for what is no regular file, IsADirectoryError, and OSError for all else.
    """
    _check_regular(path, os.stat(path))
    descriptor = os.open(path, os.O_RDONLY | _ALWAYS)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        _check_regular(path, os.fstat(descriptor))
        pieces, left = [], most + 1
        while left and (piece := file.read(min(_STEP, left))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)


def replace_whole(path: str, data: bytes, mode: int | None, umask: int) -> None:
    """Put a file with this content at a path; who reads it sees the old content or the new, never a part.

    `mode`: its permissions; None: those of the file that is there, else what `umask` leaves of 0666. Where a link leads
    to a file, that one is replaced; other names of it keep the old content. Raises as `read_whole` does, and nothing
    has changed then.
    """
    if path.endswith("/"):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    target, found = _found(path)
    bits = mode
    if bits is None:
        bits = stat.S_IMODE(found.st_mode) if found is not None else 0o666 & ~umask
    fresh = os.path.join(os.path.dirname(target), f".blockpty-{secrets.token_hex(8)}.part")
    descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            left = memoryview(data)
            while left:
                left = left[file.write(left) or 0 :]
            if found is not None and (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
                # Only root can keep the owner; for others the file is theirs from now on.
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, found.st_uid, found.st_gid)
            os.fchmod(descriptor, bits)
        os.rename(fresh, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)
        raise


def _found(path: str) -> tuple[str, os.stat_result | None]:
    """Return where a file is to be, and what is there now; raises PermissionError for one that must not be written."""
    try:
        _check_regular(path, os.stat(path))
    except FileNotFoundError:
        if os.path.islink(path):
            raise UnsafeFile(errno.EINVAL, "a link to a file that does not exist", path) from None
        return path, None
    # The system itself says whether the link may be followed and the file be written.
    descriptor = os.open(path, os.O_WRONLY | _ALWAYS)
    try:
        found = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    target = os.path.realpath(path)
    if not os.path.samestat(os.stat(target), found):
        raise UnsafeFile(errno.EINVAL, "a file that changes its place", path)
    _check_regular(path, found)
    return target, found


def _check_regular(path: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(found.st_mode):
        raise UnsafeFile(errno.EINVAL, "not a regular file", path)
