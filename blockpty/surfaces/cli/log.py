"""Command `blockpty log`: the blocks of a conversation, newest first, through a pager on a terminal.

Everything shown is made safe, also for a pager that passes control sequences on.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, cast

import click

from blockpty.surfaces.cli.completion import offer_conversations
from blockpty.surfaces.cli.invocation import Invocation, anywhere, finished

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from blockpty.model.block import Block
    from blockpty.model.results import BlocksResult, ReadResult

_PAGE_SIZE: Final = 1000
# What is read of an output, at its beginning and at its end, to show so many lines of it.
_PIECE_BYTES: Final = 16 * 1024
_LINES: Final = 10

_DOC: Final = """Show the blocks of a conversation, newest first: command, when, how long, exit status, output.

On a terminal it goes through $PAGER, or less. Of a long output the first and last lines are shown."""


def command() -> click.Command:
    """Return the command."""
    return click.Command(
        "log",
        params=[
            click.Argument(["conversation_id"], metavar="CONVERSATION_ID", shell_complete=offer_conversations),
            click.Option(
                ["-n", "--number"], type=click.IntRange(min=0), metavar="INTEGER", help="Show so many blocks at most."
            ),
            click.Option(["--failed"], is_flag=True, help="Only those that failed or did not end by themselves."),
            click.Option(["--reverse"], is_flag=True, help="Oldest first."),
            click.Option(["--output/--no-output"], default=True, help="Show what they printed. [default: --output]"),
            click.Option(
                ["--lines"],
                type=click.IntRange(min=1, max=1000),
                metavar="INTEGER",
                default=_LINES,
                help=f"Lines of output to show of each block; half of them from its end. [default: {_LINES}]",
            ),
            click.Option(["--pager/--no-pager"], default=True, help="Use a pager on a terminal. [default: --pager]"),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Show the blocks of a conversation, newest first.",
        callback=_log,
    )


@click.pass_obj
def _log(invocation: Invocation, /, conversation_id: str, **options: Any) -> int:
    return finished(_show(invocation, conversation_id, **options))


async def _show(
    invocation: Invocation,
    conversation_id: str,
    *,
    number: int | None,
    failed: bool,
    reverse: bool,
    output: bool,
    lines: int,
    pager: bool,
) -> int:
    from blockpty.ops.table import find
    from blockpty.surfaces.cli.pager import Pager

    find("blocks").parse({"conversation_id": conversation_id})
    async with invocation.open_engine(invocation.home) as engine:
        transcript = _LogReader(engine, conversation_id)
        chosen = await transcript.newest(number, failed=failed)
        blocks = chosen if reverse else reversed(chosen)
        if invocation.as_json:
            screen = invocation.screen()
            for block in blocks:
                more = await transcript.output_record(block, lines) if output else {}
                screen.record({**block.to_dict(), **more})
            return 0
        with Pager(sys.stdout, wanted=pager) as out:
            drawn = _Drawn(transcript, colour=out.colour)
            async with aclosing(drawn.of(blocks, lines if output else 0)) as pieces:
                async for piece in pieces:
                    if not out.write(piece):
                        break
    return 0


class _LogReader:
    """Reader of a conversation for a log: reading operations only."""

    def __init__(self, engine: Any, conversation_id: str) -> None:
        self._engine = engine
        self.id = conversation_id

    async def _ask(self, operation: str, **params: Any) -> Any:
        from blockpty.ops.dispatch import call

        return await call(self._engine, operation, {"conversation_id": self.id, **params})

    async def newest(self, number: int | None, *, failed: bool) -> list[Block]:
        """Return the last blocks, oldest first; the one that runs is the last of them."""
        from blockpty.errors import NotFound

        kept: deque[Block] = deque(maxlen=number)
        page: int | None = 0
        while page is not None:
            found = cast("BlocksResult", await self._ask("blocks", page=page, page_size=_PAGE_SIZE))
            kept.extend(block for block in found.blocks if not failed or has_failed(block))
            page = found.next_page
        running = (await self._ask("status")).active_block_id
        if running is not None and not failed:
            try:
                block = (await self._ask("block", block_id=running)).block
            except NotFound:  # it was submitted and has not begun
                return list(kept)
            if not kept or kept[-1].seq < block.seq:
                kept.append(block)
        return list(kept)

    async def output(self, block: Block, lines: int, view: str) -> tuple[str, str, bool]:
        """Return the first and the last lines of an output, and whether something between them is left out."""
        found = await self._read(block, view, None)
        text = found.data
        if len(text.splitlines()) <= lines and (found.eof or block.span[1] is None):
            return text, "", False
        end = block.span[1]
        if not found.eof and end is not None and end > found.cursor:
            begin = max(found.cursor, end - _PIECE_BYTES)
            tail = (await self._read(block, view, begin)).data
            # It may begin inside a line or a control sequence.
            tail = tail if begin == found.cursor else tail.partition("\n")[2] or tail[-80:]
        else:
            tail = text
        first, last = lines - lines // 2, lines // 2
        head_lines, tail_lines = text.splitlines(keepends=True), tail.splitlines(keepends=True)
        if tail is text:
            tail_lines = tail_lines[first:]
        return "".join(head_lines[:first]), "".join(tail_lines[len(tail_lines) - last :] if last else []), True

    async def _read(self, block: Block, view: str, begin: int | None) -> ReadResult:
        where = {} if begin is None else {"from_cursor": begin}
        found = await self._ask("read", block_id=block.block_id, view=view, max_bytes=_PIECE_BYTES, **where)
        return cast("ReadResult", found)

    async def output_record(self, block: Block, lines: int) -> dict[str, Any]:
        """Return what a block's line of JSON says of its output."""
        head, tail, cut = await self.output(block, lines, "text")
        return {"output": head + tail, "output_truncated": cut}


