"""The last line shows the keys that apply, and takes a click for a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.surfaces.client import Client
from blockpty.surfaces.view.app import ViewProgram
from tests.support.async_tests import async_test
from tests.support.pilots import header, until, viewing

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]


def line(program: ViewProgram) -> str:
    """Return what Textual has drawn of it."""
    return program.screen._compositor.render_strips()[program.keys.region.y].text


@async_test
async def test_the_keys_that_apply_are_shown_and_can_be_clicked(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: "t take over" in line(program))
            words = line(program).split(" ")
            assert len(words) > 8 and "^]" not in words
            await pilot.click(program.keys, offset=(line(program).index("take over"), 0))
            await until(pilot, lambda: program.terminal.typing and "you type" in header(program))
            # Every other key goes to the program now.
            await until(pilot, lambda: line(program).strip() == "^] hand back")
            await pilot.click(program.keys, offset=(60, 0))
            await pilot.click(program.keys, offset=(1, 0))
            await until(pilot, lambda: "agent types" in header(program) and "t take over" in line(program))
        await conversation.close()


@async_test
async def test_what_may_not_be_done_has_no_key(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        async with viewing(client, read_only=True) as (program, pilot):
            await until(pilot, lambda: "? " in line(program) and "agent types" in header(program))
            assert "take over" not in line(program)
        await conversation.close()
