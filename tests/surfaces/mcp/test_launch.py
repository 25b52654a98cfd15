"""The tool pty_launch."""

from __future__ import annotations

from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test
from tests.support.mcp_clients import client_of, ok


@pytest.mark.needs("bash")
@async_test
async def test_launch_uses_or_opens_a_conversation(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        first = await ok(client, "pty_launch", command="cat", working_dir=str(tmp_path), cols=100, rows=30)
        assert (first["working_dir"], first["size"], first["command"]) == (str(tmp_path), [100, 30], "cat")
        name = first["conversation_id"]
        again = await client.call_tool("pty_launch", {"command": "cat", "conversation_id": name})
        assert again.structured_content["error"]["code"] == "interactive_session_active"
        assert again.structured_content["error"]["details"]["conversation_id"] == name
        await ok(client, "pty_ctrl_d", conversation_id=name)
        await ok(client, "pty_wait_for", conversation_id=name, match={"token": "EOF"})
        other = await ok(client, "pty_launch", command="cat", conversation_id=name, working_dir="/")
        assert (other["conversation_id"], other["working_dir"]) == (name, "/")
        shell = await ok(client, "pty_launch")
        assert (shell["session_id"], shell["block_id"], shell["command"]) == (None, None, None)
        wrong = await client.call_tool("pty_launch", {"command": "cat", "cwd": "/"})
        assert wrong.structured_content["error"]["code"] == "bad_request"
