"""A write that the file system refuses, as the error that callers know."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from blockpty.errors import StorageFull

# No space, no quota, no medium, read-only, too large a file: it may pass, and nothing is lost meanwhile.
REFUSED: Final = (
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG, errno.EACCES, errno.EPERM, errno.ESTALE,
)  # fmt: skip


@contextlib.contextmanager
def full_is_an_error(name: str | Path) -> Iterator[None]:
    """Raise StorageFull, naming what was being written, where the system refuses to write."""
    try:
        yield
    except OSError as problem:
        if problem.errno in REFUSED:
            raise storage_full(name, problem) from None
        raise


def storage_full(name: str | Path, problem: OSError) -> StorageFull:
    """Return the error; its details say which errno it was."""
    code = errno.errorcode.get(problem.errno or errno.EIO, "EIO")
    space = problem.errno in (errno.ENOSPC, errno.EDQUOT)
    why = os.strerror(problem.errno or errno.EIO)
    return StorageFull(
        f"no space left for {name}" if space else f"{name} cannot be written: {why}",
        hint=f"{'free some space' if space else 'look at the disk'}; what waits for it goes on by itself",
        details={"errno": code},
    )  # fmt: skip
