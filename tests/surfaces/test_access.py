"""S12: what a token may do. Every operation, over every way in, with tokens of every kind."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from blockpty.errors import Unauthorized
from blockpty.model.events import Event
from blockpty.ops.operation import Effect
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.tokens import add_token, remove_token
from tests.support.async_tests import async_test
from tests.support.http_server import Answer, Server, serving
from tests.support.operations import PARAMS

NEEDED = {Effect.READ: 1, Effect.INPUT: 2, Effect.LIFECYCLE: 3}
SCOPES = {"read": 1, "write": 2, "admin": 3}
OF_ONE = [name for name, operation in OPERATIONS.items() if "conversation_id" in PARAMS[name]]


async def ask(server: Server, token: str, name: str, conversation_id: Any) -> Answer:
    """Call an operation as a client would, with parameters that are all valid."""
    method, path = OPERATIONS[name].route
    params = {key: value for key, value in PARAMS[name].items() if key != "data_b64"}
    if "conversation_id" in params:
        params["conversation_id"] = conversation_id
    for key in list(params):
        if f"{{{key}}}" in path:
            path = path.replace(f"{{{key}}}", str(params.pop(key)))
    if method == "POST":
        return await server.ask("POST", path, params, token=token)
    query = urlencode({key: json.dumps(value) if isinstance(value, bool) else value for key, value in params.items()})
    return await server.ask("GET", f"{path}?{query}", token=token)


@async_test
async def test_s12_a_token_for_one_conversation_reaches_no_other(home: Path) -> None:
    assert len(OF_ONE) >= 24
    async with serving(home) as server:
        await server.client().open("a", shell="bash")
        b = await server.client().open("b", shell="bash")
        only_a = add_token(home, "ta", "admin", ("a",), 0)
        before = (await b.status()).cursor
        for name in OF_ONE:
            there = await ask(server, only_a, name, "b")
            assert (there.status, there.code) == (403, "forbidden"), name
            # Whether it exists must not show: the same answer to the byte.
            nowhere = await ask(server, only_a, name, "no-such")
            assert (nowhere.status, nowhere.body) == (there.status, there.body), name
        assert not (home / "conversations" / "no-such").exists()
        for unnamed in (None, "", [], {}, ["a"], {"a": 1}, 1, True, "a\0", "A", "a "):
            answer = await server.ask("POST", "/v1/conversations", {"conversation_id": unnamed}, token=only_a)
            assert (answer.status, answer.code) == (403, "forbidden"), unnamed
        assert (await server.ask("POST", "/v1/conversations", {}, token=only_a)).code == "forbidden"
        listed = (await server.ask("GET", "/v1/conversations", token=only_a)).content["conversations"]
        assert [one["conversation_id"] for one in listed] == ["a"]
        assert (await server.ask("GET", "/v1/conversations?filter=b", token=only_a)).content["conversations"] == []
        assert (await b.status()).cursor == before
        assert (await server.ask("GET", "/v1/conversations/a/status", token=only_a)).status == 200
        ran = await server.ask("POST", "/v1/conversations/a/run", {"command": "echo hers"}, token=only_a)
        assert ran.content["output"] == "hers\n"
        for method, path in (("GET", "/metrics"), ("POST", "/admin/stop")):
            assert (await server.ask(method, path, {} if method == "POST" else None, token=only_a)).code == "forbidden"


@pytest.mark.parametrize("scope", SCOPES)
@async_test
async def test_s12_a_scope_is_enough_for_its_effects_and_no_others(home: Path, scope: str) -> None:
    async with serving(home) as server:
        # A person's: agents may not answer approvals, whatever their scope.
        token = add_token(home, scope, scope, None, 0, "user")
        for name, operation in OPERATIONS.items():
            # There is none: a caller with the right scope gets that answer, and nothing happens.
            answer = await ask(server, token, name, "none" if name != "open" else "../none")
            if SCOPES[scope] < NEEDED[operation.effect]:
                assert (answer.status, answer.code) == (403, "forbidden"), name
            elif name == "list":
                assert answer.content == {"ok": True, "conversations": []}
            elif name == "overview":
                assert answer.content["total_blocks"] == 0
            elif name == "audit":
                assert {entry["operation"] for entry in answer.content["entries"]} <= set(OPERATIONS)
            elif name == "prune":
                assert answer.content["deleted"] == []
            elif name == "get_file" and scope != "admin":
                assert answer.code == "forbidden", "the sample asks for secrets as they are"
            elif name == "archive" and answer.code == "archive_unreachable":
                pass  # allowed, and there is no store
            else:
                assert (answer.status, answer.code) in ((404, "not_found"), (400, "bad_request")), (name, answer.body)
        assert (await server.ask("GET", "/metrics", token=token)).status == 200
        if scope != "admin":
            assert (await server.ask("POST", "/admin/stop", {}, token=token)).code == "forbidden"


@async_test
async def test_s12_over_a_websocket(home: Path) -> None:
    async with serving(home) as server:
        await server.client().open("a", shell="bash")
        b = await server.client().open("b", shell="bash")
        only_a, reader = add_token(home, "ta", "admin", ("a",), 0), add_token(home, "tr", "read", None, 0)
        bodies = []
        for name in ("b", "no-such", "B"):
            with pytest.raises(InvalidStatus) as caught:
                async with connect(url(server, name), additional_headers=bearer(only_a)):
                    pass
            assert caught.value.response.status_code == 403
            bodies.append(bytes(caught.value.response.body))
        assert len(set(bodies)) == 1, "whether it exists does not show"
        cursor = (await b.status()).cursor
        async with connect(url(server, "b"), additional_headers=bearer(reader)) as socket:
            assert json.loads(await socket.recv())["type"] == "hello"
            for frame in (
                b"touch escaped\n", '{"type": "input", "data": "touch escaped\\n"}',
                '{"type": "resize", "cols": 10, "rows": 10}',
                '{"type": "input", "data": "touch escaped\\n", "conversation_id": "a"}',
            ):  # fmt: skip
                await socket.send(frame)
                refusal = json.loads(await socket.recv())
                assert (refusal["type"], refusal["error"]["code"]) == ("error", "forbidden")
        async with connect(url(server, "a"), additional_headers=bearer(only_a)) as socket:
            await socket.recv()
            # The socket is a's; a frame cannot say otherwise.
            await socket.send('{"type": "resize", "cols": 99, "rows": 9, "conversation_id": "b"}')
            while (await (await server.client().conversation("a")).status()).cols != 99:
                pass
        status = await b.status()
        assert (status.cursor, status.cols) == (cursor, 80)


@async_test
async def test_s12_what_goes_on_for_long_ends_with_its_token(home: Path) -> None:
    async with serving(home) as server:
        a = await server.client().open("a", shell="bash")
        await a.exec_interactive("cat")
        writer, reader = add_token(home, "tw", "write", None, 0), add_token(home, "tr", "read", None, 0)
        own = [event.seq async for event in a.events(follow=False)]
        stream = server.client(reader).stream("events", {"conversation_id": "a", "from_seq": own[-1]})
        async with (
            contextlib.aclosing(cast("AsyncGenerator[Event, None]", stream)) as events,
            connect(url(server, "a") + "?events=false", additional_headers=bearer(writer)) as typing,
            connect(url(server, "a") + "?events=false", additional_headers=bearer(reader)) as looking,
        ):
            await anext(events)
            await typing.send(b"before\n")
            await a.wait_for("before", from_cursor=0)
            remove_token(home, "tw")
            remove_token(home, "tr")
            await typing.send(b"after\n")
            assert (await rest(typing))[0] == 4401
            await a.send("secret\n")
            await a.wait_for("secret")
            code, seen = await rest(looking)
            assert code == 4401 and "secret" not in seen
            received: list[Event] = []
            with pytest.raises(Unauthorized):
                await collect(events, received)
            assert "secret" not in str(received)
        assert "after" not in (await a.read(0)).data


@async_test
async def test_secrets_are_shown_to_no_token_but_an_administrators(home: Path) -> None:
    async with serving(home) as server:
        conversation = await server.client().open("a", shell="bash")
        await conversation.run("echo 'password: corr3ct-h0rse'")
        path = "/v1/conversations/a/export"
        for scope in SCOPES:
            token = add_token(home, f"t{scope}", scope, None, 0)
            for wanted in (False, "false", 0, "no"):
                answer = await server.ask("POST", path, {"format": "text", "redact": wanted}, token=token)
                # An administrator is refused by the engine, which does not allow it unless configured to.
                no = (403, "forbidden") if wanted is False or scope != "admin" else (400, "bad_request")
                assert (answer.status, answer.code) == no
                assert (b"redacted output only" in answer.body) is (scope == "admin" and wanted is False)
            answer = await server.ask("POST", path, {"format": "text"}, token=token)
            assert answer.status == 200 and b"corr3ct" not in answer.body and b"password: ***" in answer.body


async def rest(socket: ClientConnection) -> tuple[int | None, str]:
    """Return how a socket was closed, and what came before."""
    seen = ""
    try:
        while True:
            seen += str(await socket.recv())
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd is not None else None, seen


async def collect(events: AsyncIterator[Event], into: list[Event]) -> None:
    async for event in events:
        into.append(event)


class Mcp:
    """A client of /mcp as bare as it can be; one session."""

    def __init__(self, server: Server, token: str, session: str | None = None) -> None:
        self._server = server
        self._token = token
        self.session = session
        self._number = 0

    async def begin(self) -> Mcp:
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        answer = await self.post("initialize", params)
        assert answer.status == 200, answer
        self.session = answer.headers["mcp-session-id"]
        await self.post("notifications/initialized", notification=True)
        return self

    async def post(self, method: str, params: Any = None, *, notification: bool = False) -> Answer:
        self._number += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if not notification:
            message["id"] = self._number
        if params is not None:
            message["params"] = params
        headers = [("Accept", "application/json, text/event-stream")]
        if self.session is not None:
            headers += [("Mcp-Session-Id", self.session), ("MCP-Protocol-Version", "2025-06-18")]
        return await self._server.ask("POST", "/mcp?tools=all", message, token=self._token, headers=headers)

    async def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        """Return the message that answers a request."""
        answer = await self.post(method, params)
        assert answer.status == 200, answer
        data = [line[6:] for line in answer.body.decode().splitlines() if line.startswith("data: {")]
        message = answer.content if answer.content is not None else json.loads(data[-1])
        assert isinstance(message, dict)
        return message

    async def tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the structured content of a tool's result."""
        message = await self.ask("tools/call", {"name": name, "arguments": arguments})
        assert "result" in message, (name, message)
        content = message["result"]["structuredContent"]
        assert isinstance(content, dict)
        return content


