"""What is kept of a conversation: its blocks as they come and as they are asked for, also from the next server."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from blockpty.surfaces.client import Client
from blockpty.surfaces.view.finding import Find
from tests.support.async_tests import async_test
from tests.support.pilots import header, rows, screen, shows, until, viewing

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]


@async_test
async def test_older_blocks_are_read_when_the_oldest_is_looked_at(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        for number in range(105):
            await conversation.run("seq 300; echo an early nee''dle; false" if number == 2 else f": {number}")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: "100+ blocks" in header(program))
            await pilot.press("home")
            await until(pilot, lambda: "105 blocks" in header(program) and len(program.blocks.blocks) > 100)
            assert [block.seq for block in program.blocks.blocks] == list(range(1, 106))
        # Nor does a filter leave them out, and a match in one of them can be gone to.
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: "100+ blocks" in header(program))
            await pilot.press("F")
            await until(pilot, lambda: "only failed: 1 (0 shows all)" in header(program))
            assert [block.seq for block in program.blocks.blocks] == [3] and "100+ blocks" in header(program)
            await pilot.press("0", "slash", *"needle")
            await until(pilot, lambda: len(getattr(program.screen, "hits", [])) == 1)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(program.screen, Find) and program.screen.at == 0)
            await until(pilot, lambda: shows(program, "an early needle") and shows(program, "300"))
            assert program.blocks.selected == "b3" and "105 blocks" in header(program)
        await conversation.close()


@async_test
async def test_a_running_block_grows_and_ends(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: program.blocks.note == "no command has run here yet")
            await conversation.exec_block("echo first; read x; echo then $x")
            await until(pilot, lambda: shows(program, "◌ echo first") and "▌   first" in rows(program))
            await conversation.send("more\n")
            await until(pilot, lambda: shows(program, "✓ echo first") and shows(program, "then more"))
        await conversation.close()


@async_test
async def test_a_server_that_was_killed_is_followed_on_without_gap_or_doubles(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("echo before")
        async with viewing(client, size=(200, 40)) as (program, pilot):
            await until(pilot, lambda: shows(program, "before"))
            pid = json.loads((home / "server" / "server.json").read_bytes())["pid"]
            # The shell prints while there is no server.
            await conversation.send("for i in $(seq 5); do echo line $i; done; echo the la''st\n", author="user")
            os.kill(pid, signal.SIGKILL)
            await until(pilot, lambda: any("the last" in row for row in screen(program)) and program.conversation.live)
            await until(pilot, lambda: shows(program, "the last") and program.home.live)
            await conversation.run("echo after")
            await until(pilot, lambda: shows(program, "after"))
            kept = program.conversation.blocks.list
            assert kept == (await conversation.blocks()).blocks
            expected = (await conversation.screen(format="text")).content.split("\n")
            await until(pilot, lambda: screen(program)[: len(expected)] == [row.rstrip() for row in expected])
        await conversation.close()
