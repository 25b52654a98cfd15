"""Where the torn end of a file goes: nothing that was written is thrown away unseen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from blockpty.spool.opening import open_file

# So much of one end is kept; what is derived can be derived again.
KEPT: Final = 1024 * 1024


def set_aside(path: Path, data: bytes) -> None:
    """Append bytes to `<path>.torn`, 0600, with a line feed behind them; raises OSError."""
    descriptor = open_file(f"{path}.torn", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        left = memoryview(data[:KEPT] + b"\n")
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)
