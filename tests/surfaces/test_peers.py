"""Servers of several hosts with one catalogue: what is asked of a conversation elsewhere is handed on."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from blockpty.control.principals import OWNER
from blockpty.errors import Forbidden, NotFound, UserInControl
from blockpty.surfaces.client import Client
from blockpty.surfaces.peers import PeerClient, Peers
from blockpty.surfaces.private_files import owner_token, server_directory, write_private
from blockpty.surfaces.tokens import add_token
from tests.support.async_tests import async_test
from tests.support.peer_hosts import Host, databases, ended, two_hosts
from tests.support.postgres_servers import Databases, postgres_servers

__all__ = ["databases", "postgres_servers"]


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
        # The error says where, as long as no token for that server is here; and no token goes to another address.
        for peers in (None, Host(one.home, one.address + "0"), Host(one.home, one.address.replace("127", "128"))):
            if peers is not None:
                two.may_ask(peers, owner_token(one.home))
            with pytest.raises(NotFound, match=one.address) as error:
                await conversation.status()
            assert error.value.details["address"] == one.address and "reason" not in error.value.details
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
                    assert (await limited.blocks(author="user")).blocks == []
                    # An agent here is one there, though our token for that server is its owner's.
                    with pytest.raises(Forbidden, match="types as agent, not as user"):
                        await limited.send("true\n", author="user")
                    with pytest.raises(NotFound, match=r"refuses it: only a person .* owner/t-write-False"):
                        await limited.take_control()
        # Nor is who may be either, and does not say which, a person there because of a person's token.
        two.may_ask(one, add_token(one.home, "persons", "write", None, 0, "user"))
        assert (await conversation.run("true")).block.author == "agent"
        assert (await conversation.take_control()).who == "persons"
        with pytest.raises(UserInControl):
            await conversation.run("true")
        await conversation.release_control()
        two.may_ask(one, owner_token(one.home))
        # A person is one there also where the token may be either's.
        async with Client(two.home, token=add_token(two.home, "carol", "write", None, 0, "user")) as carol:
            assert (await (await carol.conversation("builds")).run("true")).block.author == "user"
        # What another server has handed on is not handed on again.
        async with PeerClient(two.home, url=two.address) as handed_on:
            with pytest.raises(NotFound, match=one.address):
                await (await handed_on.conversation("builds")).status()
        await conversation.close()


@async_test(timeout_seconds=100)
async def test_where_it_cannot_be_handed_on_the_address_and_the_reason_are_given(
    tmp_path: Path, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_hosts(tmp_path, databases, monkeypatch) as (one, two), Client(two.home, start=False) as here:
        async with Client(one.home, start=False) as there:
            await there.open("builds", shell="bash")
            conversation = await here.conversation("builds")
            two.may_ask(one, add_token(one.home, "looks", "read", None, 0))
            assert (await conversation.status()).conversation_id == "builds"
            with pytest.raises(NotFound, match="refuses it: run needs the scope write") as weak:
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


@async_test
async def test_no_token_leaves_the_machine_in_clear(home: Path) -> None:
    peers = Peers(home)
    for address in ("http://build-1.example.org:7717", "ftp://127.0.0.1", "build-1"):
        write_private(server_directory(home) / "peers", f"# of others\n\n{address} {'0' * 43}\n".encode())
        with pytest.raises(NotFound, match="not one of https"):
            await peers.call(
                NotFound("elsewhere", details={"address": address}), OWNER, "status", {"conversation_id": "c"}
            )
    await peers.close()
