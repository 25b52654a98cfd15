"""Facts of a block, the runs of its command, and the difference to the run before."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Static

from blockpty.surfaces.client import Client
from blockpty.surfaces.view.inspector import Inspector, difference
from blockpty.surfaces.view.theme import DARK
from tests.support.async_tests import async_test
from tests.support.pilots import until, viewing


def test_a_diff_has_colours_and_its_text_is_safe() -> None:
    text = difference("--- b1\n+++ b2\n@@ -1 +1 @@\n-old\x1b[2J\n+new\n", True, DARK)
    assert "\x1b" not in text.plain and text.plain.endswith("and more\n")
    looks = {text.plain[span.start : span.end].strip(): str(span.style) for span in text.spans}
    assert looks["+new"] == DARK.ok


@pytest.mark.needs("bash")
@pytest.mark.linux
@async_test
async def test_the_facts_and_the_difference_to_the_run_before(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        for text in ("old", "new"):
            (home / "text").write_text(f"same\n{text}\n")
            await conversation.run(f"cat {home / 'text'}")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: len(program.blocks.blocks) == 2)

            def shown() -> str:
                if not isinstance(program.screen, Inspector):
                    return ""
                return "\n".join(str(one.content) for one in program.screen.query(Static))

            await pilot.press("i")
            await until(pilot, lambda: "b2" in shown())
            assert "the last 2 of this command" in shown() and "Directory" in shown() and "+new" not in shown()
            await pilot.press("escape")
            await until(pilot, lambda: not shown())
            await pilot.press("d")
            await until(pilot, lambda: "+new" in shown() and "-old" in shown())
            await pilot.press("escape")
        await conversation.close()
