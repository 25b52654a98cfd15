"""Servers of several hosts with one catalogue: what is asked of a conversation elsewhere is handed on."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from websockets.exceptions import ConnectionClosed

from blockpty import Engine
from blockpty.errors import Forbidden, NotFound
from blockpty.surfaces.cli.main import main
from blockpty.surfaces.client import Client
from blockpty.surfaces.peers import PeerClient, Peers
from blockpty.surfaces.private_files import owner_token, server_directory, write_private
from blockpty.surfaces.tokens import add_token
from tests.support.async_tests import async_test
from tests.support.http_client import serving
from tests.support.mcp_clients import end_watcher, http_client, ok
from tests.support.postgres_servers import Databases, Servers, postgres_servers

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

__all__ = ["postgres_servers"]


@pytest.fixture
def databases(postgres_servers: Servers) -> Iterator[Databases]:
    with postgres_servers.databases(sharded=False) as made:
        yield made


@dataclass
class Host:
    home: Path
    address: str

    def may_ask(self, other: Host, token: str) -> None:
        write_private(server_directory(self.home) / "peers", f"{other.address} {token}\n".encode())


@contextlib.asynccontextmanager
async def two_hosts(place: Path, databases: Databases, patch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Host, Host]]:
    patch.setenv("BLOCKPTY_DATABASE_URL", databases.url)
    async with contextlib.AsyncExitStack() as stack:
        hosts = []
        for name in ("one", "two"):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            # It is read when a home is first opened; these live in one process.
            patch.setenv("BLOCKPTY_ADDRESS", f"http://127.0.0.1:{port}")
            hosts.append(Host(place / name, await stack.enter_async_context(serving(place / name, port=port))))
        yield hosts[0], hosts[1]


@async_test(timeout_seconds=100)
async def test_a_conversation_of_another_host_is_worked_with_from_here(
    tmp_path: Path, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        two_hosts(tmp_path, databases, monkeypatch) as (one, two),
        Client(one.home, start=False) as there, Client(two.home, start=False) as here,
    ):  # fmt: skip
        await (await there.open("builds", shell="bash")).run("echo made there")
        conversation = await here.conversation("builds")
        # Told where, as long as no token for that server is here; and no token goes to another address.
        for peers in (None, Host(one.home, one.address + "0"), Host(one.home, one.address.replace("127", "128"))):
            if peers is not None:
                two.may_ask(peers, owner_token(one.home))
            with pytest.raises(NotFound, match=one.address) as told:
                await conversation.status()
            assert told.value.details["address"] == one.address and "reason" not in told.value.details
        two.may_ask(one, owner_token(one.home))
        assert (await conversation.run("echo asked for here")).output.endswith("asked for here\n")
        commands = [block.cmd for block in (await conversation.blocks()).blocks]
        assert commands == ["echo made there", "echo asked for here"]
        async with aclosing(conversation.events(follow=False)) as events:
            assert [event.type async for event in events].count("agent_block_end") == 2
        with pytest.raises(NotFound, match="b9") as missing:
            await conversation.block("b9")
        assert "address" not in missing.value.details
        # Who may ask is decided here.
        for scope, only, refused in (("read", None, True), ("write", ("others",), True), ("write", ("builds",), False)):
            token = add_token(two.home, f"t-{scope}-{refused}", scope, only, 0)
            async with Client(two.home, url=two.address, token=token) as bound:
                limited = await bound.conversation("builds")
                if refused:
                    with pytest.raises(Forbidden):
                        await limited.run("true")
                else:
                    assert (await limited.run("true")).exit_status == 0
        # What another server has handed on is not handed on again.
        async with PeerClient(two.home, url=two.address) as handed_on:
            with pytest.raises(NotFound, match=one.address):
                await (await handed_on.conversation("builds")).status()
        await conversation.close()


@async_test(timeout_seconds=100)
async def test_where_it_cannot_be_handed_on_the_address_and_the_reason_are_told(
    tmp_path: Path, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_hosts(tmp_path, databases, monkeypatch) as (one, two), Client(two.home, start=False) as here:
        async with Client(one.home, start=False) as there:
            await there.open("builds", shell="bash")
            conversation = await here.conversation("builds")
            two.may_ask(one, add_token(one.home, "looks", "read", None, 0))
            assert (await conversation.status()).conversation_id == "builds"
            with pytest.raises(NotFound, match="not enough there") as weak:
                await conversation.run("true")
            assert weak.value.details["address"] == one.address
            two.may_ask(one, "0" * 43)
            with pytest.raises(NotFound, match="not enough there"):
                await conversation.status()
            (server_directory(two.home) / "peers").chmod(0o644)
            with pytest.raises(NotFound, match="not private"):
                await conversation.status()
            two.may_ask(one, owner_token(one.home))
            await (await there.conversation("builds")).close()
            await there.post("/admin/stop")
            await ended(there)
        with pytest.raises(NotFound, match="does not answer") as gone:
            await conversation.status()
        assert gone.value.details["address"] == one.address


@async_test(timeout_seconds=100)
async def test_terminals_replays_and_tools_of_another_host(
    tmp_path: Path, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        two_hosts(tmp_path, databases, monkeypatch) as (one, two),
        Client(one.home, start=False) as there, Client(two.home, start=False) as here,
    ):  # fmt: skip
        await (await there.open("builds", shell="bash")).run("echo made there")
        conversation = await here.conversation("builds")
        sockets = ("ws?from_cursor=0&events=false", "replay?speed=0")
        targets = [f"/v1/conversations/builds/{one}" for one in sockets]
        for target in targets:
            with pytest.raises(NotFound, match=one.address) as told:
                await here.websocket(target)
            assert told.value.details["address"] == one.address
        two.may_ask(one, owner_token(one.home))
        async with PeerClient(two.home, url=two.address) as handed_on:
            for target in targets:
                with pytest.raises(NotFound, match=one.address):
                    await handed_on.websocket(target)
        async with conversation.replay(speed=0) as replay:
            moments = [moment async for moment in replay]
            assert moments[0].type == "screen" and b"made there" in b"".join([one.data for one in moments])
            replay.step(-1)
            assert (await anext(replay)).type == "screen"
        async with await here.websocket(targets[0]) as terminal:
            assert json.loads(await terminal.recv())["type"] == "hello"
            await terminal.send(json.dumps({"type": "resize", "cols": 132, "rows": 43}))
            await terminal.send(b"stty size\r")
            await heard(terminal, b"43 132")
            await terminal.send("[]")
            assert json.loads(await text_frame(terminal))["error"]["code"] == "bad_request"
        # Who may type is decided here, whatever the token for the other server allows.
        token = add_token(two.home, "looks", "read", ("builds",), 0)
        async with Client(two.home, url=two.address, token=token) as bound:
            async with await bound.websocket(targets[0]) as terminal:
                as_text = json.dumps({"type": "input", "data": "echo typed\r"})
                for frame in (b"echo typed\r", as_text, '{"type": "resize"}'):
                    await terminal.send(frame)
                    assert json.loads(await text_frame(terminal))["error"]["code"] == "forbidden"
                await conversation.run("echo seen on")
                assert b"echo typed" not in await heard(terminal, b"seen on\r\n")
            with pytest.raises(Forbidden):
                await bound.websocket("/v1/conversations/others/ws")
        async with http_client(f"{two.address}/mcp", token=owner_token(two.home)) as tools:
            ran = await ok(tools, "pty_run", conversation_id="builds", command="echo by a tool")
            assert ran["output"] == "by a tool\n"
            transcript = await tools.read_resource("blockpty://conversations/builds/transcript")
            assert "by a tool" in str(transcript)
        # It ends here when it ends there.
        async with await here.websocket(targets[0]) as terminal:
            await there.post("/admin/stop")
            assert json.loads(await last_text_frame(terminal))["error"]["details"]["address"] == one.address
            assert terminal.close_code == 1014
        await ended(there)
    await end_watcher()
    # A stopped server leaves its conversations to the next one.
    monkeypatch.delenv("BLOCKPTY_DATABASE_URL")
    async with Engine(tmp_path / "one") as engine:
        await (await engine.conversation("builds")).close()


async def text_frame(terminal: ClientConnection) -> str:
    """Return the next text frame that says more than that the output goes on."""
    while isinstance(frame := await terminal.recv(), bytes) or json.loads(frame)["type"] in ("hello", "event"):
        pass
    return frame


async def last_text_frame(terminal: ClientConnection) -> str:
    """Return the last text frame before the other side closes."""
    last = ""
    with contextlib.suppress(ConnectionClosed):
        while True:
            frame = await terminal.recv()
            last = frame if isinstance(frame, str) else last
    return last


async def heard(terminal: ClientConnection, text: bytes) -> bytes:
    """Return the terminal's bytes up to a text."""
    seen = b""
    while text not in seen:
        frame = await terminal.recv()
        seen += frame if isinstance(frame, bytes) else b""
    return seen


