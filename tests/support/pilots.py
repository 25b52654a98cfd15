"""The program without a terminal, driven by Textual's pilot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rich.text import Text

from blockpty.surfaces.client import Client
from blockpty.surfaces.view.app import ViewProgram

if TYPE_CHECKING:
    from textual.pilot import Pilot

_TRIES = 2000


@asynccontextmanager
async def viewing(
    client: Client, conversation_id: str | None = "c1", *, size: tuple[int, int] = (160, 40), **options: Any
) -> AsyncIterator[tuple[ViewProgram, Pilot[None]]]:
    """Run the program; gives it and what presses its keys."""
    program = ViewProgram(client, conversation_id, **options)
    async with program.run_test(size=size) as pilot:
        if conversation_id is not None:
            await until(pilot, lambda: program.conversation is not None and program.conversation.live)
        yield program, pilot
    if program.failure is not None:
        raise program.failure


async def until(pilot: Pilot[None], reached: Callable[[], object]) -> None:
    """Let the program work until something is so; what never becomes so fails with what is shown instead."""
    for _ in range(_TRIES):
        if reached():
            return
        await pilot.pause(0.01)
    program = pilot.app
    assert isinstance(program, ViewProgram)
    raise AssertionError("\n".join(["never so:", header(program), *listed(program), *rows(program), *screen(program)]))


def rows(program: ViewProgram) -> list[str]:
    """Return what the block list shows, row by row."""
    return [program.blocks.render_line(y).text.rstrip() for y in range(program.blocks.size.height)]


def drawn(program: ViewProgram) -> list[str]:
    """Return what Textual has drawn of the block list, row by row: it draws only what it was asked to."""
    blocks = program.blocks.region
    drawn = program.screen._compositor.render_strips()[blocks.y : blocks.bottom]
    return [strip.crop(blocks.x, blocks.x + program.blocks.size.width).text.rstrip() for strip in drawn]


def shows(program: ViewProgram, text: str) -> bool:
    """Whether a text stands in the block list."""
    return any(text in row for row in rows(program))


def screen(program: ViewProgram) -> list[str]:
    """Return the rows of the screen, without the caption."""
    return [program.terminal.render_line(y).text.rstrip() for y in range(1, program.terminal.size.height)]


def header(program: ViewProgram) -> str:
    """Return the first line."""
    return str(program.header.content)


def listed(program: ViewProgram) -> list[str]:
    """Return the lines of the list of conversations."""
    options = [program.list.get_option_at_index(at) for at in range(program.list.option_count)]
    return [line.rstrip() for one in options if isinstance(one.prompt, Text) for line in one.prompt.plain.split("\n")]


class Clock:
    def __init__(self) -> None:
        self.ms = 0.0

    def __call__(self) -> float:
        return self.ms
