"""MCP over the standard streams of this process: for a client that starts `blockpty mcp` itself."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp.server import build_server


async def serve_stdio(caller: Caller) -> None:
    """Serve one client until it closes our stdin.

    While this runs, stdout is the client's; what anything else here prints goes to stderr.
    """
    server = build_server(lambda _context: caller)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
