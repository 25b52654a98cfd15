"""Streamable HTTP: who may use a session, and by which names the server is called."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

import blockpty
from blockpty.control.principals import Principal, Scope
from tests.support.async_tests import async_test
from tests.support.mcp_clients import TOKEN, http_client, ok, serving

pytestmark = pytest.mark.needs("bash")

TOKENS: Final = {
    "reader-token": Principal("reader", Scope.READ, frozenset({"c1"})),
    # As if the token `reader` had been given away anew with other rights.
    "other-reader-token": Principal("reader", Scope.READ, frozenset({"c2"})),
    "writer-token": Principal("writer", Scope.WRITE),
}
INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
LIST: Final = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "pty_list", "arguments": {}}}


def plain() -> httpx2.AsyncClient:
    """Return a plain HTTP client."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return httpx2.AsyncClient(headers=headers, timeout=30)


@asynccontextmanager
async def raw(home: Path) -> AsyncIterator[tuple[str, httpx2.AsyncClient]]:
    """Give a URL and a plain HTTP client."""
    async with blockpty.Engine(home) as engine, serving(engine, TOKENS) as url, plain() as http:
        yield f"{url}?tools=all", http


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


async def begun(url: str, http: httpx2.AsyncClient, token: str = TOKEN) -> str:
    """Begin a session; return its id."""
    answer = await http.post(url, json=INITIALIZE, headers=bearer(token))
    assert answer.status_code == 200, answer.text
    session: str = answer.headers["mcp-session-id"]
    notified = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    headers = bearer(token, **{"Mcp-Session-Id": session})
    assert (await http.post(url, json=notified, headers=headers)).status_code == 202
    return session


@async_test
async def test_a_session_id_is_no_authority(home: Path) -> None:
    async with raw(home) as (url, http):
        session = await begun(url, http, "reader-token")
        held = {"Mcp-Session-Id": session}
        for token in (TOKEN, "writer-token", "other-reader-token"):
            for method in ("POST", "GET", "DELETE"):
                body: dict[str, Any] = {"json": LIST} if method == "POST" else {}
                answer = await http.request(method, url, headers=bearer(token, **held), **body)
                assert answer.status_code == 404, (token, method)
        for token in ("unknown", "Bearer"):
            assert (await http.post(url, json=LIST, headers=bearer(token, **held))).status_code == 401
        # No client has ended it.
        answer = await http.post(url, json=LIST, headers=bearer("reader-token", **held))
        assert answer.status_code == 200 and '"conversations"' in answer.text
        assert (await http.delete(url, headers=bearer("reader-token", **held))).status_code == 200
        assert (await http.post(url, json=LIST, headers=bearer("reader-token", **held))).status_code == 404


@async_test
async def test_each_principal_sees_its_own_conversations(home: Path) -> None:
    async with blockpty.Engine(home) as engine, serving(engine, TOKENS) as url:
        for name in ("c1", "c2"):
            await engine.open(name, shell="bash")
        for token, name in (("reader-token", "c1"), ("other-reader-token", "c2")):
            for version in ("2025", "2026"):
                async with http_client(url, version, token) as client:
                    listed = await ok(client, "pty_list")
                    assert [one["conversation_id"] for one in listed["conversations"]] == [name]
                    result = await client.call_tool("pty_run", {"conversation_id": name, "command": "true"})
                    assert result.structured_content["error"]["code"] == "forbidden"


@async_test
async def test_names_by_which_the_server_is_called(home: Path) -> None:
    async with raw(home) as (url, http):
        host = url.removeprefix("http://").partition("/")[0]
        port = host.rpartition(":")[2]
        for wrong in ("evil.test", f"evil.test:{port}", f"127.0.0.1.evil.test:{port}", "127.0.0.1:1", "127.0.0.1"):
            for version in ("2025-11-25", "2026-07-28"):
                headers = bearer(TOKEN, Host=wrong, **{"MCP-Protocol-Version": version})
                answer = await http.post(url, json=INITIALIZE, headers=headers)
                assert answer.status_code == 421, wrong
        for wrong in ("http://evil.test", "null", f"https://{host}", f"http://{host}.evil.test"):
            answer = await http.post(url, json=INITIALIZE, headers=bearer(TOKEN, Origin=wrong))
            assert answer.status_code == 403, wrong
        allowed = bearer(TOKEN, Origin=f"http://{host}")
        assert (await http.post(url, json=INITIALIZE, headers=allowed)).status_code == 200


