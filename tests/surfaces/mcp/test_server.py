"""The server of MCP: what it offers, for whom, and what it loads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

import blockpty
from blockpty.control.principals import Principal, Scope
from blockpty.surfaces.mcp.tools import TOOLS
from tests.support.async_tests import async_test
from tests.support.mcp_clients import client_of, ok


@async_test
async def test_the_prompt_and_the_instructions(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        assert "pty_run" in (client.instructions or "")
        (prompt,) = (await client.list_prompts()).prompts
        found = await client.get_prompt(prompt.name, {"task": "fix the build", "conversation_id": "c1"})
        text = found.messages[0].content.text  # type: ignore[union-attr]
        named = {word.strip("().,;:") for word in text.split() if word.startswith("pty_")} - {"pty_"}
        assert named <= set(TOOLS) and {"pty_run", "pty_wait_for", "pty_send_line"} <= named
        assert "fix the build" in text and "c1" in text
        for name, arguments in (("other", {}), ("terminal", {"other": "x"})):
            with pytest.raises(MCPError, match="Unknown"):
                await client.get_prompt(name, arguments)


def test_nothing_else_loads_the_sdk() -> None:
    program = (
        "import sys, blockpty, blockpty.surfaces.cli.commands, blockpty.surfaces.access; print('mcp' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "False\n"


def test_serving_an_agent_loads_no_engine_and_makes_no_schemas() -> None:
    program = (
        "import sys, blockpty.surfaces.client, blockpty.surfaces.mcp.stdio, blockpty.surfaces.mcp.toolsets as sets; "
        "assert len(sets.tool_set('all').listed) > 40; print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(found.stdout.split())
    assert not {"blockpty.runtime", "blockpty.redact", "blockpty.screen", "blockpty.ops.schema"} & loaded


@pytest.mark.needs("bash")
@async_test
async def test_rights_are_those_of_the_caller(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        for name in ("c1", "c2"):
            await engine.open(name, shell="bash")
        reader = Principal("reader", Scope.READ, frozenset({"c1"}))
        async with client_of(engine, reader) as client:
            listed = await ok(client, "pty_list")
            assert [one["conversation_id"] for one in listed["conversations"]] == ["c1"]
            await ok(client, "pty_status", conversation_id="c1")
            for tool, params in (
                ("pty_status", {"conversation_id": "c2"}),
                ("pty_events", {"conversation_id": "c2"}),
                ("pty_run", {"conversation_id": "c1", "command": "true"}),
                ("pty_launch", {"command": "cat"}),
                ("pty_close", {"conversation_id": "c1"}),
            ):
                result = await client.call_tool(tool, params)
                assert result.structured_content["error"]["code"] == "forbidden", tool
            uris = [resource.uri for resource in (await client.list_resources()).resources]
            assert uris and all("/c1/" in uri for uri in uris)
            with pytest.raises(MCPError) as caught:
                await client.read_resource("blockpty://conversations/c2/transcript")
            assert caught.value.error.data["error"]["code"] == "forbidden"


@pytest.mark.needs("bash")
@async_test
async def test_many_calls_at_once(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        begun = {
            name: (await ok(client, "pty_open", conversation_id=name, shell="bash"))["cursor"] for name in ("c1", "c2")
        }
        waits = [
            asyncio.create_task(
                ok(client, "pty_wait_for", conversation_id=name, match=f"word {name}", from_cursor=cursor)
            )
            for name, cursor in (*begun.items(),) * 20
        ]
        for name in begun:
            await ok(client, "pty_run", conversation_id=name, command=f"echo word {name}")
        found = await asyncio.gather(*waits)
        assert [one for one in found if not one["matched"]] == []