async def ended(client: Client) -> None:
    """Return when a server answers no more."""
    with contextlib.suppress(NotFound):
        while True:
            await client.list()


@pytest.mark.parametrize("as_json", [True, False])
def test_peers_are_added_listed_and_removed_on_the_command_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    def run(*words: str, token: str = "") -> int:
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{token}\n"))
        return main(["peers", *words, "--home", str(home), *(["--json"] if as_json else [])])

    path = server_directory(home) / "peers"
    write_private(path, b"# of others\n")
    first, second, token = "https://build-1.example.org:7717", "http://127.0.0.1:7717", "t" * 43
    assert run("add", first, token="u" * 43) == run("add", second, token=token) == run("add", first, token=token) == 0
    assert path.read_text() == f"# of others\n{second} {token}\n{first} {token}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    for address in ("http://build-1.example.org:7717", "build-1", "https://a b", "https://me@host", "https://h/?a=b"):
        assert run("add", address, token=token) == 2
    for wrong in ("", "two words of it all", "short"):
        assert run("add", first, token=wrong) == 2
    assert run("remove", "https://build-2.example.org") == 1
    capsys.readouterr()
    assert run("list") == 0
    said = capsys.readouterr().out
    assert said.split() == [second, first] if not as_json else json.loads(said)["peers"] == [second, first]
    assert run("remove", first) == 0 and path.read_text() == f"# of others\n{second} {token}\n"
    assert token not in capsys.readouterr().out + said


@async_test
async def test_no_token_leaves_the_machine_in_clear(home: Path) -> None:
    peers = Peers(home)
    for address in ("http://build-1.example.org:7717", "ftp://127.0.0.1", "build-1"):
        write_private(server_directory(home) / "peers", f"# of others\n\n{address} {'0' * 43}\n".encode())
        with pytest.raises(NotFound, match="not one of https"):
            await peers.call(NotFound("elsewhere", details={"address": address}), "status", {"conversation_id": "c"})
    await peers.close()