@async_test
async def test_s12_over_mcp(home: Path) -> None:
    async with serving(home) as server:
        await server.client().open("a", shell="bash")
        b = await server.client().open("b", shell="bash")
        cursor = (await b.status()).cursor
        only_a = add_token(home, "ta", "admin", ("a",), 0)
        mcp = await Mcp(server, only_a).begin()
        tools = [one["name"] for one in (await mcp.ask("tools/list"))["result"]["tools"]]
        persons = {"take_control", "release_control", "release", "approve", "deny"}
        assert {f"pty_{name}" for name in set(OPERATIONS) - persons} <= set(tools)
        for tool in tools:
            name = tool.removeprefix("pty_")
            params = PARAMS.get(name, PARAMS["status"] if name != "launch" else {"command": "true"})
            if name == "list":
                assert [one["conversation_id"] for one in (await mcp.tool(tool, {}))["conversations"]] == ["a"]
                continue
            params = {key: value for key, value in params.items() if key not in ("data_b64", "follow")}
            found = [await mcp.tool(tool, {**params, "conversation_id": one}) for one in ("b", "no-such")]
            assert found[0]["error"]["code"] == "forbidden", tool
            assert found[0] == found[1], f"{tool}: whether it exists does not show"
        for unnamed in ({}, {"conversation_id": None}):
            assert (await mcp.tool("pty_launch", {**unnamed, "command": "true"}))["error"]["code"] == "forbidden"
        uris = [one["uri"] for one in (await mcp.ask("resources/list"))["result"]["resources"]]
        assert uris and all(uri.startswith("blockpty://conversations/a/") for uri in uris)
        for kind in ("transcript", "blocks", "blocks/b1", "status", "transcript?from_cursor=0"):
            for name in ("b", "no-such", "a%2F..%2Fb", "%62"):
                message = await mcp.ask("resources/read", {"uri": f"blockpty://conversations/{name}/{kind}"})
                assert message["error"]["data"]["error"]["code"] == "forbidden", (name, kind)
        assert (await mcp.tool("pty_status", {"conversation_id": "a"}))["ok"] is True
        assert (await b.status()).cursor == cursor
        reader = await Mcp(server, add_token(home, "tr", "read", None, 0)).begin()
        for name, operation in OPERATIONS.items():
            if operation.effect is not Effect.READ and name not in persons:
                params = {key: value for key, value in PARAMS[name].items() if key != "data_b64"}
                found_one = await reader.tool(f"pty_{name}", {**params, "conversation_id": "b"})
                assert found_one["error"]["code"] == "forbidden", name
        assert (await reader.tool("pty_launch", {"command": "true"}))["error"]["code"] == "forbidden"
        assert (await b.status()).cursor == cursor


