"""TCP ports for servers that are told theirs, and for those that start again on the same one."""

from __future__ import annotations

import itertools
import os
import socket
from typing import Final

# Below those that Linux and macOS give to clients: one of these could be taken before the server has it, or while it
# is down. Each process that runs tests has some of its own.
_FIRST: Final = 20_000
_EACH: Final = 1000
_PROCESSES: Final = 12

_numbers = itertools.count(os.getpid())


def free_port() -> int:
    """Return a port of the loopback interface that nothing listens on."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PROCESSES
    for _ in range(_EACH):
        port = _FIRST + process * _EACH + next(_numbers) % _EACH
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
