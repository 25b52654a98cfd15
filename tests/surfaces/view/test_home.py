"""The list of conversations over a real server: grouped, and notified of what happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.surfaces.client import Client
from tests.support.async_tests import async_test
from tests.support.pilots import header, listed, shows, until, viewing

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
async def test_ages_go_on_over_the_entries(home: Path) -> None:
    async with Client(home) as client:
        opened = [await client.open(name, shell="bash", cwd="/") for name in ("first", f"second-{'long' * 10}")]
        for conversation in opened:
            await conversation.run("true")
        ended = (await opened[0].blocks()).blocks[-1].ts_end
        assert ended is not None
        now = ended + 14_000
        async with viewing(client, "first", wall_ms=lambda: now) as (program, pilot):

            def entries() -> list[str]:
                region = program.list.region
                drawn = program.screen._compositor.render_strips()[region.y : region.bottom]
                return [line for strip in drawn if " s" in (line := strip.crop(region.x, region.right).text)]

            await until(pilot, lambda: sorted(line.split()[1] for line in entries())[:1] == ["first"])
            await until(pilot, lambda: any(line.rstrip().endswith(" 14 s") for line in entries()))
            assert len({len(line.rstrip()) for line in entries()}) == 1
            assert any("second-longlon" in line and "…" in line for line in entries())
            now += 20_000
            await until(pilot, lambda: any("first" in line and line.rstrip().endswith(" 34 s") for line in entries()))
            # The mouse finds the entry below an age.
            rows = program.screen._compositor.render_strips()
            at = next(y for y, strip in enumerate(rows) if "second-longlon" in strip.text)
            await pilot.click(offset=(rows[at].text.index(" s") + 1, at))
            await until(pilot, lambda: program.here == opened[1].id)
        for conversation in opened:
            await conversation.close()


@async_test
async def test_an_empty_home_says_what_to_do_and_opens_the_first_conversation(home: Path) -> None:
    async with Client(home) as client, viewing(client, None) as (program, pilot):
        await until(pilot, lambda: shows(program, "no conversation yet") and "● live" in header(program))
        conversation = await client.open("c1", shell="bash", cwd="/")
        await until(pilot, lambda: program.here == "c1" and shows(program, "no command has run here yet"))
        await conversation.close()
        await until(pilot, lambda: "  ended  " in header(program) and "ENDED" in listed(program))
