"""Startup files of a shell: ours, written before it starts, and removed when it has read them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from blockpty.host.shells import ShellPlan
from blockpty.spool.layout import make_private
from blockpty.spool.storage import full_is_an_error, open_file


def write_private(directory: Path, made: ShellPlan) -> None:
    """Write the shell's start files, 0600 in 0700 directories."""
    for name, content in made.files:
        path = directory / name
        for parent in reversed(path.relative_to(directory).parents[:-1]):
            make_private(directory / parent)
        path.unlink(missing_ok=True)
        with full_is_an_error(path), open(open_file(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY), "wb") as file:
            file.write(content)


def remove_private(directory: Path, instance: int) -> None:
    """Remove the start files of a shell that has read them: its nonce is not needed on disk any more."""
    shutil.rmtree(directory / "rc" / str(instance), ignore_errors=True)
