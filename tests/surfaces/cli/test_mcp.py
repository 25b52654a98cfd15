"""blockpty mcp: the tools that it is given, and a server that is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from tests.support.async_tests import async_test
from tests.support.mcp_clients import ROOT


@async_test
async def test_the_command_offers_the_tools_it_is_given(home: Path) -> None:
    environment = {**os.environ, "BLOCKPTY_HOME": str(home), "PYTHONPATH": str(ROOT)}

    def server(*options: str) -> StdioServerParameters:
        arguments = ["-m", "blockpty", "mcp", *options]
        return StdioServerParameters(command=sys.executable, args=arguments, env=environment, cwd=str(ROOT))

    async with Client(server("--tools", "list,status")) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["pty_list", "pty_status"]
        with pytest.raises(MCPError, match="Unknown tool: pty_run"):
            await client.call_tool("pty_run", {"command": "true"})
        assert not (await client.call_tool("pty_list", {})).is_error


def test_a_server_that_is_not_there_is_named_at_once(home: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "blockpty", "mcp", "--url", "http://127.0.0.1:1"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "BLOCKPTY_HOME": str(home), "BLOCKPTY_TOKEN": "x"},
    )  # fmt: skip
    assert found.returncode == 1 and found.stdout == "" and "127.0.0.1:1" in found.stderr
