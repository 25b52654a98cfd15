"""What a test may leave behind: the server and the host of a home. Ending them, and saying whose they are."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_LEAVING_SECONDS = 10.0


def stop_server(home: Path) -> int | None:
    """End the server that a command started on demand: it would stay for as long as its shells do.

    Returns its process when there was one, after it has gone.
    """
    try:
        pid: int = json.loads((home / "server" / "server.json").read_bytes())["pid"]
        lock = (home / "server" / "lock").open("rb")
    except (OSError, ValueError):
        return None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.kill(pid, signal.SIGTERM)
            fcntl.flock(lock, fcntl.LOCK_EX)  # given back when it has gone
            return pid
    return None  # it was killed, and its file stayed


@contextlib.contextmanager
def directory_of_homes(prefix: str) -> Iterator[Path]:
    """Give a temporary directory, which is removed when the hosts of all homes in it have left.

    A host leaves some time after its last shell, and writes in its directory until then. Raises AssertionError for
    one that stays.
    """
    with tempfile.TemporaryDirectory(prefix=prefix) as place:
        yield Path(place)
        left = end_left_processes(Path(place), prefix)
        assert not left, left


def end_left_processes(directory: Path, test: str) -> list[str]:
    """Give the servers and hosts below `directory` time to leave; end and name those that do not."""
    left = []
    for path in sorted(directory.rglob("server/lock")):
        _wait_for_lock(path)
        # A server keeps its home's host, so it goes first.
        pid = stop_server(path.parents[1])
        left += [] if pid is None else [f"server {pid} of {test}"]
    for path in sorted(directory.rglob("host/pid")):
        try:
            host = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue  # it left in this moment
        deadline = time.monotonic() + _LEAVING_SECONDS
        running = {pid: role for role, pid in host.items() if isinstance(pid, int) and pid > 1 and _is_alive(pid)}
        while running and time.monotonic() < deadline:
            # They are not our children, so there is nothing portable to wait on but their absence.
            time.sleep(0.02)
            running = {pid: role for pid, role in running.items() if _is_alive(pid)}
        commands = {pid: _command_line(pid) for pid in running}
        # A number whose process is no Python at all belongs to another program by now.
        ours = [pid for pid, command in commands.items() if "blockpty" in command or "python" in command.lower()]
        left += [f"{running[pid]} {pid} of {test}: {commands[pid]}" for pid in ours]
        # Keeper and recorder start each other again, so neither may see the other end.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in ours:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
    return left


def _wait_for_lock(path: Path) -> None:
    """Return when no process holds a lock, which a server that was asked to stop releases when it has gone."""
    deadline = time.monotonic() + _LEAVING_SECONDS
    with path.open("rb") as lock:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    # If a test started it as its own child, only collecting it tells a dead one from a living one.
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # another user's: the number was used again
    return True


def _command_line(pid: int) -> str:
    if sys.platform == "linux":  # a minimal system has no ps
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""
    listing = subprocess.run(
        ["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False, timeout=10
    )
    return listing.stdout.strip()


async def status_of(*arguments: str) -> int:
    process = await asyncio.create_subprocess_exec(*arguments, stderr=asyncio.subprocess.DEVNULL)
    return await process.wait()
