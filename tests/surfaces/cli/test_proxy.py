"""blockpty proxy: what comes in goes to the server of the home, and what it answers comes out, to the last byte."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from blockpty.host.ssh_bridge import GREETING
from blockpty.surfaces import launching
from blockpty.surfaces.cli.main import main
from blockpty.surfaces.private_files import owner_token

if TYPE_CHECKING:
    import pytest

MANY = b"0123456789abcde\n" * 65_536


@contextmanager
def standard(number: int, other: int) -> Iterator[None]:
    """Have a descriptor stand for the standard input or output of this process, and close it then."""
    kept = os.dup(number)
    os.dup2(other, number)
    os.close(other)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def test_bytes_pass_both_ways_until_the_server_ends_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, server = socket.socketpair()
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    taken, given = bytearray(), bytearray()

    def serve() -> None:
        with server:
            while data := server.recv(65_536):
                taken.extend(data)
            server.sendall(MANY)

    def ask() -> None:
        with open(in_write, "wb") as file:
            file.write(MANY[::-1])

    def hear() -> None:
        with open(out_read, "rb") as file:
            given.extend(file.read())

    monkeypatch.setattr(launching, "connect", lambda _home: here)
    threads = [threading.Thread(target=one) for one in (serve, ask, hear)]
    with standard(0, in_read), standard(1, out_write):
        for thread in threads:
            thread.start()
        assert main(["proxy"]) == 0
    for thread in threads:
        thread.join()
    assert taken == MANY[::-1] and given == MANY


def test_a_server_is_started_and_its_greeting_lets_this_user_in(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = socket.socketpair()
    found: list[socket.socket | None] = [None, ends[0]]
    started: list[Path] = []
    monkeypatch.setattr(launching, "connect", lambda _home: found.pop(0))
    monkeypatch.setattr(launching, "start", started.append)
    assert main(["proxy", "--greet"]) == 0
    assert started == [home]
    before, _, said = capsys.readouterr().out.partition(GREETING.decode())
    assert before == "\n" and json.loads(said) == {"version": 1, "token": owner_token(home)}
    with ends[1]:
        ends[1].setblocking(False)
        assert ends[1].recv(1) == b""


def test_a_server_that_does_not_come_is_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launching, "connect", lambda _home: None)
    monkeypatch.setattr(launching, "start", lambda _home: None)
    assert main(["proxy"]) == 1
    assert f"no server answers in {home}" in capsys.readouterr().err
