"""The search over a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Static

from blockpty.surfaces.client import Client
from blockpty.surfaces.view.search import Search
from tests.support.async_tests import async_test
from tests.support.pilots import shows, until, viewing

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]


@async_test
async def test_search_opens_the_block_of_a_match(home: Path) -> None:
    async with Client(home) as client:
        other = await client.open("c2", shell="bash", cwd="/")
        await other.run("echo a nee''dle in the hay")
        conversation = await client.open("c1", shell="bash", cwd="/")
        async with viewing(client) as (program, pilot):
            await pilot.press("slash", *"needle")
            await until(pilot, lambda: len(getattr(program.screen, "hits", [])) == 1)
            await pilot.press("enter")
            await until(pilot, lambda: program.here == "c2" and shows(program, "needle"))
            assert program.blocks.selected == "b1"
            # In other ways, and in failed blocks only.
            await pilot.press("escape", "slash", *"hay nee.?dle")

            def how() -> str:
                return str(program.screen.query_one(Static).content) if isinstance(program.screen, Search) else ""

            await until(pilot, lambda: how().startswith("0 matches") and "this text" in how())
            await pilot.press("ctrl+t", "ctrl+t", "ctrl+t")
            await until(pilot, lambda: how().startswith("0 matches") and "this expression" in how())
            await pilot.press(*["backspace"] * 12, *"nee.?dle")
            await until(pilot, lambda: how().startswith("1 matches"))
            await pilot.press("ctrl+f")
            await until(pilot, lambda: how().startswith("0 matches") and "failed blocks" in how())
            await pilot.press("ctrl+f")
            await until(pilot, lambda: how().startswith("1 matches") and "all blocks" in how())
        await conversation.close()
        await other.close()
