"""A real server in the test's own process, and ways to talk to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2

from blockpty.surfaces.client import Client
from blockpty.surfaces.http.server import serve
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.settings import Settings


@contextlib.asynccontextmanager
async def serving(home: Path, **settings: Any) -> AsyncIterator[str]:
    """Serve a home on a free port; gives the URL."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[dict[str, Any]] = loop.create_future()
    task = asyncio.ensure_future(serve(home, Settings(**{"port": 0, **settings}), ready.set_result))
    await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield ready.result()["url"]
    finally:
        async with Client(home, start=False) as client:
            with contextlib.suppress(Exception):
                await client.post("/admin/stop")
        await task


def http(home: Path, url: str, *, token: str | None = None) -> httpx2.AsyncClient:
    """Return a plain HTTP client that shows a token, by default the owner's."""
    headers = {"Authorization": f"Bearer {token or owner_token(home)}"}
    return httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60.0)


async def post(client: httpx2.AsyncClient, conversation_id: str, operation: str, **params: Any) -> dict[str, Any]:
    """Ask for an operation by POST and return the JSON."""
    response = await client.post(f"/v1/conversations/{conversation_id}/{operation}", json=params)
    content: dict[str, Any] = json.loads(response.content)
    return content
