"""A client that goes away, without a word, while it waits."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

import blockpty
from tests.support.async_tests import async_test
from tests.support.mcp_clients import ROOT, TOKEN, serving

pytestmark = pytest.mark.needs("bash")

ENVELOPE: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


@async_test
async def test_stdio_ends_with_its_client(home: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.mcp_server",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "BLOCKPTY_HOME": str(home), "PYTHONPATH": str(ROOT)}, cwd=ROOT,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None

    async def say(message: dict[str, Any]) -> None:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        await process.stdin.drain()

    await say(request(1, "pty_open", conversation_id="c1", shell="bash"))
    assert json.loads(await process.stdout.readline())["result"]["structuredContent"]["ok"] is True
    await say(request(2, "pty_exec_block", conversation_id="c1", command="echo begun; cat"))
    await process.stdout.readline()
    await say(request(3, "pty_wait_for", conversation_id="c1", match="begun"))
    await process.stdout.readline()
    await say(request(4, "pty_wait_for", conversation_id="c1", match="never", timeout_ms=3_600_000))
    process.stdin.close()
    # Nothing but a message of the protocol was ever written to stdout.
    rest = (await process.stdout.read()).splitlines()
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest)
    assert await process.wait() == 0
    assert b"Traceback" not in await process.stderr.read()


@async_test
async def test_http_ends_a_wait_with_its_connection(home: Path) -> None:
    async with blockpty.Engine(home) as engine, serving(engine) as url:
        conversation = await engine.open("c1", shell="bash")
        await conversation.exec_block("read -r x; echo got $x")
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "pty_wait_for",
        }
        body = request(1, "pty_wait_for", conversation_id="c1", match="never", timeout_ms=3_600_000)
        events = conversation.events()
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            waiting = asyncio.create_task(http.post(url, json=body))
            async for event in events:
                if event.type == "wait_begin" and "never" in str(event.fields["match"]):
                    break
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        async for event in events:
            if event.type == "wait_end":
                assert event.fields["reason"] == "cancelled"
                break
        await events.aclose()
        await conversation.send("it\r")
        assert (await conversation.wait_for("got it")).matched
