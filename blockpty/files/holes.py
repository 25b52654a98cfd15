"""Holes: disk space at the beginning of a file given back, its length and its other bytes unchanged."""

from __future__ import annotations

import errno
import os
import sys
from typing import Final

# linux/falloc.h: FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE.
_KEEP_SIZE: Final = 0x01
_PUNCH_HOLE: Final = 0x02


def punch(descriptor: int, end: int) -> None:
    """Make the first `end` bytes of a file a hole, which reads as zeros; raises OSError where that cannot be done."""
    if not sys.platform.startswith("linux"):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    # Not before: it takes longer to import than all the rest, and few ever need it.
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).fallocate64
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if call(descriptor, _KEEP_SIZE | _PUNCH_HOLE, 0, end):
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem))


def first_data(descriptor: int) -> int:
    """Return where the first bytes of a file are that are no hole, 0 where the system cannot say."""
    try:
        return os.lseek(descriptor, 0, os.SEEK_DATA)
    except (OSError, AttributeError):
        return 0
