"""Segments of a stream: contiguous files, each named by the offset of its first byte."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Not imported by the processes of a host, which start with each shell.
    from pathlib import Path

NAME_DIGITS: Final = 20


def segment_name(offset: int) -> str:
    """Return the file name of the segment that begins at an offset."""
    return f"{offset:0{NAME_DIGITS}d}"


def is_segment_name(name: str) -> bool:
    """Whether a file's name is that of a segment."""
    return name.isascii() and name.isdigit() and len(name) == NAME_DIGITS


def segment_offsets(directory: str | Path) -> list[int]:
    """Return the first offsets of the segments in a directory, in order; raises OSError."""
    return sorted(int(name) for name in os.listdir(directory) if is_segment_name(name))
