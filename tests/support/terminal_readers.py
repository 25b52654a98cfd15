"""What this kernel tells about a terminal: who reads it, and what is unread."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import termios
from functools import cache
from pathlib import Path

import pytest

from blockpty.host import spawn


@cache
def can_be_known() -> bool:
    """Whether this kernel shows who reads a terminal, also to a process that is not the reader's parent."""
    yama = Path("/proc/sys/kernel/yama/ptrace_scope")
    free = os.geteuid() == 0 or not yama.exists() or yama.read_text().strip() == "0"
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as reader:
        try:
            return free and spawn.reads_terminal(reader.pid, "/dev/null") is not None
        finally:
            reader.kill()


def terminal_of(pid: int | None) -> str:
    """Return the terminal that a program reads from now."""
    return os.readlink(f"/proc/{pid}/fd/0")


def unread(terminal: str) -> int:
    """Return how many bytes wait in a terminal."""
    descriptor = os.open(terminal, os.O_RDONLY | os.O_NOCTTY)
    try:
        return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
    finally:
        os.close(descriptor)


def skip_where_unknown() -> pytest.MarkDecorator:
    """Return the mark of tests that need it."""
    return pytest.mark.skipif(
        not can_be_known(), reason="this kernel does not tell what the processes of others wait for"
    )
