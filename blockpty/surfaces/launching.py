"""Launch of the server of a home: finding it, and starting it when there is none.

    <home>/server/socket        0600; who can connect here is this user
    <home>/server/server.json   what runs: pid, url, version
    <home>/server/lock          held by the server as long as it lives
    <home>/server/server.log    what it had to say

Two programs that start one at once get one: the second server finds the lock taken and leaves, and the program that
started it waits until the first listens.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from blockpty.errors import BlockptyError, Busy, InternalError, SpoolCorrupt, error_from_code
from blockpty.host.protocol import peer_uid, socket_address
from blockpty.surfaces.private_files import open_private, server_directory

SOCKET_NAME: Final = "socket"
STATE_NAME: Final = "server.json"
LOCK_NAME: Final = "lock"
LOG_NAME: Final = "server.log"
START_SECONDS: Final = 30.0
IDLE_EXIT_SECONDS: Final = 1800
# A server that has the lock is given so long to listen; then, as it may have been leaving, another one is tried.
_LISTEN_SECONDS: Final = 1.0
_LISTEN_POLL_SECONDS: Final = 0.02


def connect(home: Path) -> socket.socket | None:
    """Return a connection to the server of a home, None when there is none; raises SpoolCorrupt for another user's."""
    if not (home / "server").is_dir():
        return None
    directory = os.open(server_directory(home), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(directory, SOCKET_NAME) as address:
            found.connect(address)
    except OSError:
        found.close()
        return None
    finally:
        os.close(directory)
    if peer_uid(found) != os.geteuid():
        found.close()
        raise SpoolCorrupt(f"the server in {home} belongs to another user", hint="use another BLOCKPTY_HOME")
    return found


def state(home: Path) -> dict[str, Any] | None:
    """Return what `server.json` says of the server that runs; None when none does."""
    found = connect(home)
    if found is None:
        return None
    found.close()
    try:
        content: dict[str, Any] = json.loads((home / "server" / STATE_NAME).read_bytes())
    except (OSError, ValueError):
        return None
    return content


def start(home: Path, arguments: Sequence[str] = ("--idle-exit-seconds", str(IDLE_EXIT_SECONDS))) -> None:
    """Start a server in the background and return when it answers; blocks for about a second.

    Another one that starts at the same time is as good. One that is just leaving is waited for.

    Raises what kept the server from starting.
    """
    deadline = time.monotonic() + START_SECONDS
    while True:
        problem = _start_once(home, arguments)
        # A server has the lock before it listens, and while it leaves. Which of the two cannot be seen.
        kept_out = isinstance(problem, Busy) and time.monotonic() < deadline
        if problem is None or _listens_within(home, _LISTEN_SECONDS if kept_out else 0.0):
            return
        if not kept_out:
            raise problem


def _start_once(home: Path, arguments: Sequence[str]) -> BlockptyError | None:
    """Start a server and return what kept it from starting, None when it answers."""
    import subprocess

    from blockpty.surfaces.extras import require

    require("server", "the server of a home")
    directory = server_directory(home)
    # The server reads them too, but could only say what is wrong with them in its log.
    from blockpty.surfaces import settings  # only who starts a server needs them

    settings.load(home, {})
    # Another server may be writing to it: its next line must not leave a hole where this has emptied the file.
    log = open_private(directory / LOG_NAME, os.O_WRONLY | os.O_TRUNC | os.O_APPEND)
    ready_r, ready_w = os.pipe()
    try:
        # Not our directory: who starts a server must be able to remove the one he stands in. It leaves a child of its
        # own behind, so that no process has to wait for it later.
        subprocess.run(
            [sys.executable, "-m", "blockpty", "serve", "--home", str(home), "--ready-fd", str(ready_w), *arguments],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(ready_w,), cwd=_root(), check=False,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
        )  # fmt: skip
        os.close(ready_w)
        ready_w = -1
        answer = _read(ready_r)
    finally:
        os.close(log)
        os.close(ready_r)
        if ready_w >= 0:
            os.close(ready_w)
    return _problem(answer, directory / LOG_NAME)


def _listens_within(home: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_running(home):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LISTEN_POLL_SECONDS)
    return True


def is_running(home: Path) -> bool:
    """Return whether a server answers."""
    found = connect(home)
    if found is not None:
        found.close()
    return found is not None


def _root() -> str:
    return os.path.expanduser("~") if os.path.isdir(os.path.expanduser("~")) else "/"


def _read(descriptor: int) -> bytes:
    import select

    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    parts = []
    while poller.poll(START_SECONDS * 1000):
        part = os.read(descriptor, 65536)
        parts.append(part)
        if not part or part.endswith(b"\n"):
            break
    return b"".join(parts)


def _problem(answer: bytes, log: Path) -> BlockptyError | None:
    try:
        content = json.loads(answer)
    except ValueError:
        tail = log.read_bytes()[-2000:].decode("utf-8", "replace") if log.exists() else ""
        return InternalError(
            "the server did not start", hint=f"blockpty doctor may say why; its log is {log}", details={"log": tail}
        )
    if content.get("ok"):
        return None
    error = content["error"]
    return error_from_code(error["code"], error["message"], error["hint"], error["details"])
