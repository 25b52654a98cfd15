"""Bridges: programs on the recorder's terminal that pass bytes on to a terminal elsewhere, and what these share.

Each is a module with a `main` (`tmux_bridge.py`, `ssh_bridge.py`) and runs in a process of its own, with the standard
library and this room only (`sources.py` says how it is started).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import struct
import termios
from collections.abc import Mapping
from typing import Any, Final

LOST: Final = 255
"""Exit status of a bridge whose connection is gone, as that of ssh."""
FIRST_PAUSE: Final = 0.05
"""Seconds before the first attempt to connect again; each pause is twice the one before, up to the longest."""
LONGEST_PAUSE: Final = 5.0
CLOSE_SECONDS: Final = 0.9
"""How long ending the far shell may take; the host kills a terminal's programs after a second."""
READ_BYTES: Final = 1 << 16
"""What is asked for at a time. For 128 KiB and more the C library maps memory and unmaps it again with each call."""
FAR_PATH: Final = 'PATH="$PATH:$HOME/.local/bin"'
"""For the far shell: one that is not a login shell may not find what a user has installed."""


def begin(path: str) -> tuple[dict[str, Any], int]:
    """Read the settings and remove their file; return them, and the descriptor that `select` sees a signal at."""
    with open(path, "rb") as file:
        settings: dict[str, Any] = json.load(file)
    os.unlink(path)
    # Known by this name to what looks for programs that wait for input (readers.py): we pass keys on.
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as name:
        name.write("blockpty-bridge")
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGWINCH, lambda number, frame: None)
    return settings, reader


def say(settings: Mapping[str, Any], state: str, reason: str | None, connections: int) -> None:
    """Write the state of the connection into the file that `status.connection` is read from."""
    path = settings["state"]
    content = {"state": state, "reason": reason, "connections": connections, "instance": settings["instance"]}
    with contextlib.suppress(OSError):
        with open(f"{path}.new", "w", encoding="ascii") as file:
            json.dump(content, file)
        os.replace(f"{path}.new", path)


def write_all(data: bytes) -> None:
    """Write to the terminal; waits while the recorder cannot take it."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def terminal_size() -> tuple[int, int]:
    """Return columns and rows of our terminal."""
    rows, cols, _, _ = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
    return cols, rows
