"""The list of conversations over a real server: grouped, and told of what happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.surfaces.client import Client
from tests.support.async_tests import async_test
from tests.surfaces.view.pilots import header, listed, shows, until, viewing

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]


@async_test
async def test_conversations_are_grouped(home: Path) -> None:
    async with Client(home) as client:
        idle = await client.open("idle", shell="bash", cwd="/")
        await idle.run("false")
        busy = await client.open("busy", shell="bash", cwd="/")
        await busy.exec_block("sleep 1000")
        gone = await client.open("gone", shell="bash", cwd="/")
        await gone.run("echo once")
        await gone.close()
        async with viewing(client, None) as (program, pilot):
            await until(pilot, lambda: program.here == "busy" and program.conversation and program.conversation.live)
            await until(pilot, lambda: "IDLE" in listed(program) and "ENDED" in listed(program))
            found = listed(program)
            assert [line for line in found if line.isupper()] == ["RUNNING", "IDLE", "ENDED"]
            assert found[found.index("IDLE") + 1].startswith("✗ idle")
            assert found[found.index("IDLE") + 2] == "  false"
            assert found[found.index("RUNNING") + 2] == "  sleep 1000"
            await pilot.press("J")
            assert program.here == "idle"
            await until(pilot, lambda: "  idle  " in header(program) and "1 failed" in header(program))
            # What happens is shown without being asked for.
            await idle.run("echo news")
            await until(pilot, lambda: "  echo news" in listed(program) and shows(program, "news"))
        await busy.close()
        await idle.close()


@async_test
async def test_an_empty_home_says_what_to_do_and_opens_the_first_conversation(home: Path) -> None:
    async with Client(home) as client, viewing(client, None) as (program, pilot):
        await until(pilot, lambda: shows(program, "no conversation yet") and "● live" in header(program))
        conversation = await client.open("c1", shell="bash", cwd="/")
        await until(pilot, lambda: program.here == "c1" and shows(program, "no command has run here yet"))
        await conversation.close()
        await until(pilot, lambda: "  ended  " in header(program) and "ENDED" in listed(program))
