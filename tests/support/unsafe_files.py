"""Unsafe files: what may be at a path in place of a regular file owned by us."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

PRECIOUS = b"precious\n"


def _socket(place: Path, victim: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        here = os.getcwd()
        os.chdir(place.parent)
        try:
            sock.bind(place.name)
        finally:
            os.chdir(here)


UNSAFE: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda place, victim: place.symlink_to(victim),
    "dangling link": lambda place, victim: place.symlink_to(victim.with_name("nothing")),
    "link to a directory": lambda place, victim: place.symlink_to(victim.parent),
    "hard link": lambda place, victim: os.link(victim, place),
    "directory": lambda place, victim: place.mkdir(),
    "fifo": lambda place, victim: os.mkfifo(place),
    "socket": _socket,
    "link to a device": lambda place, victim: place.symlink_to("/dev/zero"),
}


def mode(path: Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)
