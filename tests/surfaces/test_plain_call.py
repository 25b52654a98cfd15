"""Calls without a client: what is asked, what is asked again, and what a lost server means."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blockpty.errors import Busy, ConnectionLost
from blockpty.ops.manifest import manifest_entry
from blockpty.surfaces import launching, plain_call
from blockpty.surfaces.private_files import owner_token, server_directory
from tests.support.async_tests import async_test

LIST = manifest_entry("list")
RUN = manifest_entry("run")


@contextlib.contextmanager
def pretending(home: Path, *answers: bytes) -> Iterator[list[str]]:
    """Stand in for the server of a home, with one answer for each request; gives the requests."""
    asked: list[str] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(server_directory(home) / launching.SOCKET_NAME))
        listening.listen()

        def serve() -> None:
            for answer in answers:
                connection, _ = listening.accept()
                with connection:
                    received = b""
                    while b"\r\n\r\n" not in received:
                        received += connection.recv(65536)
                    asked.append(received.decode())
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield asked
        thread.join()


def http(content: Any, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d OK\r\n\r\n" % status + json.dumps(content).encode()


FOUND = http({"ok": True, "conversations": []})


def called(home: Path, name: str, params: dict[str, Any]) -> Any:
    call = plain_call.begin(home, manifest_entry(name), params)
    assert call is not None
    return call.result()


def test_where_no_server_runs_nothing_is_asked_and_nothing_made(tmp_path: Path) -> None:
    assert plain_call.begin(tmp_path / "home", LIST, {}) is None
    assert not (tmp_path / "home").exists()


def test_what_only_looks_is_asked_for_again_and_nothing_else(home: Path) -> None:
    with pretending(home, FOUND[:-3], FOUND, b"", b"") as asked:
        assert called(home, "list", {}).conversations == []
        assert len(asked) == 2, "half an answer, and then a whole one"
        with pytest.raises(ConnectionLost, match="lost before the answer"):
            called(home, "run", {"conversation_id": "c1", "command": "true"})
        assert len(asked) == 3, "it may have run"
        with pytest.raises(ConnectionLost, match="lost before the answer"):
            called(home, "enter", {"conversation_id": "c1"})
    assert asked[0].startswith("GET /v1/conversations") and f"Bearer {owner_token(home)}" in asked[0]


def test_an_error_is_raised(home: Path) -> None:
    busy = {"ok": False, "error": {"code": "busy", "message": "b1 runs", "hint": "wait", "details": {}}}
    with pretending(home, http(busy, 409)), pytest.raises(Busy, match="b1 runs") as raised:
        called(home, "run", {"conversation_id": "c1", "command": "true"})
    assert raised.value.hint == "wait"


@async_test
async def test_the_rest_of_a_call_can_be_awaited(home: Path) -> None:
    with pretending(home, FOUND, b""):
        call = plain_call.begin(home, LIST, {})
        assert call is not None
        call.wait(0)
        assert (await call.rest()).to_dict() == {"ok": True, "conversations": []}
        call = plain_call.begin(home, LIST, {})
        assert call is not None
        with pytest.raises(ConnectionLost, match="lost before the answer"):
            await call.rest()