@async_test
async def test_s12_a_session_of_mcp_belongs_to_who_began_it(home: Path) -> None:
    async with serving(home) as server:
        await server.client().open("a", shell="bash")
        owner = await Mcp(server, server.token).begin()
        for name, scope, only in (("t1", "admin", ("a",)), ("t2", "read", None), ("t3", "admin", None)):
            token = add_token(home, name, scope, only, 0)
            thief = Mcp(server, token, owner.session)
            answer = await thief.post("tools/list")
            assert answer.status in (403, 404), answer
            assert b"pty_" not in answer.body
            headers = [("Mcp-Session-Id", owner.session or ""), ("Accept", "text/event-stream")]
            assert (await server.ask("GET", "/mcp", token=token, headers=headers)).status in (403, 404)
            assert (await server.ask("DELETE", "/mcp", token=token, headers=headers)).status in (403, 404)
        assert (await owner.tool("pty_status", {"conversation_id": "a"}))["ok"] is True, "no client ended it"
        began = await Mcp(server, add_token(home, "gone", "admin", None, 0)).begin()
        remove_token(home, "gone")
        assert (await began.post("tools/list")).status == 401


def url(server: Server, conversation_id: str) -> str:
    return f"ws://127.0.0.1:{server.port}/v1/conversations/{conversation_id}/ws"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
