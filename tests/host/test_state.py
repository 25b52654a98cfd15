"""Who may talk to the host, what it does with nonsense, and when it comes and goes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blockpty.errors import NotFound, SpawnFailed
from blockpty.host import launch, protocol
from blockpty.host.client import Hello, HostClient
from tests.support.async_tests import async_test
from tests.support.host_driver import Host, death, running_host


async def gone(hello: Hello, home: Path) -> None:
    """Wait until keeper and recorder have ended."""
    await death(hello.recorder)
    await death(hello.keeper)
    assert not (home / "host" / "host.sock").exists()


@async_test
async def test_modes_of_what_it_leaves_in_the_home(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("echo x")
        await one.ended()
        modes = {
            str(path.relative_to(home)): stat.S_IMODE(path.lstat().st_mode) for path in [home, *home.rglob("*")]
        }  # fmt: skip
        assert modes["host"] == 0o700
        assert modes["host/host.sock"] == 0o600
        wrong = {name: oct(mode) for name, mode in modes.items() if mode & 0o077}
        assert wrong == {}


@async_test
async def test_a_home_that_others_may_enter_is_refused(home: Path) -> None:
    (home / "host").mkdir(mode=0o700)
    (home / "host").chmod(0o755)
    with pytest.raises(SpawnFailed, match="mode 0755"):
        await HostClient.connect(home)
    (home / "host").rmdir()
    (home / "elsewhere").mkdir(mode=0o700)
    (home / "host").symlink_to(home / "elsewhere")
    with pytest.raises(SpawnFailed):
        await HostClient.connect(home)


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


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a file to another user")
@async_test
async def test_a_directory_of_another_user_is_refused(home: Path) -> None:
    (home / "host").mkdir(mode=0o700)
    os.chown(home / "host", 65534, 65534)
    with pytest.raises(SpawnFailed, match="belongs to user 65534"):
        await HostClient.connect(home)
    os.chown(home / "host", 0, 0)


def _talk(home: Path, *lines: bytes) -> list[dict[str, Any]]:
    """Send raw lines, read as many answers."""
    sock = launch.connect(str(home), start=False)
    assert sock is not None
    sock.settimeout(30)
    with sock, sock.makefile("rb") as answers:
        for line in lines:
            sock.sendall(line + b"\n")
        return [json.loads(answers.readline()) for _ in lines]


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


@async_test
async def test_two_clients_that_start_at_once_make_one_host(home: Path) -> None:
    clients = await asyncio.gather(*(HostClient.connect(home) for _ in range(8)))
    hellos = [await client.hello() for client in clients]
    assert len({(hello.keeper, hello.recorder) for hello in hellos}) == 1
    for client in clients:
        client.leave()
    await gone(hellos[0], home)


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
async def test_a_deep_home(home: Path) -> None:
    deep = home / ("d" * 100) / ("e" * 100)
    async with running_host(deep) as host:
        one = await host.spoken()
        await one.sh("echo deep")
        await one.ended()
        assert one.stream() == b"deep\r\n"
        hello = await host.client.hello()
    await gone(hello, deep)


@pytest.mark.linux
@async_test
async def test_the_host_is_light(home: Path) -> None:
    async with running_host(home) as host:
        hello = await host.client.hello()
        for pid in (hello.keeper, hello.recorder):
            maps = Path(f"/proc/{pid}/maps").read_text()
            assert "orjson" not in maps and "_asyncio" not in maps and "_ssl" not in maps
            assert os.getsid(pid) != os.getsid(0)
            assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")


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
