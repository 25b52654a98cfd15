"""Starts of shells in which one call fails: the first, second, third ... of each kind, before the fork and after it."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import tempfile
import termios
from collections.abc import Callable, Iterator
from typing import Any

from blockpty.host import spawn
from blockpty.host.protocol import Refused
from tests.support.host_driver import ENV, SH
from tools.torture.report import Row

# Where each is called, and with what it fails: in the keeper, then in the child.
CALLS: tuple[tuple[Any, str, type[Exception], int], ...] = (
    (os, "openpty", OSError, errno.ENOSPC), (os, "pipe2", OSError, errno.EMFILE), (os, "pipe", OSError, errno.ENFILE),
    (os, "set_blocking", OSError, errno.EBADF), (termios, "tcgetattr", termios.error, errno.EIO),
    (termios, "tcsetattr", termios.error, errno.EIO), (os, "fork", OSError, errno.EAGAIN),
    (os, "pidfd_open", OSError, errno.EMFILE), (os, "setsid", OSError, errno.EPERM),
    (fcntl, "ioctl", OSError, errno.EIO), (os, "dup2", OSError, errno.EMFILE), (os, "chdir", OSError, errno.EACCES),
    (os, "execve", OSError, errno.ENOMEM),
)  # fmt: skip
# A start goes on without it: what it is for is found out in another way.
DISPENSABLE = frozenset({"pidfd_open"})
BOUND_SECONDS = 10.0


def _request(folder: str) -> dict[str, Any]:
    return {
        "argv": [SH, "-c", "exit 7"], "env": dict(ENV), "cwd": folder, "cols": 80, "rows": 24, "cgroup": None,
        "process_limit": 0,
    }  # fmt: skip


def _start(request: dict[str, Any]) -> Refused | None:
    """Start a shell as a keeper does and wait for its end; return why there is none."""
    try:
        started = spawn.start(request, (1024, 1024))
    except Refused as refusal:
        return refusal
    try:
        if not select.select([started.status_fd], [], [], BOUND_SECONDS)[0]:
            os.kill(started.pid, signal.SIGKILL)
            raise TimeoutError("no process says what has become of the shell")
        refusal = started.outcome()
        status = os.waitstatus_to_exitcode(os.waitpid(started.pid, 0)[1])
        if refusal is None and status != 7:
            raise ChildProcessError(f"the shell ended with {status}")
        return refusal
    finally:
        started.close()


def _failing(real: Callable[..., Any], number: int, problem: Exception, calls: list[int]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            raise problem
        return real(*arguments, **named)

    return call


def _try(folder: str, place: Any, name: str, problem: Exception, number: int, row: Row) -> bool:
    """Let one call fail; return whether there was one."""
    real, calls, before = getattr(place, name), [0], set(os.listdir("/proc/self/fd"))
    setattr(place, name, _failing(real, number, problem, calls))
    try:
        refusal = _start(_request(folder))
    except Exception as raised:  # noqa: BLE001 - nothing else may come out, whatever it is
        row.wrong.append(f"{name} number {number}: raised {raised!r}")
        return True
    finally:
        setattr(place, name, real)
    # A call of the child is counted there; that it was reached shows in the refusal.
    if refusal is None and calls[0] < number:
        return False
    row.tries += 1
    if (refusal is None) != (name in DISPENSABLE):
        row.wrong.append(f"{name} number {number}: {'not reported' if refusal is None else refusal.message}")
    elif refusal is not None and (refusal.code not in ("pty_limit", "spawn_failed") or not refusal.message):
        row.wrong.append(f"{name} number {number}: reported as {refusal.code}: {refusal.message}")
    if set(os.listdir("/proc/self/fd")) != before:
        row.wrong.append(f"{name} number {number}: descriptors are left open")
    try:
        os.waitpid(-1, os.WNOHANG)
        row.wrong.append(f"{name} number {number}: a child is left")
    except ChildProcessError:
        pass
    if _start(_request(folder)) is not None:
        row.wrong.append(f"{name} number {number}: the next start fails too")
    return True


def fail_spawns() -> Iterator[Row]:
    """Yield the row of shells that cannot be started."""
    row = Row("the n-th call of starting a shell fails, for every n")
    with tempfile.TemporaryDirectory(prefix="torture") as folder:
        for place, name, kind, number in CALLS:
            if not hasattr(place, name):
                continue
            count = 1
            while _try(folder, place, name, kind(number, os.strerror(number)), count, row) and count < 20:
                count += 1
    row.found = {"calls": str(len(CALLS)), "descriptors and processes left": "none" if not row.wrong else "see there"}
    yield row
