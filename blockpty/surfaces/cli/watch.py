"""Command `blockpty watch`: the live screen of one conversation on this terminal, and nothing that is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from blockpty.surfaces.cli.completion import offer_conversations

if TYPE_CHECKING:
    from blockpty.surfaces.cli.invocation import Invocation


def command() -> click.Command:
    """Return the command."""
    from blockpty.surfaces.cli.invocation import anywhere

    return click.Command(
        "watch",
        params=[
            click.Argument(["conversation_id"], metavar="CONVERSATION_ID", shell_complete=offer_conversations),
            *anywhere(),
        ],
        help="Show the live screen of a conversation on this terminal, read-only.\n\nNothing that you press reaches "
        "the program. q leaves; ? lists the keys. `blockpty view` shows blocks and other conversations as well.",
        short_help="Show a conversation's live screen, read-only.",
        callback=click.pass_obj(_watch),
    )


def _watch(invocation: Invocation, /, conversation_id: str) -> int:
    from blockpty.surfaces.cli.view import show

    return show(invocation, "watch", conversation_id, only_screen=True)
