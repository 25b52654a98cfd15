"""A server on stdio for the tests: `python -m tests.support.mcp_server`, an engine of its own over $BLOCKPTY_HOME.

It reports progress every $PROGRESS_SECONDS, where that is set.
"""

from __future__ import annotations

import asyncio
import os

import blockpty
from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp import calling
from blockpty.surfaces.mcp.stdio import serve_stdio
from blockpty.surfaces.mcp.toolsets import tool_set


async def _serve() -> None:
    calling.PROGRESS_SECONDS = float(os.environ.get("PROGRESS_SECONDS", calling.PROGRESS_SECONDS))  # type: ignore[misc]
    async with blockpty.Engine() as engine:
        await serve_stdio(Caller(engine), Caller(engine), tools=tool_set("all"))


if __name__ == "__main__":
    asyncio.run(_serve())
