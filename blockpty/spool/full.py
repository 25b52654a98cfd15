"""A full disk or quota as the error that callers know."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from blockpty.errors import StorageFull


@contextlib.contextmanager
def full_is_an_error(name: str) -> Iterator[None]:
    """Raise StorageFull, naming what was being written, where the system says that there is no space."""
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(
                f"no space left for {name}", hint="free some space; what waits for it goes on by itself"
            ) from None
        raise
