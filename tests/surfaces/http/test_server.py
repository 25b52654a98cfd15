"""S11, S13: a server in a process of its own. Its token shows nowhere; no other user gets at its socket and files."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import blockpty
from blockpty.errors import NotFound, SpoolCorrupt, Unauthorized
from blockpty.surfaces import launching
from blockpty.surfaces.client import Client
from blockpty.surfaces.http.metrics import Metrics
from blockpty.surfaces.http.server import leave_when_idle, serve
from blockpty.surfaces.private_files import owner_token, renew_owner_token
from blockpty.surfaces.settings import Settings
from blockpty.surfaces.tokens import add_token
from tests.support.async_tests import async_test
from tests.support.http_server import read_answer, serving
from tests.support.unsafe_files import mode

OTHER_USER = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")


@contextlib.asynccontextmanager
async def started(home: Path) -> AsyncIterator[Client]:
    """Start the server as the command line does, in a process of its own; `home` ends it."""
    await asyncio.to_thread(launching.start, home)
    async with Client(home, start=False) as client:
        try:
            yield client
        finally:
            for one in (await client.list()).conversations:
                await client.call("close", {"conversation_id": one.conversation_id})


def processes() -> dict[int, bytes]:
    """The command line and the environment of every process there is."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                said = [Path(f"/proc/{entry}/{name}").read_bytes() for name in ("cmdline", "environ")]
                found[int(entry)] = b"".join(said)
    return found


