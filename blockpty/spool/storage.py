"""Storage access with the package's errors: `spool_corrupt` for an unsafe file, `storage_full` for a refused write.

Both name the path. A write that the file system refuses may pass later; nothing is lost meanwhile.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from blockpty.errors import SpoolCorrupt, SpoolError, StorageFull
from blockpty.files import opening as files
from blockpty.files.opening import UnsafeFile, is_removed, open_regular, restore_file

# No space, no quota, no medium, read-only, too large a file: it may pass, and nothing is lost meanwhile.
REFUSED: Final = (
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG, errno.EACCES, errno.EPERM, errno.ESTALE,
)  # fmt: skip


class full_is_an_error:  # noqa: N801 - used as a statement: `with full_is_an_error(path):`
    """Raise StorageFull, naming what was being written, where the system refuses to write."""

    # A class: a generator costs five calls more. Where each command passes, `refused` costs none.
    __slots__ = ("_name",)

    def __init__(self, name: str | Path) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, traceback: object) -> None:
        if isinstance(problem, OSError) and (error := refused(self._name, problem)) is not problem:
            raise error from None


def refused(name: str | Path, problem: OSError) -> SpoolError | OSError:
    """Return the package's error for what the system refuses; the problem itself where that is another."""
    if isinstance(problem, UnsafeFile):
        return unsafe(problem)
    return storage_full(name, problem) if problem.errno in REFUSED else problem


_REMEDIES: Final = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EROFS: "mount it for writing, or choose another home (BLOCKPTY_HOME)",
    errno.EACCES: "make it yours to write, or choose another home (BLOCKPTY_HOME)",
    errno.EPERM: "make it yours to write, or choose another home (BLOCKPTY_HOME)",
}


def storage_full(name: str | Path, problem: OSError) -> StorageFull:
    """Return the error; its details say which errno it was."""
    code = errno.errorcode.get(problem.errno or errno.EIO, "EIO")
    space = problem.errno in (errno.ENOSPC, errno.EDQUOT)
    why = os.strerror(problem.errno or errno.EIO)
    return StorageFull(
        f"no space left for {name}" if space else f"{name} cannot be written: {why}",
        hint=f"{_REMEDIES.get(problem.errno or 0, 'look at the disk')}; waiting work resumes automatically",
        details={"errno": code},
    )  # fmt: skip


def unsafe(problem: UnsafeFile) -> SpoolCorrupt:
    """Return the error for an unsafe file."""
    return SpoolCorrupt(
        f"{problem.filename} cannot be used: {problem.strerror}",
        hint="move it away; nothing was read from or written to it", details={"path": problem.filename},
    )  # fmt: skip


def open_directory(path: str | Path) -> int:
    """Return a descriptor of a directory of ours, for `open_file`; raises FileNotFoundError, SpoolCorrupt."""
    try:
        return files.open_directory(path)
    except UnsafeFile as problem:
        raise unsafe(problem) from None


def open_file(path: str | Path, flags: int = os.O_RDONLY, *, directory: int | None = None) -> int:
    """Return a descriptor of a regular file; new ones are 0600. With `directory` only the last part of the path counts.

    Raises FileNotFoundError, SpoolCorrupt when something else is at its path, StorageFull when it cannot be made.
    """
    try:
        return open_regular(path, flags, directory=directory)
    except OSError as problem:
        raise refused(path, problem) from None


def open_restored(descriptor: int, path: str | Path, at_least: int) -> int | None:
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


def restored(descriptor: int, path: Path) -> int:
    """Return the descriptor of an open file, of a new one with the same content if it was removed.

    Raises StorageFull, SpoolCorrupt; FileNotFoundError when the directory is missing.
    """
    if not is_removed(descriptor):
        return descriptor
    with full_is_an_error(path):
        fresh = restore_file(descriptor, path)
    os.close(descriptor)
    return fresh


def file_size(path: str | Path) -> int:
    """Return how many bytes a file has; 0 where there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def read_file(path: Path) -> bytes:
    """Return the content of a small file; raises as `open_file` does."""
    with open(open_file(path), "rb") as file:
        return file.read()
