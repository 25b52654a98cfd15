"""A small file system that a test may fill, on Linux as root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(place: Path, size_kib: int) -> Iterator[Path]:
    """Mount a tmpfs of `size_kib` at `place`; skip the test where that is not allowed."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs to mount a small file system")
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_kib}k,mode=700", "tmpfs", str(place)],
        capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr!r}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> None:
    """Leave no room on the file system of a directory, in a file `ballast`; nor what is given back meanwhile."""
    with (place / "ballast").open("wb", 0) as ballast:
        while os.statvfs(place).f_bfree:
            with contextlib.suppress(OSError):
                while True:
                    ballast.write(b"x" * 4096)


def make_room(place: Path, size_kib: int) -> None:
    """Give the file system another size."""
    subprocess.run(["mount", "-o", f"remount,size={size_kib}k", str(place)], check=True)
