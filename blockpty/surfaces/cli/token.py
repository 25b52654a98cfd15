"""Command `blockpty token`: the tokens of a home's server, other than the owner's own."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from blockpty.surfaces.cli.invocation import Invocation


def command() -> click.Command:
    """Return the group of commands."""
    from blockpty.surfaces.cli.invocation import anywhere

    name = click.Argument(["name"])
    return click.Group(
        "token",
        help="Make, list and remove tokens for other programs; the owner's is in <home>/server/token.",
        commands=[
            click.Command(
                "add",
                params=[
                    name,
                    click.Option(
                        ["--scope"], type=click.Choice(["read", "write", "admin"]), default="write", show_default=True,
                        help="read: look; write: commands and input as well; admin: open, close and kill as well.",
                    ),
                    click.Option(
                        ["--types-as"], type=click.Choice(["agent", "user"]), default="agent", show_default=True,
                        help="agent: what it types is an agent's; user: a person's, who may also take control and "
                        "answer approvals.",
                    ),
                    click.Option(
                        ["--conversation", "conversations"], multiple=True, help="Only this one; may be given again."
                    ),
                    *anywhere(),
                ],
                help="Make a token and print it: it cannot be shown again.",
                callback=click.pass_obj(_add),
            ),
            click.Command("list", params=[*anywhere()], help="List them by name.", callback=click.pass_obj(_list)),
            click.Command(
                "remove", params=[name, *anywhere()], help="Delete a token.", callback=click.pass_obj(_remove)
            ),
            click.Command(
                "renew", params=[*anywhere()], help="Replace the owner's token.", callback=click.pass_obj(_renew)
            ),
        ],
    )  # fmt: skip


def _add(invocation: Invocation, /, name: str, scope: str, types_as: str, conversations: tuple[str, ...]) -> int:
    from blockpty.surfaces.tokens import add_token

    created_ts = time.time_ns() // 1_000_000
    token = add_token(invocation.directory(), name, scope, conversations or None, created_ts, types_as)
    print(json.dumps({"ok": True, "name": name, "token": token}) if invocation.as_json else token)
    return 0


def _list(invocation: Invocation, /) -> int:
    from blockpty.surfaces.tokens import list_tokens

    found = list_tokens(invocation.directory())
    if invocation.as_json:
        tokens = [
            {
                "name": one.name, "scope": one.scope, "conversations": one.conversations, "created_ts": one.created_ts,
                "types_as": one.types_as,
            }
            for one in found
        ]
        print(json.dumps({"ok": True, "tokens": tokens}))
        return 0
    for one in found:
        where = "all" if one.conversations is None else " ".join(one.conversations)
        print(f"{one.name}\t{one.scope}\t{one.types_as}\t{where}")
    return 0


def _remove(invocation: Invocation, /, name: str) -> int:
    from blockpty.surfaces.tokens import remove_token

    remove_token(invocation.directory(), name)
    if invocation.as_json:
        print(json.dumps({"ok": True}))
    return 0


def _renew(invocation: Invocation, /) -> int:
    from blockpty.surfaces.private_files import renew_owner_token

    renew_owner_token(invocation.directory())
    if invocation.as_json:
        print(json.dumps({"ok": True}))
    return 0
