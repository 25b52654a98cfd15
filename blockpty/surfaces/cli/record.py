"""Command `blockpty record`: the terminal one sits in as a conversation, as `script` makes a typescript of it.

A shell of its own is started, with the environment and the directory of this one, and shown here as `attach` shows it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from blockpty.surfaces.cli.invocation import Invocation, anywhere, finished

if TYPE_CHECKING:
    from blockpty.model.results import StatusResult

_DOC: Final = """Record this terminal: start a shell here whose commands become blocks, until it ends.

What you do is a conversation as any other: `blockpty attach NAME` or `blockpty watch NAME` shows it elsewhere while it
goes on, and `blockpty log NAME` what ran. The shell has the environment and the directory of the one that you start
from, and the size of this terminal. The prefix key (Ctrl+] unless --keys names another) and d leaves it running. The
exit status is that of the shell."""

# What belongs to the terminal that this one is shown on, or is set by every shell for itself.
_OWN: Final = frozenset("TERM COLORTERM TERMINFO LINES COLUMNS WINDOWID TMUX TMUX_PANE STY SHLVL PWD OLDPWD _".split())  # noqa: SIM905


def command() -> click.Command:
    """Return the command."""
    return click.Command(
        "record",
        params=[
            click.Argument(["conversation_id"], required=False, metavar="[NAME]"),
            click.Option(["--shell"], help="Path or name of the shell; by default $SHELL if it is bash, zsh or fish."),
            click.Option(
                ["--keys", "prefix"], default="^]", metavar="KEY", show_default=True,
                help="The prefix key: ^ and a letter or one of @[\\]^_.",
            ),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Record this terminal as a conversation.",
        callback=click.pass_obj(_record),
    )  # fmt: skip


def _record(invocation: Invocation, /, conversation_id: str | None, shell: str | None, prefix: str) -> int:
    from blockpty.ops.table import find
    from blockpty.surfaces.cli.prefix_keys import control_key

    key = control_key(prefix)
    if key is None:
        raise click.UsageError(f"--keys {prefix}: not ^ and a letter or one of @[\\]^_")
    if invocation.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("record needs a terminal; without one, use `open` and `run`")
    invocation.check(find("open"))
    return finished(_recorded(invocation, conversation_id, shell, key))


async def _recorded(invocation: Invocation, conversation_id: str | None, shell: str | None, key: bytes) -> int:
    from blockpty.errors import Exited
    from blockpty.surfaces.cli.attach import TERMINAL_GONE, Attachment

    columns, lines = os.get_terminal_size(sys.stdout.fileno())
    async with invocation.open_engine(invocation.home) as engine:
        conversation = await engine.open(
            conversation_id, shell=shell, cwd=os.getcwd(), env=passed_on(os.environ), cols=columns, rows=lines,
            persist=True,
        )  # fmt: skip
        attachment = Attachment(invocation, engine, conversation.id, key, fit=True)
        try:
            said = await attachment.run()
        except Exited:
            said = "the shell has ended"
        if said == TERMINAL_GONE:
            await conversation.close()
        status = await conversation.status()
    name = conversation.id
    more = f"`blockpty log {name}` shows what ran"
    if status.mode != "exited":
        more = f"`blockpty attach {name}` comes back, `blockpty close {name}` ends it"
    invocation.screen().note(f"blockpty: {said}; {more}")
    return _exit_status(status)


def _exit_status(status: StatusResult) -> int:
    """Return the shell's exit status, as a shell gives that of a program; 0 while it runs, 1 where it is not known."""
    import signal

    if status.exit is None:
        return 0
    if status.exit["signal"] is not None:
        return 128 + getattr(signal.Signals, status.exit["signal"], signal.SIGHUP)
    code = status.exit["status"]
    return 1 if code is None else int(code)


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a recorded shell gets: all but those of the terminal, and what `open` refuses."""
    from blockpty.host.shells import REFUSED, REFUSED_PREFIXES

    return {
        name: value
        for name, value in environment.items()
        if name not in _OWN | REFUSED and not name.startswith(REFUSED_PREFIXES)
    }
