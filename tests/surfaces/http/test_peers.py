"""Servers of several hosts with one catalogue: what is asked of a conversation elsewhere is handed on."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import pytest

from blockpty.errors import Forbidden, NotFound
from blockpty.surfaces.client import Client
from blockpty.surfaces.peers import PeerClient, Peers
from blockpty.surfaces.tokens import add_token, owner_token, server_directory, write_private
from tests.asyncio_support import async_test
from tests.postgres_servers import Databases, Servers, postgres_servers
from tests.surfaces.server.support import serving

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
            while True:
                try:
                    await there.list()
                except NotFound:
                    break
        with pytest.raises(NotFound, match="does not answer") as gone:
            await conversation.status()
        assert gone.value.details["address"] == one.address


@async_test
async def test_no_token_leaves_the_machine_in_clear(home: Path) -> None:
    peers = Peers(home)
    for address in ("http://build-1.example.org:7717", "ftp://127.0.0.1", "build-1"):
        write_private(server_directory(home) / "peers", f"# of others\n\n{address} {'0' * 43}\n".encode())
        with pytest.raises(NotFound, match="not one of https"):
            await peers.call(NotFound("elsewhere", details={"address": address}), "status", {"conversation_id": "c"})
    await peers.close()
