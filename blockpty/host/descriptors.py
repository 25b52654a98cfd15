"""Reserve of descriptors: some are kept for the conversations that are open.

The number of a new descriptor is the lowest that is free, and so says how many are in use, nearly.
"""

from __future__ import annotations

import errno
import os
import resource

EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
# What a conversation takes: in the host its terminal, pipe, lock, process, files and notification descriptor; as many
# in an engine.
EACH = 10
_RESERVED, _PART = 64, 4


def bound(part: float = 1.0) -> int:
    """Return the number of descriptors that new work may reach; `part` of the reserve stays above it."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return 1 << 30
    return limit - int(min(_RESERVED, limit // _PART) * part)


def has_room(count: int = EACH) -> bool:
    """Whether so many descriptors can be opened without touching the reserve."""
    try:
        probe = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    os.close(probe)
    return probe + count <= bound()
