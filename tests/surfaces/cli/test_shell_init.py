"""Command `blockpty shell-init`: the text, and the place where shells say that they are there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from blockpty.host.injection import init_text

NO_PROCESS = 2**22 + 1


def printed(home: Path, shell: str) -> bytes:
    command = [sys.executable, "-m", "blockpty", "shell-init", shell, "--home", str(home)]
    return subprocess.run(command, check=True, capture_output=True).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_prints_the_text_for_the_private_directory_of_the_home(shell: str, tmp_path: Path) -> None:
    home = tmp_path / "it's a home"
    assert printed(home, shell) == init_text(shell, str(home / "shells"))
    assert (home / "shells").stat().st_mode & 0o777 == 0o700
    kept, gone = home / "shells" / str(os.getpid()), [home / "shells" / f"{NO_PROCESS}{end}" for end in ("", ".offer")]
    for path in (kept, *gone):
        path.touch()
    printed(home, shell)
    assert kept.exists() and not any(path.exists() for path in gone)
