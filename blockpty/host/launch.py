"""Launch of the host of a home, where there is none yet.

Two clients that start at once make one host: the one that has start.lock looks again, then starts a keeper and waits
until it listens. A leaving host holds the same lock from before its socket goes until its end.

A host has its home locked as long as it lives. One whose socket was removed makes it again (`recorder.py`), so a client
that finds the home locked waits for that.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import subprocess
import sys
import time

from blockpty.host import locks, protocol
from blockpty.host.protocol import Refused

START_SECONDS = 20.0
RETRY_SECONDS = 0.02
# What a keeper gets of our environment: enough to run this Python. Shells get exactly what the open request says.
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "BLOCKPTY_NO_SPLICE")

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# A bare package object stands in for blockpty itself, so that a process of this room never runs `blockpty/__init__.py`.
BARE_PACKAGE = """
import os, sys
package = type(sys)("blockpty")
package.__path__ = [os.path.join(sys.argv[1], "blockpty")]
sys.modules["blockpty"] = package
"""
"""Python that makes the package importable with the standard library alone; the first argument is `ROOT`."""
_BOOTSTRAP = f"""{BARE_PACKAGE}
if os.fork():
    os._exit(0)
os.setsid()
from blockpty.host.main import guarded_main
guarded_main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
"""


def connect(home: str, *, start: bool = True) -> socket.socket | None:
    """Return a connection to the host of `home`, started if need be. Blocks for some milliseconds when it starts one.

    Raises:
        Refused: spawn_failed (the host's directory is not private, or the host did not come up).
    """
    if not start and not os.path.isdir(os.path.join(home, "host")):
        return None
    dir_fd = protocol.open_host_directory(home)
    try:
        sock = protocol.connect(dir_fd)
        if sock is not None or not start:
            return sock
        lock = os.open(protocol.LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=dir_fd)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return protocol.connect(dir_fd) or _started(home, dir_fd)
        finally:
            os.close(lock)
    finally:
        os.close(dir_fd)


def _started(home: str, dir_fd: int) -> socket.socket | None:
    """Start the host and return a connection, or one to a host that has come back meanwhile."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            home_fd = locks.hold_home(home)
        except locks.LockHeld:
            sock = protocol.connect(dir_fd)
            if sock is not None:
                return sock
            if time.monotonic() > deadline:
                raise Refused(
                    "busy", f"a PTY host of {home} runs and cannot be reached",
                    "end its processes; their shells end with them",
                ) from None  # fmt: skip
            time.sleep(RETRY_SECONDS)
            continue
        try:
            _start_keeper(home, home_fd, dir_fd)
        finally:
            os.close(home_fd)
        return protocol.connect(dir_fd)


def _start_keeper(home: str, home_fd: int, dir_fd: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    log = os.open(protocol.LOG_NAME, flags, 0o600, dir_fd=dir_fd)
    ready_r, ready_w = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOTSTRAP, ROOT, os.path.realpath(home), str(home_fd), str(ready_w)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, pass_fds=(home_fd, ready_w), cwd="/",
            env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
        )  # fmt: skip
        os.close(ready_w)
        ready_w = -1
        process.wait()
        poller = select.poll()
        poller.register(ready_r, select.POLLIN)
        if not poller.poll(START_SECONDS * 1000) or not os.read(ready_r, 1):
            path = os.path.join(home, "host", protocol.LOG_NAME)
            raise Refused("spawn_failed", "the PTY host did not start", f"see {path}", log=path)
    finally:
        os.close(log)
        os.close(ready_r)
        if ready_w >= 0:
            os.close(ready_w)
