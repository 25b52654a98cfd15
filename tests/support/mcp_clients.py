"""The SDK's own client at the other end of each transport, in both ways to speak the protocol.

`stdio` is a real process; `http` is uvicorn on a free port of the loopback device, with a small app in front that does
what the guard of the HTTP surface does: it turns a token into a principal.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

import blockpty
from blockpty.control.principals import OWNER, Principal
from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp import calling
from blockpty.surfaces.mcp.http import StreamableHttp
from blockpty.surfaces.mcp.server import build_server
from tests.support.profile import one_in_turn

CONNECTIONS: Final = ("stdio 2025", "stdio 2026", "http 2025", "http 2026")
ROOT: Final = Path(__file__).resolve().parents[2]
TOKEN: Final = "owner-token"

_MODES: Final = {"2025": "legacy", "2026": "2026-07-28"}


def each_connection(test: Callable[..., Any]) -> Callable[..., Any]:
    """Have a test run over every connection in a long run, and else over one of them, by the name of the test."""
    connections = one_in_turn(zlib.crc32(test.__name__.removeprefix("test_").encode()), CONNECTIONS)
    marked: Callable[..., Any] = pytest.mark.parametrize("connection", connections)(test)
    return marked


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> float:
    """Have servers report progress ten times a second, here and in processes; the value is the time between."""
    seconds = 0.1
    monkeypatch.setattr(calling, "PROGRESS_SECONDS", seconds)
    monkeypatch.setenv("PROGRESS_SECONDS", str(seconds))
    return seconds


@asynccontextmanager
async def connected(connection: str, home: Path, **options: Any) -> AsyncIterator[Client]:
    """Give a client of a server of its own; `connection` is one of CONNECTIONS."""
    transport, version = connection.split()
    if transport == "stdio":
        environment = {**os.environ, "BLOCKPTY_HOME": str(home), "PYTHONPATH": str(ROOT)}
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "tests.support.mcp_server"], env=environment, cwd=str(ROOT)
        )
        async with Client(server, mode=_MODES[version], **options) as client:
            yield client
        return
    async with blockpty.Engine(home) as engine, serving(engine) as url, http_client(url, version, **options) as client:
        yield client


@asynccontextmanager
async def http_client(
    url: str, version: str = "2025", token: str = TOKEN, *, tools: str | None = "all", **options: Any
) -> AsyncIterator[Client]:
    """Give a client of a server at this URL; `tools`: the set that it asks for, None for what it is offered."""
    url = url if tools is None else f"{url}?tools={tools}"
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=_MODES[version], **options) as client:
            yield client


@asynccontextmanager
async def serving(engine: blockpty.Engine, tokens: Mapping[str, Principal] | None = None) -> AsyncIterator[str]:
    """Serve an engine over HTTP; gives the URL."""
    principals = {TOKEN: OWNER, **(tokens or {})}
    # Named as TCP, or asyncio would leave Nagle's delay on: 40 ms a request.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        mcp = StreamableHttp(
            lambda principal: Caller(engine, principal), allowed_hosts=[host], allowed_origins=[f"http://{host}"],
            person_of=lambda principal: Caller(engine, principal),
        )  # fmt: skip

        async def guard(scope: Any, receive: Any, send: Any) -> None:
            given = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
            state = {"principal": principals[given]} if given in principals else {}
            await mcp.app({**scope, "state": state}, receive, send)

        config = uvicorn.Config(guard, lifespan="off", log_level="warning", timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        async with mcp.run():
            task = asyncio.create_task(server.serve(sockets=[listener]))
            while not server.started and not task.done():  # noqa: ASYNC110  (uvicorn has nothing to wait for)
                await asyncio.sleep(0)
            try:
                yield f"http://{host}/mcp"
            finally:
                server.should_exit = True
                await task
                await end_watcher()


async def end_watcher() -> None:
    """End the task by which sse_starlette looks out for the end of a server; it would outlive the server otherwise."""
    for task in asyncio.all_tasks():
        if getattr(task.get_coro(), "__name__", "") == "_shutdown_watcher":
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def ok(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool; return its structured content, which must be no error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    content: dict[str, Any] = result.structured_content
    assert content["ok"] is True
    return content


def text_of(result: CallToolResult) -> str:
    """Return the one text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@asynccontextmanager
async def client_of(engine: blockpty.Engine, principal: Principal | None = None) -> AsyncIterator[Client]:
    """Give a client in this process."""
    caller = Caller(engine) if principal is None else Caller(engine, principal)
    async with Client(build_server(lambda _context: caller), mode="legacy") as client:
        yield client
