"""blockpty in a pane of tmux, as a person has it on a terminal that draws."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_TRIES = 600


class Tmux:
    """One pane of a tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self._command = ["tmux", "-S", str(socket), "-f", "/dev/null"]

    def __call__(self, *words: str) -> str:
        return subprocess.run([*self._command, *words], capture_output=True, text=True, check=True, timeout=60).stdout

    def rows(self) -> list[str]:
        return [row.rstrip() for row in self("capture-pane", "-p").split("\n")[:-1]]

    async def until(self, reached: Callable[[list[str]], object]) -> list[str]:
        """Return what the pane shows when something is so."""
        for _ in range(_TRIES):
            rows = await asyncio.to_thread(self.rows)
            if reached(rows):
                return rows
        raise AssertionError("\n".join(["never so:", *rows]))


@contextmanager
def pane(directory: Path, home: Path, *arguments: str, columns: int, lines: int) -> Iterator[Tmux]:
    """Run blockpty in a pane of this size."""
    command = shlex.join([sys.executable, "-m", "blockpty", "--home", str(home), *arguments])
    with _running(directory, command, columns, lines) as tmux:
        yield tmux


@contextmanager
def in_shell(directory: Path, *, columns: int, lines: int) -> Iterator[Tmux]:
    """Run a shell in a pane of this size, which has printed "before"."""
    with _running(directory, "echo before; exec bash --norc --noprofile", columns, lines) as tmux:
        yield tmux


@contextmanager
def _running(directory: Path, command: str, columns: int, lines: int) -> Iterator[Tmux]:
    tmux = Tmux(directory / "t")
    tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), command)
    try:
        yield tmux
    finally:
        subprocess.run([*tmux._command, "kill-server"], check=False, capture_output=True)
