"""Approvals asked for at the client, through the SDK's client, over both transports and in both protocol versions."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitRequestFormParams, ElicitResult

import blockpty
from blockpty.control.principals import Principal, Scope
from blockpty.surfaces.client import Client as ServerClient
from blockpty.surfaces.tokens import add_token
from tests.support import http_server
from tests.support.async_tests import async_test
from tests.support.mcp_clients import (
    ROOT,
    TOKEN,
    connected,
    each_connection,
    http_client,
    often,
    ok,
    serving,
    text_of,
)

__all__ = ["often"]

pytestmark = pytest.mark.needs("bash")

POLICY: Final = """
approval_timeout_seconds = 60

[[rule]]
name = "echo"
action = "ask"
commands = ["echo", "cat"]
reason = "It prints."
"""


class Person:
    """Answers questions at the client, one action after another."""

    def __init__(self, *actions: str) -> None:
        self.actions = list(actions)
        self.asked: list[str] = []

    async def __call__(self, _context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params.message)
        return ElicitResult(action=self.actions.pop(0))


def verdicts(home: Path) -> list[tuple[str, str]]:
    """Return the verdicts that the audit log has, and whose they are."""
    entries = [json.loads(line) for line in (home / "audit.jsonl").read_text().splitlines()]
    return [(one["verdict"], one.get("by", "")) for one in entries if one["type"] == "verdict"]


@each_connection
@async_test
async def test_accepting_allows_it_once(home: Path, connection: str) -> None:
    (home / "policy.toml").write_text(POLICY)
    person = Person("accept", "accept", "accept")
    async with connected(connection, home, elicitation_callback=person) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash", cwd="/")
        for _ in range(2):
            result = await ok(client, "pty_run", conversation_id="c1", command="true\necho one")
            assert (result["output"], result["block"]["exit_status"]) == ("one\n", 0)
        assert len(person.asked) == 2
        shown = "asks for run\n  It prints.\n  | true\n  | echo one\n  directory  /\n  rule       echo\n"
        assert shown in person.asked[0]
        assert len((await ok(client, "pty_blocks", conversation_id="c1"))["blocks"]) == 2
        # What no rule asks about is no question.
        assert (await ok(client, "pty_run", conversation_id="c1", command="printf two"))["output"] == "two"
        # One is opened for it, and a call that is made again opens no second one.
        launched = await ok(client, "pty_launch", command="cat")
        assert launched["session_id"] is not None
        assert len((await ok(client, "pty_list"))["conversations"]) == 2
    by = "owner/mcp elicitation" if connection.startswith("http") else "owner"
    assert [one for one in verdicts(home) if one[0] == "approved"] == [("approved", by)] * 3


@each_connection
@async_test
async def test_declining_refuses_it(home: Path, connection: str) -> None:
    (home / "policy.toml").write_text(POLICY)
    person = Person("decline")
    async with connected(connection, home, elicitation_callback=person) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        result = await client.call_tool("pty_run", {"conversation_id": "c1", "command": "echo one"})
        assert result.is_error and result.structured_content["error"]["code"] == "approval_denied"
        assert "Do not try the same in another form" in text_of(result)
        assert (await ok(client, "pty_blocks", conversation_id="c1"))["blocks"] == []
        assert len(person.asked) == 1
    by = "owner/mcp elicitation" if connection.startswith("http") else "owner"
    assert verdicts(home)[-1] == ("denied", by)


@each_connection
@async_test
async def test_without_an_answer_it_waits_for_another_surface(home: Path, often: float, connection: str) -> None:
    (home / "policy.toml").write_text(POLICY.replace("= 60", "= 1"))
    person = Person("cancel")
    messages: list[str | None] = []

    async def progress(_elapsed: float, _total: float | None, message: str | None) -> None:
        messages.append(message)

    async with connected(connection, home, elicitation_callback=person) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        arguments = {"conversation_id": "c1", "command": "echo one"}
        result = await client.call_tool("pty_run", arguments, progress_callback=progress)
        assert "no answer came within 1 second" in text_of(result)
        assert len(person.asked) == 1
        waiting = [message for message in messages if message and ", waits for approval a1." in message]
        assert any("It prints." in message for message in waiting)


@each_connection
@async_test
async def test_a_client_that_cannot_ask_waits_too(home: Path, connection: str) -> None:
    (home / "policy.toml").write_text(POLICY.replace("= 60", "= 1"))
    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        result = await client.call_tool("pty_run", {"conversation_id": "c1", "command": "echo one"})
        assert "no answer came within 1 second" in text_of(result)


@pytest.mark.parametrize("version", ["2025", "2026"])
@async_test
async def test_who_holds_an_agents_token_is_not_asked(home: Path, version: str) -> None:
    (home / "policy.toml").write_text(POLICY.replace("= 60", "= 1"))
    tokens = {"agent": Principal("bot", Scope.ADMIN, types_as="agent")}
    person = Person("accept")
    async with blockpty.Engine(home) as engine, serving(engine, tokens) as url:
        await engine.open("c1", shell="bash")
        async with http_client(url, version, "agent", elicitation_callback=person) as client:
            result = await client.call_tool("pty_run", {"conversation_id": "c1", "command": "echo one"})
            assert "no answer came" in text_of(result) and person.asked == []


@async_test
async def test_an_answer_that_a_client_gives_twice_allows_one_call(home: Path) -> None:
    (home / "policy.toml").write_text(POLICY)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    headers = {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {TOKEN}", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
        "Mcp-Name": "pty_run",
    }  # fmt: skip
    async with (
        blockpty.Engine(home) as engine, serving(engine) as url, httpx2.AsyncClient(headers=headers, timeout=30) as http
    ):  # fmt: skip
        await engine.open("c1", shell="bash")

        async def call(**more: Any) -> Any:
            arguments = {"conversation_id": "c1", "command": "echo one"}
            params = {"name": "pty_run", "arguments": arguments, "_meta": meta, **more}
            request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            return (await http.post(f"{url}?tools=all", json=request)).json()["result"]

        question = await call()
        assert question["resultType"] == "input_required"
        assert (await engine.approvals()).approvals == []
        answer = {"inputResponses": {"approval": {"action": "accept", "content": {}}}}
        accepted = {**answer, "requestState": question["requestState"]}
        assert (await call(**accepted))["structuredContent"]["output"] == "one\n"
        assert (await call(**accepted))["resultType"] == "input_required"


@async_test
async def test_an_answer_elsewhere_ends_the_question(home: Path) -> None:
    (home / "policy.toml").write_text(POLICY)
    shown, left = asyncio.Event(), asyncio.Event()

    async def person(_context: Any, _params: Any) -> ElicitResult:
        shown.set()
        await left.wait()
        return ElicitResult(action="decline")

    async with blockpty.Engine(home) as engine, serving(engine) as url:
        conversation = await engine.open("c1", shell="bash")
        async with http_client(url, "2025", elicitation_callback=person) as client:
            run = asyncio.create_task(ok(client, "pty_run", conversation_id="c1", command="echo one"))
            await asyncio.wait_for(shown.wait(), 30)
            (one,) = (await engine.approvals()).approvals
            await conversation.approve(one["approval_id"], one["digest"])
            assert (await run)["output"] == "one\n"
            left.set()


@pytest.mark.parametrize(("types_as", "answer"), [("user", "one\n"), ("agent", None)])
@async_test
async def test_through_a_server_with_a_token(home: Path, types_as: str, answer: str | None) -> None:
    (home / "policy.toml").write_text(POLICY if answer else POLICY.replace("= 60", "= 1"))
    token = add_token(home, "bot", "admin", None, 1, types_as)
    person = Person("accept")
    environment = {**os.environ, "BLOCKPTY_HOME": str(home), "PYTHONPATH": str(ROOT), "BLOCKPTY_TOKEN": token}
    arguments = ["-m", "blockpty", "mcp", "--tools", "all"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    async with ServerClient(home) as owner, Client(server, mode="legacy", elicitation_callback=person) as client:
        conversation = await owner.open("c1", shell="bash")
        try:
            result = await client.call_tool("pty_run", {"conversation_id": "c1", "command": "echo one"})
            assert result.is_error is (answer is None)
            assert result.structured_content.get("output") == answer
            assert len(person.asked) == (answer is not None)
        finally:
            await conversation.close()


@pytest.mark.parametrize("version", ["2025", "2026"])
@async_test
async def test_at_the_server_of_a_home(home: Path, version: str) -> None:
    (home / "policy.toml").write_text(POLICY.replace("= 60", "= 2"))
    agents = add_token(home, "bot", "admin", None, 1, "agent")
    person = Person("accept")
    async with http_server.serving(home) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        async with http_client(url, version, server.token, elicitation_callback=person) as client:
            await ok(client, "pty_open", conversation_id="c1", shell="bash")
            assert (await ok(client, "pty_run", conversation_id="c1", command="echo one"))["output"] == "one\n"
        assert person.asked[0].startswith("a1.1 in c1: owner/mcp asks for run\n")
        async with http_client(url, version, agents, elicitation_callback=person) as client:
            denied = await client.call_tool("pty_run", {"conversation_id": "c1", "command": "echo one"})
            assert denied.is_error and len(person.asked) == 1
    assert [one for one in verdicts(home) if one[0] == "approved"] == [("approved", "owner/mcp elicitation")]


@async_test
async def test_what_a_model_is_to_do(home: Path) -> None:
    async with connected("http 2025", home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        await ok(client, "pty_halt", conversation_id="c1")
        stopped = await client.call_tool("pty_run", {"conversation_id": "c1", "command": "true"})
        assert "a person has stopped you" in text_of(stopped)
