"""What is sent as a secret over HTTP, a WebSocket or MCP is in no file of the home, and in no answer."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from blockpty import Client
from blockpty.surfaces.client import RemoteConversation
from tests.support.async_tests import async_test
from tests.support.http_client import http, post, serving
from tests.support.mcp_clients import connected, ok
from tests.support.secret_inputs import STARS, TYPED
from tests.support.terminal_sockets import joined

pytestmark = pytest.mark.needs("bash")

IN_BASE64 = base64.b64encode(f"{TYPED}\r".encode()).decode()
HTTP = {
    "send": ("send", {"data": f"{TYPED}\r"}),
    "base64": ("send", {"data_b64": IN_BASE64}),
    "keys": ("send_keys", {"keys": f"{TYPED}[ENTER]"}),
    "paste": ("paste", {"text": f"{TYPED}\n"}),
}


def program(directory: Path) -> str:
    """Return a command that reads one line in raw mode; its question is none that is known."""
    (directory / "stars.py").write_text(STARS)
    return f"{sys.executable} {directory}/stars.py 'Say: ' ''"


def assert_nowhere(home: Path, *answers: Any) -> None:
    forms = (TYPED.encode(), base64.b64encode(TYPED.encode()).rstrip(b"="), TYPED.encode("utf-16-le"))
    for path in home.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [form for form in forms if form in content], path
    assert not [form for form in forms if form in json.dumps(answers).encode()]


async def assert_taken(conversation: RemoteConversation, begin: int) -> list[dict[str, Any]]:
    """Look that the program got it, and return how the input is recorded."""
    found = await conversation.wait_for({"regex": r"(\d+) there"}, from_cursor=begin, timeout_ms=20_000)
    assert found.groups == {"1": str(len(TYPED))}
    await conversation.wait_for({"token": "PROMPT"}, timeout_ms=20_000)
    assert (await conversation.verify()).clean
    events = [event async for event in conversation.events(follow=False)]
    assert not [event for event in events if TYPED in str(event)]
    return [dict(event.fields) for event in events if event.type == "input" and not event.fields.get("submit")]


@pytest.mark.parametrize("way", HTTP)
@async_test
async def test_over_http(home: Path, tmp_path: Path, way: str) -> None:
    operation, params = HTTP[way]
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        conversation = await client.open("c1", shell="bash")
        begin = (await conversation.exec_interactive(program(tmp_path))).cursor
        await conversation.wait_for("Say: ", from_cursor=begin, timeout_ms=20_000)
        refused = [
            await post(plain, "c1", operation, **params, secret="yes"),
            await post(plain, "c1", operation, **params, secret=True, session_id="none"),
            await post(plain, "c1", operation, **params, secret=True, unknown=1),
        ]
        assert [one["ok"] for one in refused] == [False] * 3, refused
        taken = await post(plain, "c1", operation, **params, secret=True)
        assert taken["ok"], taken
        assert await assert_taken(conversation, begin) == [{"author": "agent", "principal": "owner", "redacted": True}]
        logged = (await plain.get("/metrics")).text
        assert_nowhere(home, taken, refused, logged)
        await conversation.close()


@pytest.mark.parametrize("way", ["data", "data_b64"])
@async_test
async def test_over_a_websocket(home: Path, tmp_path: Path, way: str) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        begin = (await conversation.exec_interactive(program(tmp_path))).cursor
        await conversation.wait_for("Say: ", from_cursor=begin, timeout_ms=20_000)
        given = {"data": f"{TYPED}\r"} if way == "data" else {"data_b64": IN_BASE64}
        async with joined(home, url) as socket:
            await socket.send(json.dumps({"type": "input", **given, "secret": True}))
            expected = {"author": "user", "principal": "owner", "redacted": True}
            assert await assert_taken(conversation, begin) == [expected]
        assert_nowhere(home)
        await conversation.close()


@pytest.mark.parametrize("way", HTTP)
@async_test
async def test_over_mcp(home: Path, tmp_path: Path, way: str) -> None:
    operation, params = HTTP[way]
    async with connected("http 2025", home) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools[f"pty_{operation}"].input_schema["properties"]["secret"]["type"] == "boolean"
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        begun = await ok(client, "pty_exec_interactive", conversation_id="c1", command=program(tmp_path))
        at = {"conversation_id": "c1", "from_cursor": begun["cursor"], "timeout_ms": 20_000}
        assert (await ok(client, "pty_wait_for", match="Say: ", **at))["matched"]
        answer = await ok(client, f"pty_{operation}", conversation_id="c1", **params, secret=True)
        found = await ok(client, "pty_wait_for", match={"regex": r"(\d+) there"}, **at)
        assert found["groups"] == {"1": str(len(TYPED))}
        assert (await ok(client, "pty_wait_for", match={"token": "PROMPT"}, **at))["matched"]
        assert (await ok(client, "pty_verify", conversation_id="c1"))["clean"]
        assert_nowhere(home, answer, found)
        await ok(client, "pty_close", conversation_id="c1")
