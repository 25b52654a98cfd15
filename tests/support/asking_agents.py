"""An agent whose commands wait for a person to allow them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from blockpty.surfaces.client import Client

POLICY = """
approval_timeout_seconds = 60

[[rule]]
name = "echo"
action = "ask"
commands = ["echo"]
reason = "It prints."
"""
CHOICES = "[q]uit: "


@asynccontextmanager
async def agent(home: Path) -> AsyncIterator[Client]:
    """Give an agent's client of a server with a policy and a conversation."""
    (home / "policy.toml").write_text(POLICY)
    async with Client(home, agent="mcp") as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        try:
            yield client
        finally:
            await conversation.close()


@asynccontextmanager
async def asking(client: Client, command: str) -> AsyncIterator[asyncio.Task[Any]]:
    """Have the agent run a command; it waits when this gives the call, which must have ended by the end."""
    conversation = await client.conversation("c1")
    known = len((await client.approvals()).approvals)
    call = asyncio.create_task(conversation.run(command))
    try:
        while len((await client.approvals()).approvals) <= known and not call.done():  # noqa: ASYNC110  (no event says it to all)
            await asyncio.sleep(0.01)
        yield call
        await asyncio.wait_for(asyncio.wait((call,)), 30)
    finally:
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