@async_test
async def test_requests_that_are_none(home: Path) -> None:
    async with raw(home) as (url, http):
        text = bearer(TOKEN, **{"Content-Type": "text/plain"})
        assert (await http.post(url, content=b"{}", headers=text)).status_code == 400
        assert (await http.post(url, content=b"{", headers=bearer(TOKEN))).status_code == 400
        large = b'{"jsonrpc": "2.0", "x": "' + b"x" * (5 * 1024 * 1024) + b'"}'
        assert (await http.post(url, content=large, headers=bearer(TOKEN))).status_code == 413
        answer = await http.post(url, json=INITIALIZE)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "unauthorized"
        assert (await http.post(url, json=LIST, headers=bearer(TOKEN))).status_code >= 400


@async_test
async def test_what_a_call_brings_along_was_written_for_it(home: Path) -> None:
    """A state of the two-step question is refused when it was made up, or given for another call or principal."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }

    async def call(command: str, token: str = TOKEN, **more: Any) -> dict[str, Any]:
        arguments = {"conversation_id": "c1", "command": command}
        params = {"name": "pty_run", "arguments": arguments, "_meta": meta, **more}
        headers = bearer(
            token,
            **{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "pty_run"},
        )
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        found: dict[str, Any] = (await http.post(f"{url}?tools=all", json=request, headers=headers)).json()
        return found

    async with blockpty.Engine(home) as engine, serving(engine, TOKENS) as url, plain() as http:
        conversation = await engine.open("c1", shell="bash")
        asks = "printf 'Password: '; read -rs word; echo; echo ${#word} characters"
        question = (await call(asks))["result"]
        assert question["resultType"] == "input_required"
        answers = {"password": {"action": "accept", "content": {}}}
        state = question["requestState"]
        for token, command, given in (
            (TOKEN, asks, "made up"),
            (TOKEN, asks, state[:-2] + ("AA" if state[-2:] != "AA" else "BB")),
            (TOKEN, "echo other", state),
            ("writer-token", asks, state),
        ):
            refused = await call(command, token, inputResponses=answers, requestState=given)
            assert refused["error"]["code"] == -32602, refused
        # The command was submitted once, and nothing that was refused has started another.
        assert (await conversation.status()).active_block_id == "b1"
        await conversation.send("hunter2\r", author="user")
        result = (await call(asks, inputResponses=answers, requestState=state))["result"]
        assert result["structuredContent"]["output"] == "Password: \n7 characters\n"
        assert result["structuredContent"]["block"]["block_id"] == "b1"


@async_test
async def test_many_sessions_of_one_token_end_its_own_only(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blockpty.surfaces.mcp.http.MAX_SESSIONS", 12)
    monkeypatch.setattr("blockpty.surfaces.mcp.http.SESSIONS_EACH", 4)
    async with raw(home) as (url, http):
        other = await begun(url, http, "reader-token")
        sessions = [await begun(url, http, "writer-token") for _ in range(4)]
        # Used again, so that the second is the one that was used longest ago.
        first = bearer("writer-token", **{"Mcp-Session-Id": sessions[0]})
        assert (await http.post(url, json=LIST, headers=first)).status_code == 200
        sessions += [await begun(url, http, "writer-token")]
        alive = [
            (await http.post(url, json=LIST, headers=bearer("writer-token", **{"Mcp-Session-Id": one}))).status_code
            for one in sessions
        ]
        assert alive == [200, 404, 200, 200, 200]
        for _ in range(20):
            await begun(url, http, "writer-token")
        kept = bearer("reader-token", **{"Mcp-Session-Id": other})
        assert (await http.post(url, json=LIST, headers=kept)).status_code == 200
        await begun(url, http, "other-reader-token")
