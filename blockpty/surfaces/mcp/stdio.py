"""Standard streams as the transport of MCP, for a client that starts `blockpty mcp` itself."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp.approvals import Person
from blockpty.surfaces.mcp.own_conversation import OwnConversations
from blockpty.surfaces.mcp.server import build_server
from blockpty.surfaces.mcp.toolsets import ToolSet, tool_set


async def serve_stdio(caller: Caller, person: Caller | None = None, *, tools: ToolSet | None = None) -> None:
    """Serve one client until it closes our stdin.

    Args:
        caller: for what the model asks.
        person: for the verdicts of the person at the client; None: that person is not asked.
        tools: what is offered; by default the core.

    While this runs, stdout is the client's; what anything else here prints goes to stderr.
    """
    at_client = None if person is None else Person(person)
    own, offered = OwnConversations(), tools or tool_set("core")
    server = build_server(
        lambda _context: caller, lambda _context: at_client, tools_of=lambda _context: offered, own=own
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
    await own.ended("", caller)
