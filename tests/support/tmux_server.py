"""A tmux server of a test's own, with no configuration, and what it says of its panes."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


class TmuxServer:
    """Runs commands of tmux; `environment` is that of a client."""

    def __init__(self, directory: Path, program: str) -> None:
        self.environment = {"TMUX_TMPDIR": str(directory)}
        self._program = program
        self._children: list[int] = []

    def __call__(self, *arguments: str) -> str:
        """Run one command and return what it prints."""
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color", **self.environment}
        done = subprocess.run(
            [self._program, "-f", "/dev/null", *arguments], env=env, check=True, capture_output=True, text=True,
            encoding="utf-8",
        )  # fmt: skip
        return done.stdout

    def value(self, target: str, name: str) -> str:
        """Return what a format stands for."""
        return self("display-message", "-p", "-t", target, f"#{{{name}}}").rstrip("\n")

    def size(self, target: str) -> tuple[int, int]:
        return int(self.value(target, "pane_width")), int(self.value(target, "pane_height"))

    def rows(self, target: str) -> list[str]:
        """Return the rows that a pane shows."""
        return [row.rstrip() for row in self("capture-pane", "-p", "-N", "-t", target).split("\n")[:-1]]

    def lines(self, target: str) -> list[str]:
        """Return all lines of a pane, what has scrolled off included, without blank ones at the end."""
        captured = self("capture-pane", "-p", "-J", "-S", "-", "-t", target)
        return [line.rstrip() for line in captured.rstrip().split("\n")]

    def control_clients(self) -> list[str]:
        listed = self("list-clients", "-F", "#{client_control_mode} #{client_name}").splitlines()
        return [line[2:] for line in listed if line.startswith("1 ")]

    def client(self, target: str, cols: int, rows: int) -> None:
        """Attach a client as a person has one, of this size; what it shows is read and dropped."""
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color", **self.environment}
        pid, master = pty.fork()
        if pid == 0:
            size = f"stty cols {cols} rows {rows}; exec {self._program} attach -t {target}"
            os.execve("/bin/sh", ["sh", "-c", size], env)
        self._children.append(pid)
        copier = os.fork()
        if copier == 0:
            with suppress(OSError):
                while os.read(master, 65536):
                    pass
            os._exit(0)
        os.close(master)
        self._children.append(copier)

    def close(self) -> None:
        with suppress(subprocess.CalledProcessError):
            self("kill-server")
        for pid in self._children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@contextmanager
def tmux_server(program: str = "tmux") -> Iterator[TmuxServer]:
    """Run a server that keeps 300,000 lines of each pane; skip where there is no tmux of 3.2 or newer."""
    found = shutil.which(program)
    if found is None:
        pytest.skip("needs tmux")
    version = subprocess.run([found, "-V"], check=True, capture_output=True, text=True).stdout.split()[1]
    if tuple(int(part) for part in version.rstrip("abcdefgh").removeprefix("next-").split(".")[:2]) < (3, 2):
        pytest.skip("needs tmux 3.2")
    # The path of its socket must be short.
    with tempfile.TemporaryDirectory(prefix="bptm") as directory:
        server = TmuxServer(Path(directory), found)
        try:
            server("new-session", "-d", "-s", "kept", "-x", "80", "-y", "24", "cat")
            server("set-option", "-g", "history-limit", "300000")
            yield server
        finally:
            server.close()


def shown(found: Callable[[], object], wanted: object, tries: int = 3000) -> bool:
    """Ask again until the answer is the one that is wanted; for what tmux alone can say."""
    return any(found() == wanted for _ in range(tries))
