"""The session's own terminal: opened by the first call that needs one, meant where none is named, closed at the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import blockpty
from blockpty.surfaces.mcp.schemas import NOTE
from tests.support.async_tests import async_test
from tests.support.mcp_clients import CONNECTIONS, connected, http_client, ok, serving, text_of
from tests.support.profile import in_turn

if TYPE_CHECKING:
    from mcp import Client

pytestmark = pytest.mark.needs("bash")


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    error: dict[str, Any] = result.structured_content["error"]
    return error


@pytest.mark.parametrize("connection", in_turn(1, [one for one in CONNECTIONS if one != "http 2026"]))
@async_test
async def test_the_first_command_opens_it(connection: str, home: Path) -> None:
    async with connected(connection, home) as client:
        for tool in ("pty_read", "pty_status", "pty_get_screen"):
            error = await refused(client, tool)
            assert error["code"] == "bad_request" and "pty_run opens one" in error["hint"]
        first = await client.call_tool("pty_run", {"command": "cd /tmp; here=one"})
        name = first.structured_content[NOTE].split()[2]
        assert name in text_of(first)
        ran = await ok(client, "pty_run", command="pwd; echo $here")
        assert ran["output"] == "/tmp\none\n" and NOTE not in ran
        listed = (await ok(client, "pty_list"))["conversations"]
        assert [one["conversation_id"] for one in listed] == [name]
        # One that is opened is meant from then on; others are named.
        await ok(client, "pty_open", conversation_id="second", shell="bash", cwd="/")
        assert (await ok(client, "pty_run", command="pwd"))["output"] == "/\n"
        assert (await ok(client, "pty_run", command="pwd", conversation_id=name))["output"] == "/tmp\n"
        assert (await refused(client, "pty_verify"))["code"] == "bad_request"
        await ok(client, "pty_close", conversation_id="second")
        await ok(client, "pty_close", conversation_id=name)


@async_test
async def test_it_has_to_be_named_where_there_are_no_sessions(home: Path) -> None:
    async with connected("http 2026", home) as client:
        error = await refused(client, "pty_run", command="true")
        assert error["code"] == "bad_request" and "pty_open" in error["hint"]
        name = (await ok(client, "pty_open", shell="bash"))["conversation_id"]
        assert (await ok(client, "pty_run", command="echo x", conversation_id=name))["output"] == "x\n"
        assert (await refused(client, "pty_run", command="true"))["code"] == "bad_request"
        await ok(client, "pty_close", conversation_id=name)


@async_test
async def test_it_is_closed_with_its_session_unless_something_runs(home: Path) -> None:
    async with blockpty.Engine(home) as engine, serving(engine) as url:
        for command, closed in (("true", True), ("echo begun; exec sleep 1000", False)):
            async with http_client(url) as client:
                ran = await ok(client, "pty_run", command=command, timeout_ms=60_000 if closed else 500)
                name = ran[NOTE].split()[2]
            conversation = await engine.conversation(name)
            assert ((await conversation.status()).mode == "exited") is closed
            if not closed:
                await conversation.close()
        async with http_client(url) as one, http_client(url) as other:
            names = {(await ok(client, "pty_run", command="true"))[NOTE].split()[2] for client in (one, other)}
            assert len(names) == 2
            await ok(one, "pty_open", conversation_id="asked-for", shell="bash")
        conversation = await engine.conversation("asked-for")
        assert (await conversation.status()).mode == "idle"
        for name in ("asked-for", *names):
            await (await engine.conversation(name)).close()
