"""Command `blockpty shell-init`: what a person puts into a startup file, so that shells of their own take our hooks."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from blockpty.surfaces.cli.invocation import Invocation

_SHELLS: Final = ("bash", "zsh", "fish")
_INSTALL: Final = {
    "bash": 'eval "$(blockpty shell-init bash)"',
    "zsh": 'eval "$(blockpty shell-init zsh)"',
    "fish": "blockpty shell-init fish | source",
}
_DOC: Final = """Print what makes your own shells give exact blocks in the tmux panes that blockpty attaches to.

Put the line of your shell at the end of its startup file:
"""


def command() -> click.Command:
    """Return the command."""
    from blockpty.surfaces.cli.invocation import anywhere

    lines = "\b\n" + "\n".join(f"{shell}: {line}" for shell, line in _INSTALL.items())
    return click.Command(
        "shell-init",
        params=[click.Argument(["shell"], type=click.Choice(_SHELLS), metavar="bash|zsh|fish"), *anywhere()],
        help=f"{_DOC}\n{lines}\n\nThe shell prints nothing by it, and sets no prompt and no trap. When a conversation"
        " is opened on its pane, it takes the shell integration at its prompt from a private file in the home.",
        short_help="Print what a shell's startup file needs.",
        callback=click.pass_obj(_print),
    )


def _print(invocation: Invocation, /, shell: str) -> int:
    from blockpty.host.injection import init_text

    text = init_text(shell, os.fspath(_prepared(invocation.directory())))
    click.echo(text.decode("utf-8", "surrogateescape"), nl=False)
    return 0


def _prepared(home: Path) -> Path:
    """Return the directory in which shells say that they are there, without those that are gone."""
    from blockpty.spool.layout import make_private, shells_directory

    directory = shells_directory(home)
    make_private(home)
    make_private(directory)
    for entry in os.scandir(directory):
        pid = entry.name.partition(".")[0]
        if pid.isdecimal() and not _exists(int(pid)):
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
    return directory


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
