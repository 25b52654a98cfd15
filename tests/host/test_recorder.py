"""Recorder: whom it serves, what it answers to nonsense, and when it leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blockpty.errors import NotFound
from blockpty.host import launch, protocol
from blockpty.host.client import HostClient
from tests.support.async_tests import async_test
from tests.support.host_driver import Host, death, gone, running_host


@pytest.mark.linux
@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
@async_test
async def test_another_user_is_sent_away(home: Path) -> None:
    async with running_host(home) as host:
        # As if every directory on the way were open to others: the host still checks the peer.
        (home / "host").chmod(0o711)
        (home / "host" / "host.sock").chmod(0o666)
        script = (
            "import os, socket, sys\n"
            "os.chdir(sys.argv[1])\n"
            "os.setuid(65534)\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "s.connect('host.sock')\n"
            "try:\n"
            '    s.sendall(b\'{"id":1,"op":"hello","protocol":1}\\n\')\n'
            "    print(s.recv(100))\n"
            "except (BrokenPipeError, ConnectionResetError):\n"
            "    print(b'')\n"
        )
        out = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-I", "-c", script, str(home / "host")], capture_output=True, check=False
        )
        assert out.stdout == b"b''\n", out.stderr
        (home / "host").chmod(0o700)
        assert (await host.client.hello()).protocol == 1


@async_test
async def test_nonsense_is_answered_and_the_connection_goes_on(home: Path) -> None:
    async with running_host(home) as host:
        nonsense = [
            b"", b"{", b"[]", b"17", b"\xff\xfe", b'{"id":1}', b'{"id":2,"op":"nothing"}', b'{"id":3,"op":[1]}',
            b'{"id":4,"op":"open"}', b'{"id":5,"op":"subscribe","conversation":"c","epoch":1}',
            b'{"id":6,"op":"input","conversation":"../x"}', b'{"id":7,"op":"hello","protocol":99}',
            b'{"id":8,"op":"close","conversation":"c","grace_ms":"x"}', b'{"id":9,"op":"watch_idle"}', b"[" * 100_000,
        ]  # fmt: skip
        answers = await asyncio.to_thread(_talk, home, *nonsense, b'{"id":10,"op":"list"}')
        assert [answer["ok"] for answer in answers] == [False] * len(nonsense) + [True]
        assert [answer["error"]["code"] for answer in answers[:-1]] == ["bad_request"] * len(nonsense)
        assert (await host.client.hello()).protocol == 1


@async_test
async def test_a_line_without_end_is_cut_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_host(home) as host:
        sock = launch.connect(str(home), start=False)
        assert sock is not None

        def flood(sock: socket.socket) -> int:
            sent = 0
            with sock:
                try:
                    while sent < 2 * protocol.MAX_LINE:
                        sent += sock.send(b"x" * 65536)
                except (BrokenPipeError, ConnectionResetError):
                    pass
            return sent

        assert protocol.MAX_LINE <= await asyncio.to_thread(flood, sock) < 2 * protocol.MAX_LINE
        assert (await host.client.hello()).protocol == 1


@pytest.mark.linux
@async_test
async def test_the_host_leaves_with_its_last_client(home: Path) -> None:
    hellos = set()
    for number in range(1, 6):
        async with running_host(home) as host:
            hellos.add(await host.client.hello())
            one = await host.spoken()
            await one.sh("echo x")
            await one.has_ended(number)
    for hello in hellos:
        await death(hello.keeper)
        await death(hello.recorder)
    assert not (home / "host" / "host.sock").exists()
    assert not (home / "host" / "pid").exists()
    with pytest.raises(NotFound):
        await HostClient.connect(home, start=False)


@pytest.mark.linux
@async_test
async def test_the_host_stays_as_long_as_a_shell_lives(home: Path) -> None:
    client = await HostClient.connect(home)
    hello = await client.hello()
    one = await Host(home, client).spoken()
    opened = await one.sh("read x; echo got $x")
    client.leave()
    async with running_host(home) as host:
        assert (await host.client.hello()).keeper == hello.keeper
        again = await host.spoken()
        assert [listed.pid for listed in await host.client.list()] == [opened.pid]
        await again.type(b"it\r")
        await again.printed(b"got it")
    await gone(hello, home)


@pytest.mark.linux
@async_test
async def test_the_host_leaves_when_the_last_shell_ends_alone(home: Path) -> None:
    client = await HostClient.connect(home)
    hello = await client.hello()
    one = await Host(home, client).spoken()
    opened = await one.sh("sleep 1000")
    client.leave()
    os.kill(opened.pid, signal.SIGKILL)
    await gone(hello, home)
    assert [entry["kind"] for entry in one.entries()[-2:]] == ["exit", "eof"]


@async_test
async def test_answers_that_are_not_read_do_not_stop_the_host(home: Path) -> None:
    async with running_host(home) as host:
        sock = launch.connect(str(home), start=False)
        assert sock is not None
        with sock:
            sock.setblocking(False)
            line = b'{"id":1,"op":"hello","protocol":1}\n' * 1000
            try:
                for _ in range(200):
                    sock.send(line)
            except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                pass
            assert (await host.client.hello()).protocol == 1


def _talk(home: Path, *lines: bytes) -> list[dict[str, Any]]:
    """Send raw lines, read as many answers."""
    sock = launch.connect(str(home), start=False)
    assert sock is not None
    sock.settimeout(30)
    with sock, sock.makefile("rb") as answers:
        for line in lines:
            sock.sendall(line + b"\n")
        return [json.loads(answers.readline()) for _ in lines]
