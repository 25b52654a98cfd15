"""The dialogs over a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.surfaces.client import Client
from tests.support.async_tests import async_test
from tests.support.pilots import viewing

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]


@async_test
async def test_help_shows_the_table_and_the_theme_changes(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        async with viewing(client) as (program, pilot):
            await pilot.press("question_mark")
            assert "Help" in type(program.screen).__name__
            await pilot.press("escape", "D")
            assert program.theme == "blockpty-light" and program.blocks.colours.surface == "#ffffff"
            await pilot.press("D")
            assert program.theme == "blockpty-dark"
        await conversation.close()
