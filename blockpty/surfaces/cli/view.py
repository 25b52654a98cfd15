"""Command `blockpty view`: the page of the server, in a browser."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from blockpty.surfaces.cli.invocation import Invocation


def command() -> click.Command:
    """Return the command."""
    from blockpty.surfaces.cli.invocation import anywhere

    return click.Command(
        "view",
        params=[
            click.Option(["--web"], is_flag=True, help="In a browser; there is no other way yet."),
            click.Option(["--print", "only_print"], is_flag=True, help="Only print the address; open no browser."),
            *anywhere(),
        ],
        help="Open the page of this home's server in a browser, signed in.\n\nThe address that is printed works once, "
        "within a minute. The server is started when none runs.",
        short_help="Open the server's page in a browser.",
        callback=click.pass_obj(_view),
    )


def _view(invocation: Invocation, /, web: bool, only_print: bool) -> int:
    from blockpty.errors import BadRequest

    if not web:
        raise BadRequest("blockpty view needs --web", hint="blockpty view --web opens the page in a browser")
    address = page_address(invocation.directory())
    print(json.dumps({"ok": True, "page": address}) if invocation.as_json else address, flush=True)
    if not only_print and not invocation.as_json:
        webbrowser.open(address)
    return 0


def page_address(home: Path) -> str:
    """Return an address that signs a browser in, once, within a minute; the server is started when none runs."""
    import asyncio

    from blockpty.surfaces import launching
    from blockpty.surfaces.client import Client

    async def code() -> str:
        async with Client(home) as client:
            return str((await client.post("/auth/code"))["code"])

    found = asyncio.run(code())
    return f"{(launching.state(home) or {}).get('url', '')}/#code={found}"
