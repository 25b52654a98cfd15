"""WebSockets of a conversation elsewhere: frames go on both ways, and who may type is decided here."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from websockets.exceptions import ConnectionClosed

from blockpty import Engine
from blockpty.errors import Forbidden, NotFound
from blockpty.surfaces.client import Client
from blockpty.surfaces.peers import PeerClient
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.tokens import add_token
from tests.support.async_tests import async_test
from tests.support.mcp_clients import end_watcher, http_client, ok
from tests.support.peer_hosts import databases, ended, two_hosts
from tests.support.postgres_servers import Databases, postgres_servers

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

__all__ = ["databases", "postgres_servers"]


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
            with pytest.raises(NotFound, match=one.address) as error:
                await here.websocket(target)
            assert error.value.details["address"] == one.address
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
        token = add_token(two.home, "robot", "write", ("builds",), 0)
        robot = Client(two.home, url=two.address, token=token)
        async with robot, await robot.websocket(targets[0]) as terminal:
            for kind in ("take_control", "ask_control"):
                await terminal.send(json.dumps({"type": kind}))
                refused = json.loads(await text_frame(terminal))["error"]
                assert refused["code"] == "forbidden" and "owner/robot" in refused["message"]
            # What a person may type at a prompt, an agent runs.
            await terminal.send(b"true\r")
            assert json.loads(await text_frame(terminal))["error"]["code"] == "no_session"
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
