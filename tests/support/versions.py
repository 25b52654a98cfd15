"""Which versions of the shells and of tmux `tools/shells` has fetched; in the head of every test report."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PLACE: Final = Path(os.environ.get("BLOCKPTY_SHELLS") or Path.home() / ".cache" / "blockpty-shells")
OLDEST: Final = {"bash": (4, 4), "zsh": (5, 8), "fish": (3, 6)}
OLDEST_TMUX: Final = (3, 2)

_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9]+)+")


def _fetched(names: Iterable[str], option: str) -> list[tuple[str, str, Path]]:
    found = []
    for name in names:
        for path in PLACE.glob(f"*/bin/{name}"):
            try:
                ran = subprocess.run([path, option], capture_output=True, text=True, timeout=20, check=True)
            except (OSError, subprocess.SubprocessError):
                continue  # it needs rights that this user does not have
            version = _VERSION.search(ran.stdout)
            if version is not None:
                found.append((name, version.group(), path))
    return sorted(found)


FETCHED: Final = _fetched(OLDEST, "--version")
"""(name, version, program)."""
FETCHED_TMUX: Final = _fetched(["tmux"], "-V")
"""The same of tmux."""


def numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version, to compare it with another one."""
    return tuple(int(part) for part in version.split(".")[:2])


def startup(name: str, path: Path) -> tuple[str, str] | None:
    """Return name and text of a startup file without which a shell does not find its own parts."""
    fetched = name == "zsh" and path.is_absolute()
    modules = [str(folder) for folder in path.parent.parent.glob("lib/*/zsh/*")] if fetched else []
    # zsh takes MODULE_PATH from no environment.
    return (".zshenv", f"module_path=({' '.join(modules)})\n") if modules else None


def report() -> str:
    """One line for the report."""
    if not FETCHED:
        return "other versions of shells and tmux: none (tools/shells fetches them)"
    found = ", ".join(f"{name} {version}" for name, version, _ in FETCHED + FETCHED_TMUX)
    return f"other versions of shells and tmux: {found}"
