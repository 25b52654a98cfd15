"""Command `blockpty mcp`: the operations as MCP tools over stdin and stdout, for a client that starts its servers."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from blockpty.surfaces.cli.invocation import Invocation

_DOC = """Serve the operations as MCP tools over stdin and stdout.

It talks to the server of this home, which is started when none runs, so that the same conversations are there for
every agent, for the command line and for viewers.
"""


def command() -> click.Command:
    """Return the command."""
    from blockpty.surfaces.cli.invocation import anywhere

    return click.Command(
        "mcp",
        params=[
            click.Option(["--url"], help="A server elsewhere, such as https://host:7717, in place of this home's."),
            click.Option(
                ["--token-file"], metavar="FILE", help="Its token; by default $BLOCKPTY_TOKEN or this home's own."
            ),
            click.Option(
                ["--tools"],
                default="core",
                show_default=True,
                help="Tools to offer: core, all, or some names with commas between them.",
            ),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Serve the operations as MCP tools over stdio.",
        callback=click.pass_obj(_serve),
    )


def _serve(invocation: Invocation, /, url: str | None, token_file: str | None, tools: str) -> int:
    from blockpty.surfaces.extras import require

    require("mcp", "blockpty mcp")
    # What is imported stays: to look through all of it again and again would take a tenth of the start.
    gc.disable()
    from blockpty.surfaces.access import Caller
    from blockpty.surfaces.client import Client
    from blockpty.surfaces.mcp.stdio import serve_stdio
    from blockpty.surfaces.mcp.toolsets import tool_set
    from blockpty.surfaces.private_files import read_private

    gc.freeze()
    gc.enable()
    offered = tool_set(tools)
    token = os.environ.get("BLOCKPTY_TOKEN")
    if token_file is not None:
        token = read_private(Path(token_file)).decode("ascii", "replace").strip()

    async def serve() -> None:
        home = invocation.directory()
        # Not for an agent: what the person at the client decides.
        person = Client(home, url=url, token=token)
        async with person, Client(home, url=url, token=token, agent="mcp") as client:
            if url is not None:
                # Rather now, where it is seen, than with the first call of a model.
                await client.call("list", {"filter": "?"})
            await serve_stdio(Caller(client), Caller(person), tools=offered)

    asyncio.run(serve())
    return 0
