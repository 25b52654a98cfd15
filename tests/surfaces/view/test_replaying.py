"""A replay in the terminal program: moments as they were, played, paused, stepped through."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.surfaces.client import Client
from blockpty.surfaces.view.replaying import ReplayView
from tests.support.async_tests import async_test
from tests.support.pilots import until, viewing

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]


@async_test
async def test_a_replay_plays_to_the_end_and_goes_back(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        for number in (1, 2, 3):
            await conversation.run(f"echo part-{number}")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: len(program.blocks.blocks) == 3)
            await pilot.press("k", "r")
            await until(pilot, lambda: isinstance(program.screen, ReplayView))
            replay = program.screen
            assert isinstance(replay, ReplayView)

            def shown() -> str:
                height = replay.shown.size.height
                return "\n".join(replay.shown.render_line(y).text.rstrip() for y in range(1, height))

            await until(pilot, lambda: replay.ended and "part-3" in shown())
            await pilot.press("k")
            await until(pilot, lambda: "part-2" in shown() and "part-3" not in shown())
            await pilot.press("plus")
            await until(pilot, lambda: replay.speed == 2)
            await pilot.press("space")
            await until(pilot, lambda: replay.ended and "part-3" in shown())
            await pilot.press("left")
            await until(pilot, lambda: "part-1" not in shown())
            await pilot.press("escape")
            await until(pilot, lambda: not isinstance(program.screen, ReplayView))
        await conversation.close()


@async_test
async def test_an_end_from_before_a_seek_is_not_the_end(home: Path) -> None:
    """A short record can be played to its end before the player is notified where to begin."""
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("echo part-1")
        await conversation.run("echo part-2")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: len(program.blocks.blocks) == 2)
            await pilot.press("k", "r")
            await until(pilot, lambda: isinstance(program.screen, ReplayView))
            replay = program.screen
            assert isinstance(replay, ReplayView)
            # From here on the player sends nothing of its own.
            await until(pilot, lambda: replay.ended)
            replay.playing, replay.ended, replay._tag = True, False, replay._tag + 1
            # A seek is on its way, and the end of the first round comes.
            await replay._take({"type": "end"})
            assert replay.playing and not replay.ended
            await replay._take({"type": "turned", "tag": replay._tag})
            await replay._take({"type": "end"})
            assert replay.ended and not replay.playing
        await conversation.close()
