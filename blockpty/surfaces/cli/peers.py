"""Command `blockpty peers`: servers of other hosts that this home's server may ask, each with a token of it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from blockpty.surfaces.cli.invocation import Invocation

# No token is longer.
_MOST: Final = 4096


def command() -> click.Command:
    """Return the group of commands."""
    from blockpty.surfaces.cli.invocation import anywhere

    address = click.Argument(["address"])
    return click.Group(
        "peers",
        help="Add, list and remove servers of other hosts that this home's server may ask for their conversations.",
        commands=[
            click.Command(
                "add",
                params=[address, *anywhere()],
                help="Let this home's server ask the one at ADDRESS, as the shared catalogue has it. The token, made"
                " there by `blockpty token add`, comes from standard input, or is asked for on a terminal, not shown."
                " An address ssh:[user@]host needs none: blockpty proxy is its far side.",
                callback=click.pass_obj(_add),
            ),
            click.Command("list", params=[*anywhere()], help="List addresses.", callback=click.pass_obj(_list)),
            click.Command(
                "remove", params=[address, *anywhere()], help="Remove a server.", callback=click.pass_obj(_remove)
            ),
        ],
    )  # fmt: skip


def _add(invocation: Invocation, /, address: str) -> int:
    from blockpty.surfaces.cli.inputs import ask_hidden
    from blockpty.surfaces.peers import add_peer
    from blockpty.surfaces.ssh_way import is_way

    token = ""
    if is_way(address):
        pass  # ssh lets us in
    elif sys.stdin.isatty():
        token = ask_hidden("its token, not shown: ", "the token comes from standard input")
    else:
        token = sys.stdin.read(_MOST)
    add_peer(invocation.directory(), address, token.strip())
    return _done(invocation)


def _list(invocation: Invocation, /) -> int:
    from blockpty.surfaces.peers import list_peers

    found = list_peers(invocation.directory())
    if invocation.as_json:
        print(json.dumps({"ok": True, "peers": found}))
        return 0
    for one in found:
        print(one)
    return 0


def _remove(invocation: Invocation, /, address: str) -> int:
    from blockpty.surfaces.peers import remove_peer

    remove_peer(invocation.directory(), address)
    return _done(invocation)


def _done(invocation: Invocation) -> int:
    if invocation.as_json:
        print(json.dumps({"ok": True}))
    return 0