# What moves the cursor, erases or sets a mode, or a line that is begun again.
_DRAWN: Final = re.compile(r"\x1b\[(?![0-9;:]*m)|\r(?!\n)|\x08")


def has_failed(block: Block) -> bool:
    """Whether a block failed, or did not end by itself; what is not known to have failed has not."""
    if block.exit_status is not None:
        return block.exit_status != 0
    return block.state not in ("ended", "running")


class _Drawn:
    """Blocks as text for a person."""

    def __init__(self, transcript: _LogReader, *, colour: bool) -> None:
        self._transcript = transcript
        self._colour = colour

    async def of(self, blocks: Iterable[Block], lines: int) -> AsyncGenerator[str, None]:
        """Yield the text of each block."""
        between = ""
        for block in blocks:
            yield between + self._heading(block)
            if lines:
                async for piece in self._output(block, lines):
                    yield piece
            between = "\n"

    def _heading(self, block: Block) -> str:
        from blockpty.surfaces.cli.render import duration, ending, moment
        from blockpty.surfaces.sanitize import one_line, sanitize

        how = self._painted(
            ending(block.exit_status, block.signal, block.state), "31" if has_failed(block) else "32"
        )  # fmt: skip
        facts = [how, moment(block.ts_begin), duration(block.duration_ms), one_line(block.cwd or "")]
        if block.author != "agent":
            facts.append(f"by {one_line(block.author)}")
        command = "(background)" if block.kind == "background" else sanitize(block.cmd, colour=False)
        shown = "\n  ".join(command.rstrip("\n").split("\n"))
        first = f"{self._painted(block.block_id, '33')}  {'  '.join(fact for fact in facts if fact)}"
        return f"{first}\n{self._painted('$ ' + shown, '1') if block.kind != 'background' else shown}\n"

    async def _output(self, block: Block, lines: int) -> AsyncIterator[str]:
        from blockpty.surfaces.sanitize import sanitize

        # With colours as it was printed, where it only was printed. What a program has drawn is shown as it was seen in
        # the end, without them; what was on an alternate screen is no part of that.
        head, tail, cut = await self._transcript.output(block, lines, "ansi" if self._colour else "rendered")
        if self._colour and _DRAWN.search(head + tail):
            head, tail, cut = await self._transcript.output(block, lines, "rendered")
        for piece in (head, tail):
            if piece:
                whole = piece if piece.endswith("\n") else f"{piece}\n"
                yield "".join(f"    {line}" for line in sanitize(whole, colour=self._colour).splitlines(keepends=True))
            if cut and piece is head:
                everything = f"blockpty read {self._transcript.id} --block-id {block.block_id}"
                yield f"    [... left out; {block.out_bytes} bytes in all: {everything}]\n"

    def _painted(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._colour else text
