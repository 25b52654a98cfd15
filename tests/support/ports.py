"""TCP ports for servers that are given theirs, and for those that start again on the same one."""

from __future__ import annotations

import os
import random
import socket
from typing import Final

# Below those that Linux and macOS give to clients: one of these could be taken before the server has it, or while it
# is down. Each process that runs tests has some of its own.
_FIRST: Final = 20_000
_EACH: Final = 1000
_PROCESSES: Final = 12

# Where several runs have the same ones, they hardly ever draw the same at once.
_numbers = random.Random(os.getpid())


def free_port() -> int:
    """Return a port of the loopback interface that nothing listens on."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PROCESSES
    for _ in range(10 * _EACH):
        port = _FIRST + process * _EACH + _numbers.randrange(_EACH)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
