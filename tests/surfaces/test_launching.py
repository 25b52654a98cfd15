"""Launch of a home's server: who is there, and what is said of one that did not start."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from blockpty.errors import BadRequest, InternalError
from blockpty.host.protocol import socket_address
from blockpty.surfaces import launching
from blockpty.surfaces.private_files import open_private, server_directory


def listen(home: Path) -> socket.socket:
    directory = os.open(server_directory(home), os.O_RDONLY | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX)
    with socket_address(directory, launching.SOCKET_NAME) as address:
        listener.bind(address)
    os.close(directory)
    listener.listen()
    return listener


def test_asking_for_a_server_makes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert launching.connect(home) is None
    assert launching.state(home) is None
    assert not launching.is_running(home)
    assert not home.exists()


def test_the_socket_and_the_state_of_a_dead_server_are_no_server(tmp_path: Path) -> None:
    with listen(tmp_path):
        assert launching.is_running(tmp_path)
    (tmp_path / "server" / launching.STATE_NAME).write_text('{"pid": 1}')
    assert not launching.is_running(tmp_path)
    assert launching.state(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "state"), [(b'{"pid": 1}', {"pid": 1}), (b'{"pid', None), (b"\xff", None), (None, None)]
)
def test_the_state_of_a_server_is_what_its_file_says(
    tmp_path: Path, content: bytes | None, state: dict[str, int] | None
) -> None:
    with listen(tmp_path):
        if content is not None:
            (tmp_path / "server" / launching.STATE_NAME).write_bytes(content)
        assert launching.state(tmp_path) == state


def test_a_server_that_could_not_start_says_why(tmp_path: Path) -> None:
    error = {"code": "bad_request", "message": "no such address", "hint": "another", "details": {}}
    problem = launching._problem(json.dumps({"ok": False, "error": error}).encode(), tmp_path / "log")
    assert isinstance(problem, BadRequest)
    assert (problem.message, problem.hint) == ("no such address", "another")
    assert launching._problem(b'{"ok": true}', tmp_path / "log") is None


@pytest.mark.parametrize("answer", [b"", b'{"ok": tr', b"\xff\n"])
def test_the_end_of_the_log_of_a_server_that_died_is_reported(tmp_path: Path, answer: bytes) -> None:
    log = tmp_path / "log"
    assert isinstance(launching._problem(answer, log), InternalError)
    log.write_bytes(b"a" * 5000 + b"\xffthe end")
    problem = launching._problem(answer, log)
    assert isinstance(problem, InternalError)
    assert problem.details["log"].endswith("\ufffdthe end")
    assert len(problem.details["log"]) <= 2000


@contextlib.contextmanager
def start_kept_out(home: Path) -> Iterator[tuple[Future[None], int]]:
    """Start a server while the lock is taken; yield the start and the lock once the server has found it so."""
    lock = open_private(server_directory(home) / launching.LOCK_NAME, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(launching.start, home)
        log = home / "server" / launching.LOG_NAME
        while not (log.exists() and b"already" in log.read_bytes()) and not started.done():
            time.sleep(0.01)
        yield started, lock


def test_a_server_that_has_the_lock_and_does_not_listen_yet_is_waited_for(home: Path) -> None:
    with start_kept_out(home) as (started, lock):
        with listen(home):
            started.result(timeout=60)
        os.close(lock)


def test_a_server_that_leaves_is_waited_for_and_another_one_started(home: Path) -> None:
    with start_kept_out(home) as (started, lock):
        os.close(lock)
        started.result(timeout=60)
    state = launching.state(home)
    assert state is not None and state["pid"] != os.getpid()
