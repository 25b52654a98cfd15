"""Command `blockpty tail`: the output of a conversation as it comes.

The events say where in the stream there is output, and the bytes are read from there; no program notices. With
--raw it is the stream itself, prompts and all.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, cast

import click

from blockpty.surfaces.cli.completion import offer_conversations
from blockpty.surfaces.cli.invocation import Invocation, anywhere, finished

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from blockpty.model.events import Event
    from blockpty.model.results import StatusResult
    from blockpty.surfaces.cli.live import LiveOutput
    from blockpty.surfaces.cli.render import ResultPrinter

_STEP_BYTES: Final = 64 * 1024
# What is typed at a prompt makes no event, so with --raw the stream is looked at this often as well.
_LOOK_SECONDS: Final = 0.1

_DOC: Final = """Follow what the commands of a conversation print, until its shell ends or Ctrl-C.

On a terminal only colours pass, other control sequences are shown (^[). The program that runs is never touched. What
is there already is shown from --from-cursor on; without it, from the beginning of the block that runs."""


def command() -> click.Command:
    """Return the command."""
    return click.Command(
        "tail",
        params=[
            click.Argument(["conversation_id"], metavar="CONVERSATION_ID", shell_complete=offer_conversations),
            click.Option(
                ["--from-cursor"],
                type=click.IntRange(min=0),
                metavar="INTEGER",
                help="Begin at this cursor; 0 is the beginning.",
            ),
            click.Option(
                ["--blocks"],
                is_flag=True,
                help="Write a line before each block with its command, and one after it with exit status and duration.",
            ),
            click.Option(
                ["--raw"],
                is_flag=True,
                help="Write the bytes of the stream as they are: prompts, echo and control sequences, also to a "
                "terminal.",
            ),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Follow what the commands of a conversation print.",
        callback=_tail,
    )


@click.pass_obj
def _tail(invocation: Invocation, /, conversation_id: str, from_cursor: int | None, blocks: bool, raw: bool) -> int:
    if raw and (blocks or invocation.as_json):
        raise click.UsageError(f"give --raw or {'--blocks' if blocks else '--json'}, not both")
    return finished(_follow(invocation, conversation_id, from_cursor, blocks, raw))


async def _follow(invocation: Invocation, conversation_id: str, cursor: int | None, blocks: bool, raw: bool) -> int:
    from blockpty.ops.table import find
    from blockpty.surfaces.cli.live import LiveOutput

    find("status").parse({"conversation_id": conversation_id})
    screen = invocation.screen()
    async with invocation.open_engine(invocation.home) as engine:
        source = TailedRecord(engine, conversation_id)
        status = await source.status()
        begin = cursor if cursor is not None else await source.begin_of_running(status)
        output = LiveOutput(sys.stdout, raw=raw)
        style = _AsJson if invocation.as_json else _WithHeadings if blocks else Style
        blocks_shown = BlocksShown(source, begin, style(screen, output, conversation_id))
        shown = _Raw(source, output, begin) if raw else blocks_shown
        try:
            await shown.follow(status)
        finally:
            if not invocation.as_json:
                output.finish()
        if status.mode != "exited":
            status = await source.status()
    if not invocation.as_json:
        screen.note(f"blockpty: the shell of {conversation_id} has ended{_how(status)}")
    return 0


def _how(status: StatusResult) -> str:
    ending = status.exit or {}
    if ending.get("signal"):
        return f" ({ending['signal']})"
    return f" (exit status {ending['status']})" if ending.get("status") is not None else ""


class TailedRecord:
    """Reader of a conversation for a tail: reading operations only."""

    def __init__(self, engine: Any, conversation_id: str) -> None:
        self._engine = engine
        self.id = conversation_id

    async def _ask(self, operation: str, **params: Any) -> Any:
        from blockpty.ops.dispatch import call

        return await call(self._engine, operation, {"conversation_id": self.id, **params})

    async def status(self) -> StatusResult:
        """Return what the shell is doing."""
        return cast("StatusResult", await self._ask("status"))

    async def begin_of_running(self, status: StatusResult) -> int:
        """Return where the running block begins; where the stream ends when none runs."""
        if status.active_block_id is None:
            return status.cursor
        return int((await self._ask("block", block_id=status.active_block_id)).block.span[0])

    def events(self, from_seq: int, *, follow: bool) -> AsyncGenerator[Event, None]:
        """Return the events from a number on."""
        from blockpty.ops.dispatch import stream

        params = {"conversation_id": self.id, "from_seq": from_seq, "follow": follow}
        return cast("AsyncGenerator[Event, None]", stream(self._engine, "events", params))

    async def bytes(self, begin: int, end: int | None = None) -> AsyncIterator[tuple[bytes, int, bool]]:
        """Yield the stream's bytes from a cursor in pieces, each with its cursor and whether the shell has ended."""
        import base64

        while end is None or begin < end:
            room = _STEP_BYTES if end is None else min(_STEP_BYTES, end - begin)
            found = await self._ask("read", from_cursor=begin, view="raw", max_bytes=room)
            data = base64.b64decode(found.data_b64)
            yield data, begin, found.eof
            if not data:
                return
            begin = found.cursor


class _Raw:
    """The stream itself."""

    def __init__(self, source: TailedRecord, output: LiveOutput, begin: int) -> None:
        self._source = source
        self._output = output
        self._cursor = begin

    async def follow(self, status: StatusResult) -> None:
        import asyncio

        async with aclosing(self._source.events(status.next_seq, follow=True)) as events:
            following = asyncio.ensure_future(anext(events, None))
            try:
                while not await self._read():
                    await asyncio.wait((following,), timeout=_LOOK_SECONDS)
                    if following.done() and following.result() is not None:
                        following = asyncio.ensure_future(anext(events, None))
            finally:
                following.cancel()
                await asyncio.wait((following,))

    async def _read(self) -> bool:
        """Write what is there; return whether nothing can follow."""
        ended = False
        async for data, offset, eof in self._source.bytes(self._cursor):
            self._output.stream(data, offset)
            self._cursor, ended = offset + len(data), eof
        return ended


class BlocksShown:
    """The output of the blocks, and what is said of each."""

    def __init__(self, source: TailedRecord, begin: int, style: Style) -> None:
        self._source = source
        self._begin = begin
        self._style = style
        self._unsaid: Event | None = None
        self._said = ""

    async def follow(self, status: StatusResult) -> None:
        """Show what comes, until the shell has ended; the status is that of the beginning."""
        past, running = status.next_seq, status.active_block_id
        all_is_to_come = running is None and self._begin >= status.cursor
        events = self._source.events(past if all_is_to_come else 0, follow=status.mode != "exited")
        async with aclosing(events):
            async for event in events:
                if event.type == "agent_block_begin":
                    self._unsaid = event
                    if event.seq >= past or event.cursor >= self._begin or event.fields["block_id"] == running:
                        self._say()
                elif event.type == "agent_block_delta" and event.fields["span"][1] > self._begin:
                    self._say()
                    await self._show(event)
                elif event.type == "agent_block_end" and event.fields["block_id"] == self._said:
                    self._style.end(event)
                elif event.seq >= past and (event.type == "eof" or event.fields.get("lost")):
                    return

    def _say(self) -> None:
        if self._unsaid is not None:
            self._said = self._unsaid.fields["block_id"]
            self._style.begin(self._unsaid)
            self._unsaid = None

    async def _show(self, event: Event) -> None:
        begin, end = event.fields["span"]
        async for data, offset, _ in self._source.bytes(max(begin, self._begin), end):
            if data:
                self._style.output(event, data, offset)


class Style:
    """Style of blocks: their output and nothing else."""

    def __init__(self, screen: ResultPrinter, output: LiveOutput, conversation_id: str) -> None:
        self.screen = screen
        self.shown = output
        self.id = conversation_id

    def begin(self, event: Event) -> None:
        """Say that a block begins."""

    def output(self, event: Event, data: bytes, offset: int) -> None:
        """Show some of its output."""
        self.shown.stream(data, offset)

    def end(self, event: Event) -> None:
        """Say how it ended."""
        self.shown.finish()


class _WithHeadings(Style):
    """Their output between two lines of ours."""

    def begin(self, event: Event) -> None:
        from blockpty.surfaces.sanitize import one_line

        said = "(background)" if event.fields["kind"] == "background" else f"$ {one_line(event.fields['cmd'])}"
        self.shown.heading(f"==> {event.fields['block_id']} {said}")

    def end(self, event: Event) -> None:
        from blockpty.surfaces.cli.render import duration, ending

        block = event.fields["block"]
        facts = [ending(block["exit_status"], block["signal"], block["state"]), duration(block["duration_ms"])]
        self.shown.heading(f"<== {block['block_id']} {', '.join(fact for fact in facts if fact)}")


class _AsJson(Style):
    """Their events, each on a line; those of output with the text, the last one with what was waiting for its end."""

    def begin(self, event: Event) -> None:
        self._write(event)

    def output(self, event: Event, data: bytes, offset: int) -> None:
        span = [offset, offset + len(data)]
        self._write(event, span=span, data=self.shown.text_of(data, offset))

    def end(self, event: Event) -> None:
        self._write(event, **({"data": rest} if (rest := self.shown.rest()) else {}))

    def _write(self, event: Event, **more: Any) -> None:
        self.screen.record({**event.to_dict(self.id), **more})
