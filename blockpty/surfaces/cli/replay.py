"""`blockpty replay`: play a conversation in the terminal as it was, or check that it plays as it was.

What was recorded is drawn on a screen of its own, and of that only cells and colours reach the terminal: a program that
was hostile when it was recorded cannot reach who looks at it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from blockpty.surfaces.cli.commands import run_operation
from blockpty.surfaces.cli.completion import offer_conversations
from blockpty.surfaces.cli.invocation import Invocation, anywhere, finished

if TYPE_CHECKING:
    from blockpty.model.results import ExportResult

_DOC: Final = """Play a recorded conversation in the terminal, with the times at which it happened; Ctrl-C ends it.

Only cells and colours reach the terminal, no other control sequence does. With --verify nothing is played: everything
that is derived from the record is compared with it, and the recorded waits are asked again."""
# Between two pictures, when there is more to show than anybody could see.
_LEAST_SECONDS: Final = 1 / 30
_SEEN_SECONDS: Final = 0.02


def command() -> click.Command:
    """Return the command."""
    seconds = click.FloatRange(min=0)
    return click.Command(
        "replay",
        params=[
            click.Argument(["conversation_id"], metavar="CONVERSATION_ID", shell_complete=offer_conversations),
            click.Option(
                ["--speed"], type=click.FloatRange(min=0.01), default=1.0, metavar="FACTOR",
                help="How many times as fast as it was. [default: 1]",
            ),
            click.Option(["--idle-limit"], type=seconds, metavar="SECONDS", help="Shorten longer silences to this."),
            click.Option(
                ["--from", "begin"], type=seconds, default=0.0, metavar="SECONDS", help="Begin so long after its begin."
            ),
            click.Option(["--block", "block_id"], metavar="BLOCK_ID", help="Play only this block, such as b7."),
            click.Option(
                ["--verify"], is_flag=True,
                help="Derive everything again, re-run the waits, and report what differs.",
            ),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Play a recorded conversation, or with --verify check it.",
        callback=_replay,
    )  # fmt: skip


@click.pass_obj
def _replay(
    invocation: Invocation, /, conversation_id: str, speed: float, idle_limit: float | None, begin: float,
    block_id: str | None, verify: bool,
) -> int:  # fmt: skip
    from blockpty.ops.outline import outlines

    if verify:
        return finished(run_operation(invocation, outlines()["verify"], {"conversation_id": conversation_id}))
    if invocation.as_json or not sys.stdout.isatty():
        raise click.UsageError("replay plays on a terminal; `blockpty export` gives a recording, --verify compares")
    found = asyncio.run(_recording(invocation, conversation_id, block_id))
    try:
        _play(_events(found), speed, idle_limit, begin)
    finally:
        if found.path is not None:
            Path(found.path).unlink(missing_ok=True)
    return 0


async def _recording(invocation: Invocation, conversation_id: str, block_id: str | None) -> ExportResult:
    from blockpty.ops.table import call

    async with invocation.open_engine(invocation.home) as engine:
        params = {"conversation_id": conversation_id, "format": "cast"}
        found: Any = await call(engine, "export", params if block_id is None else {**params, "block_id": block_id})
        result: ExportResult = found
        return result


def _events(found: ExportResult) -> Iterator[Any]:
    """Yield the header of an asciicast and then its events."""
    if found.path is None:
        yield from map(json.loads, (found.data or "").splitlines())
        return
    with open(found.path, encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _play(events: Iterator[Any], speed: float, idle_limit: float | None, begin: float) -> None:
    from blockpty.surfaces.cli.picture import Picture

    header = next(events)
    picture = Picture(sys.stdout, header["width"], header["height"])
    last, due = 0.0, time.monotonic()
    drawn = due - _LEAST_SECONDS
    try:
        for at, code, data in events:
            passed = max(0.0, at - max(last, begin))
            last = max(last, at)
            pause = (passed if idle_limit is None else min(passed, idle_limit)) / speed
            now = time.monotonic()
            # What was seen is shown, however far behind the clock the drawing is; the rest catches up.
            due = (max(due, now) if pause >= _SEEN_SECONDS else due) + pause
            if at >= begin and (due > now or now - drawn >= _LEAST_SECONDS):
                picture.draw()
                drawn = now
                time.sleep(max(0.0, due - time.monotonic()))
            picture.take(code, data)
        picture.draw()
    finally:
        picture.leave()
