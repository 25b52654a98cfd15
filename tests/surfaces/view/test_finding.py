"""Find in a conversation: each match after the other, marked where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Static

from blockpty.surfaces.client import Client
from blockpty.surfaces.view.finding import Find
from tests.support.async_tests import async_test
from tests.support.pilots import rows, shows, until, viewing

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]


@async_test
async def test_matches_of_the_whole_record_are_gone_through(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("seq 1 300; echo Two words; seq 301 600; echo two")
        await conversation.run("echo last")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: len(program.blocks.blocks) == 2)
            await pilot.press("f")
            await until(pilot, lambda: isinstance(program.screen, Find))

            def count() -> str:
                return str(program.screen.query_one(Static).content) if isinstance(program.screen, Find) else ""

            # Enter may come before what was typed last has been looked for.
            await pilot.press(*"TWO", "enter")
            await until(pilot, lambda: count() == "1 of 2" and shows(program, "Two words"))
            assert any("300" in row for row in rows(program)) and program.blocks.selected == "b1"
            row = next(at for at, text in enumerate(rows(program)) if "Two words" in text)
            parts = [part.text for part in program.blocks.render_line(row)]
            assert "Two" in parts, "it is marked: a segment of its own"
            await pilot.press("down")
            await until(pilot, lambda: count() == "2 of 2" and shows(program, "600"))
            await pilot.press("up", "escape")
            await until(pilot, lambda: not isinstance(program.screen, Find))
            # Numbers of lines stand before them.
            await pilot.press("#")
            await until(pilot, lambda: any("301  Two words" in text for text in rows(program)))
        await conversation.close()
