"""Command `blockpty view`: conversations, blocks and the live screen on this terminal, or the page in a browser."""

from __future__ import annotations

import gc
import json
import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blockpty.surfaces.cli.completion import offer_conversations

if TYPE_CHECKING:
    from blockpty.surfaces.cli.invocation import Invocation

_DOC = """Show the conversations of this home on this terminal: their blocks, the live screen, and what needs you.

`t` takes over, so that your keys go to the program; Ctrl+] hands back. `?` lists all keys. Everything goes on when you
leave.

With --web the page of this home's server is opened in a browser, signed in. The address that is printed works once,
within a minute. The server is started when none runs."""


def command() -> click.Command:
    """Return the command."""
    from blockpty.surfaces.cli.invocation import anywhere

    return click.Command(
        "view",
        params=[
            click.Argument(
                ["conversation_id"], required=False, metavar="[CONVERSATION_ID]", shell_complete=offer_conversations
            ),
            click.Option(["--web"], is_flag=True, help="Open the page in a browser instead."),
            click.Option(["--print", "only_print"], is_flag=True, help="With --web: only print the address."),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Show conversations, their blocks and screens.",
        callback=click.pass_obj(_view),
    )


def _view(invocation: Invocation, /, conversation_id: str | None, web: bool, only_print: bool) -> int:
    if not web:
        if only_print:
            raise click.UsageError("--print needs --web")
        return show(invocation, "view", conversation_id)
    if conversation_id is not None:
        raise click.UsageError("the page shows all conversations: leave CONVERSATION_ID out")
    address = page_address(invocation.directory())
    print(json.dumps({"ok": True, "page": address}) if invocation.as_json else address, flush=True)
    if not only_print and not invocation.as_json:
        webbrowser.open(address)
    return 0


def show(invocation: Invocation, command: str, conversation_id: str | None, *, only_screen: bool = False) -> int:
    """Run the program on this terminal."""
    from blockpty.surfaces.cli.invocation import finished
    from blockpty.surfaces.extras import require

    if invocation.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        other = "`screen`" if only_screen else "--web"
        raise click.UsageError(f"{command} needs a terminal; without one, use {other}")
    require("view", f"blockpty {command}", "textual")
    for name in ("COLUMNS", "LINES"):
        # Textual would use them, also after the window has changed.
        os.environ.pop(name, None)
    # Textual takes Escape and a key that follows at once for Alt and that key; a person is slower than this.
    os.environ.setdefault("ESCDELAY", "25")
    if conversation_id is not None:
        from blockpty.spool.layout import check_conversation_id

        check_conversation_id(conversation_id)

    # Imported while the garbage collector is off, and kept from it afterwards: all of this stays.
    from blockpty.surfaces.view.app import run

    gc.freeze()

    async def shown() -> int:
        async with invocation.open_engine(invocation.home) as client:
            if conversation_id is not None:
                # An error is shown as any other, before the terminal changes.
                await (await client.conversation(conversation_id)).status()
            from blockpty.surfaces import launching

            url = str((launching.state(client.home) or {}).get("url", ""))
            await run(
                client, conversation_id, read_only=invocation.read_only, only_screen=only_screen, page_url=url
            )  # fmt: skip
        return 0

    return finished(shown())


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
