"""Command `blockpty completion`: the script for a shell, and completion of conversations and blocks.

The offers come from the names and lines in the home; no engine is loaded and no host is asked, because a person waits
for each of them. Nothing here may fail: what cannot be read offers nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from blockpty.surfaces.cli.invocation import Invocation, anywhere

if TYPE_CHECKING:
    Offer = CompletionItem[str]
else:
    Offer = CompletionItem  # generic only since click 8.4

SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_BLOCKPTY_COMPLETE"  # click's own name for a program called blockpty
_MOST: Final = 200
_TAIL_BYTES: Final = 256 * 1024
_HELP_CHARACTERS: Final = 60
_INSTALL: Final = {
    "bash": 'eval "$(blockpty completion bash)"',
    "zsh": 'eval "$(blockpty completion zsh)"',
    "fish": "blockpty completion fish | source",
}


def command() -> click.Command:
    """Return the command."""
    lines = "\b\n" + "\n".join(f"{shell}: {line}" for shell, line in _INSTALL.items())
    return click.Command(
        "completion",
        params=[click.Argument(["shell"], type=click.Choice(SHELLS), metavar="bash|zsh|fish"), *anywhere()],
        help="Print the script that completes blockpty's commands, options, conversations and blocks in a shell.\n\n"
        f"Put the line of your shell into its startup file:\n\n{lines}",
        short_help="Print the completion script of a shell.",
        callback=_print_script,
    )


def _print_script(shell: str) -> int:
    kind = get_completion_class(shell)
    assert kind is not None  # click has these three
    made = kind(click.Command("blockpty"), {}, "blockpty", _VARIABLE)
    # Its own `source` would start a bash first, to warn of an old one.
    click.echo(ShellComplete.source(made), nl=False)
    return 0


def offer_conversations(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Offer]:
    """Offer the conversations of the home, the one that was used last first."""
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(_conversations(ctx)):
            if entry.name.startswith(incomplete) and _is_id(entry.name):
                found.append((_used(entry.path), entry.name))
    return [Offer(name) for _, name in sorted(found, key=lambda one: (-one[0], one[1]))]


def offer_blocks(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Offer]:
    """Offer the last blocks of the conversation that was named, with their commands, newest first."""
    # Behind an option that still needs its value, click has not given the arguments their names.
    name = ctx.params.get("conversation_id") or next(iter(ctx.args), None)
    if not _is_id(name):
        return []
    offers = []
    for record in _last_lines(_conversations(ctx) / str(name) / "blocks.jsonl"):
        block_id = record.get("block_id")
        if isinstance(block_id, str) and block_id.isalnum() and block_id.startswith(incomplete):
            offers.append(Offer(block_id, help=_summary(record)))
        if len(offers) == _MOST:
            break
    return offers


Completer = Callable[[click.Context, click.Parameter, str], "list[Offer]"]
COMPLETED: Final[Mapping[str, Completer]] = {"conversation_id": offer_conversations, "block_id": offer_blocks}


def _conversations(ctx: click.Context) -> Path:
    from blockpty.spool.layout import conversations_directory

    return conversations_directory((ctx.find_object(Invocation) or Invocation()).directory())


def _is_id(name: object) -> bool:
    from blockpty.errors import BadRequest
    from blockpty.spool.layout import check_conversation_id

    try:
        check_conversation_id(name)
    except BadRequest:
        return False
    return True


def _used(directory: str) -> float:
    try:
        return os.stat(f"{directory}/timeline.jsonl").st_mtime
    except OSError:
        return 0.0


def _last_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects at the end of a file of lines, the last one first; what is damaged is passed over."""
    try:
        with path.open("rb") as file:
            begin = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
            file.seek(begin)
            lines = file.read().split(b"\n")[:-1]
    except OSError:
        return
    for line in reversed(lines[1:] if begin else lines):
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


def _summary(record: Mapping[str, Any]) -> str:
    from blockpty.surfaces.sanitize import one_line

    said = one_line(str(record.get("cmd") or record.get("kind") or "")).strip()
    return said if len(said) <= _HELP_CHARACTERS else f"{said[: _HELP_CHARACTERS - 3]}..."