@pytest.mark.linux
@async_test
async def test_s11_the_token_is_in_its_file_and_nowhere_else(home: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "end")
    before = os.umask(0)
    try:
        async with started(home) as client:
            token = owner_token(home)
            conversation = await client.open("c1", shell="bash")
            assert (await conversation.run("env; tr '\\0' '\\n' < /proc/$PPID/environ")).output.count(token) == 0
            # A client that puts it into an address, and one that gives a wrong one.
            state = launching.state(home)
            assert state is not None
            port = int(state["url"].rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for line in (f"GET /v1/conversations?token={token} HTTP/1.1", f"GET /{token} HTTP/1.1"):
                writer.write(f"{line}\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                assert (await read_answer(reader)).status == 401
            writer.write(f"NONSENSE {token}\r\n\r\n".encode())
            assert (await read_answer(reader)).status == 400
            writer.close()
            shell = Client(home, start=False)
            command = [sys.executable, "-m", "blockpty", "run", "c1", f"cat {tmp_path / 'end'}", "--json"]
            cli = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            # From the start of the program until its command runs.
            runs, seen = asyncio.ensure_future(asyncio.to_thread((tmp_path / "end").open, "wb")), [processes()]
            while not runs.done():
                await asyncio.sleep(0)
                seen.append(processes())
            runs.result().close()
            assert state["pid"] in seen[0] and cli.pid in seen[-1]
            assert not [pid for found in seen for pid, said in found.items() if token.encode() in said]
            assert token.encode() not in (await cli.communicate())[0]
            await shell.close()
            holding = [path for path in home.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
            assert holding == [home / "server" / "token"]
            assert {path.name: mode(path) for path in (home / "server").iterdir()} == {
                "token": 0o600, "socket": 0o600, "server.json": 0o600, "lock": 0o600, "server.log": 0o600,
                "tokens.lock": 0o600, "port": 0o600,
            }  # fmt: skip
            assert mode(home / "server") == mode(home) == 0o700
    finally:
        os.umask(before)


@async_test
async def test_s11_a_renewed_token_holds_at_once(home: Path) -> None:
    async with serving(home) as server:
        old = server.client()
        assert (await old.list()).conversations == []
        renew_owner_token(home)
        with pytest.raises(Unauthorized):
            await old.list()
        assert (await server.ask("GET", "/v1/conversations")).code == "unauthorized"
        server.token = owner_token(home)
        assert (await server.ask("GET", "/v1/conversations")).status == 200


@async_test
async def test_s11_a_browser_gets_a_token_for_a_code_that_works_once(home: Path) -> None:
    async with serving(home) as server:
        given = await server.ask("POST", "/auth/code", {})
        code = given.content["code"]
        assert given.headers["cache-control"] == "no-store"
        page = [("Origin", server.state["url"])]
        body: object
        for body in ({}, {"code": 5}, {"code": code, "more": 1}, {"code": [code]}, [], {"code": None}):
            assert (await server.ask("POST", "/auth/token", body, token=None, headers=page)).code == "bad_request"
        for body in ({"code": "x"}, {"code": ""}, {"code": server.token}):
            assert (await server.ask("POST", "/auth/token", body, token=None, headers=page)).code == "unauthorized"
        changed = await server.ask("POST", "/auth/token", {"code": code}, token=None, headers=page)
        token = changed.content["token"]
        assert token not in (code, server.token)
        assert (await server.ask("GET", "/v1/conversations", token=token, headers=page)).status == 200
        again = await server.ask("POST", "/auth/token", {"code": code}, token=None, headers=page)
        assert (again.status, again.code) == (401, "unauthorized")
        assert (await server.ask("GET", "/v1/conversations", token=code)).code == "unauthorized"
        assert (await server.ask("GET", f"/auth/token?code={code}", token=None)).status == 405


@AS_ROOT
@async_test
async def test_s13_another_user_gets_nothing(home: Path) -> None:
    async with serving(home) as server:
        conversation = await server.client().open("c1", shell="bash")
        await conversation.run("echo private")
        ways = [home, *home.rglob("*")]
        assert await asyncio.to_thread(attempts, ways, home) == {"read": [], "written": [], "connected": []}
        # Also where every door on the way stands open: the socket itself asks who is there.
        base = tempfile.gettempdir()
        for directory in (*home.parents, home, home / "server"):
            if directory.is_relative_to(base):
                directory.chmod(directory.stat().st_mode | 0o055)
        (home / "server" / "socket").chmod(0o666)
        found = await asyncio.to_thread(attempts, [home / "server" / "socket"], home)
        assert found["connected"] == [str(home / "server" / "socket")], "it is let into the queue,"
        assert await asyncio.to_thread(spoken, home, server.token) == b"", "and gets no answer, whatever it knows"
        assert (await server.ask("GET", "/healthz")).status == 200
        async with Client(home, start=False) as client:
            assert [one.conversation_id for one in (await client.list()).conversations] == ["c1"]


def as_another_user(program: str, *arguments: str) -> bytes:
    """Run a program as another user, who need not be able to start this Python."""
    become = f"import json, os, socket, sys; os.setgroups([]); os.setgid({OTHER_USER}); os.setuid({OTHER_USER})"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{become}; os.chdir('/')\n{textwrap.dedent(program)}", *arguments],
        capture_output=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def attempts(paths: list[Path], home: Path) -> dict[str, list[str]]:
    """Return what another user managed to read, write and connect to, of all files by their full names."""
    program = """
        read, written, connected = [], [], []
        for path in sys.argv[2:]:
            for flags, into in ((os.O_RDONLY, read), (os.O_WRONLY | os.O_APPEND, written)):
                try:
                    os.close(os.open(path, flags | os.O_NONBLOCK))
                    into.append(path)
                except OSError:
                    pass
            try:
                one = socket.socket(socket.AF_UNIX)
                one.connect(path)
                connected.append(path)
            except OSError:
                pass
        try:
            os.close(os.open(sys.argv[1] + "/planted", os.O_CREAT | os.O_WRONLY))
            written.append("planted")
        except OSError:
            pass
        print(json.dumps({"read": read, "written": written, "connected": connected}))
        """
    found: dict[str, list[str]] = json.loads(as_another_user(program, str(home), *map(str, paths)))
    return found


def spoken(home: Path, token: str) -> bytes:
    """Return what the server said to another user who has its token and reached its socket."""
    program = """
        one = socket.socket(socket.AF_UNIX)
        one.connect(sys.argv[1])
        try:
            one.sendall(b"GET /v1/conversations HTTP/1.1\\r\\nHost: localhost\\r\\n"
                        b"Authorization: Bearer " + sys.argv[2].encode() + b"\\r\\n\\r\\n")
            sys.stdout.buffer.write(one.recv(65536))
        except OSError:
            pass
        """
    return as_another_user(program, str(home / "server" / "socket"), token)


@AS_ROOT
@async_test
async def test_s13_a_directory_that_another_user_prepared_is_refused(home: Path) -> None:
    outside = home.parent
    for squatted in (outside / "squatted", outside / "inner" / "server"):
        squatted.mkdir(parents=True, mode=0o777)
        os.chown(squatted, OTHER_USER, OTHER_USER)
        target = squatted if squatted.name == "squatted" else squatted.parent
        with pytest.raises(SpoolCorrupt):
            await serve(target, Settings(port=0), lambda state: None)
        with pytest.raises(SpoolCorrupt):
            launching.start(target)
        async with Client(target) as client:
            with pytest.raises(SpoolCorrupt):
                await client.list()
        assert list(squatted.iterdir()) == [], "nothing of ours was put there"


@AS_ROOT
@async_test
async def test_s13_a_server_of_another_user_is_not_talked_to(home: Path) -> None:
    """A user who could put a socket in place would be sent the token."""
    owner_token(home)
    heard = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(home / "server"):  # a short name
        heard.bind("socket")
    # Who listens is who called listen(): another user, who was handed the socket.
    ready_r, ready_w = os.pipe()
    stop_r, stop_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgid(OTHER_USER)
        os.setuid(OTHER_USER)
        heard.listen(5)
        os.write(ready_w, b"x")
        os.close(stop_w)
        os.read(stop_r, 1)
        os._exit(0)
    try:
        os.read(ready_r, 1)
        with pytest.raises(SpoolCorrupt, match="another user"):
            launching.connect(home)
        async with Client(home, start=False) as client:
            with pytest.raises(SpoolCorrupt, match="another user"):
                await client.list()
    finally:
        for one in (ready_r, ready_w, stop_r, stop_w):
            os.close(one)
        heard.close()
        await asyncio.to_thread(os.waitpid, pid, 0)
    (home / "server" / "socket").unlink()


@async_test
async def test_s13_links_in_the_place_of_files_are_not_followed(home: Path) -> None:
    victim = home.parent / "victim"
    for name in ("token", "lock", "tokens.json", "tokens.lock", "server.log", "server.json", "socket"):
        directory = home.parent / f"for-{name}"
        (directory / "server").mkdir(parents=True, mode=0o700)
        directory.chmod(0o700)
        victim.write_bytes(b"untouched")
        (directory / "server" / name).symlink_to(victim)
        if name in ("token", "lock", "tokens.json", "tokens.lock"):
            with pytest.raises(SpoolCorrupt):
                await serve(directory, Settings(port=0), lambda state: None)
        else:
            # What is replaced as a whole is ours afterwards, and the link is gone.
            async with serving(directory) as server:
                assert (await server.ask("GET", "/healthz")).status == 200
        if name in ("tokens.json", "tokens.lock"):
            with pytest.raises(SpoolCorrupt):
                add_token(directory, "ci", "read", None, 0)
        if name == "server.log":
            with pytest.raises(SpoolCorrupt):
                launching.start(directory)
        assert victim.read_bytes() == b"untouched", name


@async_test
async def test_an_idle_server_leaves_but_not_while_a_shell_runs_or_something_is_asked() -> None:
    now, left, shells = 100.0, [], {"c1"}
    metrics = Metrics()
    metrics.last_activity = now

    async def live() -> set[str]:
        return shells

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        assert not left and now < 1000
        if now > 200:
            shells.clear()
            metrics.in_flight = int(now < 300)
            metrics.subscribers = int(300 <= now < 400)

    engine: Any = SimpleNamespace(live=live)
    await leave_when_idle(engine, metrics, 20, lambda: left.append(now), clock=lambda: now, sleep=sleep)
    # It looks every five seconds: the last time that something was there is 395.
    assert left == [395.0 + 20]


@async_test
async def test_a_client_without_a_server_says_so(home: Path) -> None:
    async with Client(home, start=False) as client:
        with pytest.raises(NotFound, match="no server runs"):
            await client.list()
    async with Client(home, url="http://127.0.0.1:1", token="x") as client:
        with pytest.raises(NotFound, match="no server answers"):
            await client.list()
    assert Path(blockpty.__file__).is_file()
