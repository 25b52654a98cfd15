"""The server of another machine through ssh: `Client(url="ssh:...")`, and peers whose address is one of ssh."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from blockpty.control.principals import OWNER
from blockpty.errors import BadRequest, NotFound
from blockpty.surfaces.client import Client
from blockpty.surfaces.peers import Peers, add_peer, list_peers
from blockpty.surfaces.ssh_way import is_way
from tests.support.async_tests import async_test
from tests.support.ssh_server import RUNS_COMMANDS, SshServer, install, ssh_server

URL = "ssh:127.0.0.1"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    with ssh_server(tmp_path, RUNS_COMMANDS) as made:
        monkeypatch.setenv("PATH", made.environment["PATH"])
        yield made
        for state in (made.directory / "home").rglob("server.json"):
            os.kill(json.loads(state.read_text())["pid"], signal.SIGTERM)


@pytest.mark.parametrize(
    ("address", "known"),
    [(URL, True), ("ssh:me@host:2222", True), ("ssh:-oProxyCommand=x", False), ("ssh:", False), ("https://h", False)],
)
def test_which_address_is_one_of_ssh(address: str, known: bool, tmp_path: Path) -> None:
    assert is_way(address) is known
    if known:
        add_peer(tmp_path, address, "")
        assert list_peers(tmp_path) == [address]
    elif address.startswith("ssh"):
        with pytest.raises(BadRequest):
            add_peer(tmp_path, address, "x" * 40)


@async_test(timeout_seconds=100)
async def test_a_far_server_is_worked_with_and_a_cut_goes_unnoticed(server: SshServer, home: Path) -> None:
    async with Client(url=URL) as nothing_there:
        with pytest.raises(NotFound, match="not installed there"):
            await nothing_there.list()
    install(server)
    async with Client(url=URL) as client:
        conversation = await client.open("c1", shell="bash")
        result = await conversation.run("echo one; false")
        assert (result.output, result.block.exit_status) == ("one\n", 1)
        seen: list[int] = []

        async def follow() -> None:
            async for event in conversation.events():
                seen.append(event.seq)
                if event.type == "shell_exit":
                    return

        following = asyncio.ensure_future(follow())
        for number in range(3):
            await conversation.run(f"seq {number}")
            server.cut()
            # What only looks is asked again, and goes on at the given cursor.
            found = await conversation.wait_for("one", from_cursor=0)
            assert found.matched
        path = "/v1/conversations/c1/ws?from_cursor=0&events=false"
        async with await client.websocket(path) as terminal:
            assert json.loads(await terminal.recv())["type"] == "hello"
        await conversation.close()
        await following
        assert seen == list(range(seen[-1] + 1))
    # A server here hands on what it is asked for to a peer of that address.
    add_peer(home, URL, "")
    peers = Peers(home)
    try:
        found_there = NotFound("c1 is elsewhere", details={"address": URL})
        status = await peers.call(found_there, OWNER, "status", {"conversation_id": "c1"})
        assert status.to_dict()["mode"] == "exited"
        other = NotFound("c1 is elsewhere", details={"address": "ssh:user@else"})
        with pytest.raises(NotFound, match="elsewhere"):
            await peers.call(other, OWNER, "status", {"conversation_id": "c1"})
    finally:
        await peers.close()
