"""Files that a killed process leaves."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def left_socket(path: Path) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    os.chmod(path, 0o600)
