"""Putting the files of truth in order before somebody writes on: what a kill or a loss of power left at their ends."""

from __future__ import annotations

import os
from functools import cache

from blockpty.host.plain import open_plain


@cache
def boot_id() -> str:
    """Which start of the machine this is; "" where the system does not name it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def set_aside(path: str, data: bytes) -> None:
    """Append what is about to be cut off a file to `<path>.torn`, 0600, with a line feed behind it."""
    fd = open_plain(path + ".torn", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        left = memoryview(data + b"\n")
        while left:
            left = left[os.write(fd, left) :]
    finally:
        os.close(fd)
