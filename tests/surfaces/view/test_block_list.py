"""The list of blocks over a real server: what it shows, draws anew, and keeps in view."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.surfaces.client import Client
from blockpty.surfaces.view import output
from tests.support.async_tests import async_test
from tests.support.pilots import drawn, header, rows, shows, until, viewing

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]


@async_test
async def test_blocks_show_as_much_as_matters(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("seq 12")
        await conversation.run("seq 400")
        await conversation.run("seq 1000 1399; false")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: shows(program, "388 lines folded (z shows them)"))
            await until(pilot, lambda: shows(program, "3 blocks") or len(program.blocks.blocks) == 3)
            await pilot.press("home")
            await until(pilot, lambda: shows(program, "seq 400"))
            await until(pilot, lambda: shows(program, "400 lines"))
            shown = rows(program)
            first = next(at for at, row in enumerate(shown) if "seq 12" in row)
            assert [row.strip(" ▌") for row in shown[first + 1 : first + 13]] == [str(n) for n in range(1, 13)]
            second = next(at for at, row in enumerate(shown) if "seq 400" in row)
            assert shown[second + 1].strip(" ▌") == "400" and "✓" in shown[second] and "400 lines" in shown[second]
            assert "exit 1" in shown[second + 2] and "✗" in shown[second + 2] and shown[second + 2].endswith("A")
            # All of them, and folded again.
            await pilot.press("G", "z")
            await until(pilot, lambda: shows(program, "1000") and not shows(program, "folded (z"))
            assert program.blocks.virtual_size.height == 13 + 2 + 401
            await pilot.press("z")
            await until(pilot, lambda: shows(program, "388 lines folded"))
        async with viewing(client, size=(160, 60)) as (program, pilot):
            # Lines that were printed over are shown as they were seen in the end, wherever the pieces are divided.
            monkeypatch.setattr(output, "PIECE", 20)
            await conversation.run(r"seq 5001 5006; printf '\e[3A\e[Kov%s\n\e[3B' er")
            await until(pilot, lambda: shows(program, "  over"))
            shown = [row.strip(" ▌") for row in rows(program)]
            at = shown.index("over")
            assert shown[at - 3 : at + 3] == ["5001", "5002", "5003", "over", "5005", "5006"]
            # What is too long to be held says so, in the list and when it is copied.
            monkeypatch.setattr(output, "PIECE", 2000)
            monkeypatch.setattr(output, "MOST", 900)
            monkeypatch.setattr(output, "WHOLE", 400)
            await conversation.run("seq 2000 2399")
            await until(pilot, lambda: shows(program, "seq 2000"))
            await pilot.press("z")
            await until(pilot, lambda: shows(program, " of 2 kB; blockpty read shows the rest"))
            await pilot.press("c")
            expected = "copied; the last 1 kB are left out"
            await until(pilot, lambda: any(toast.message == expected for toast in program._notifications))
            assert program.clipboard.splitlines()[:2] == ["2000", "2001"]
        await conversation.close()


@async_test
async def test_filters_let_blocks_through(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("echo well")
        await conversation.run("echo badly; false")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: len(program.blocks.blocks) == 2)
            await pilot.press("F")
            assert [block.cmd for block in program.blocks.blocks] == ["echo badly; false"]
            assert "only failed: 1" in header(program)
            await pilot.press("U")
            assert program.blocks.blocks == [] and "no block passes the filter 'you'" in rows(program)[0]
            await pilot.press("0")
            assert len(program.blocks.blocks) == 2
            # Which blocks used the screen is asked, also of one that ends while only those are shown.
            await conversation.run(r"printf 'up\e[A and over\n'")
            await pilot.press("T")
            await until(pilot, lambda: [block.block_id for block in program.blocks.blocks] == ["b3"])
            await conversation.run(r"printf '\e[?1049h\e[?1049l'")
            await until(pilot, lambda: [block.block_id for block in program.blocks.blocks] == ["b3", "b4"])
        await conversation.close()


@async_test
async def test_what_has_changed_is_drawn_anew_and_all_of_that(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("echo before")
        async with viewing(client) as (program, pilot):

            async def shown(text: str) -> None:
                await until(pilot, lambda: shows(program, text))
                await until(pilot, lambda: drawn(program) == rows(program))

            await conversation.exec_block("while read x; do seq $x; done")
            await shown("while read")
            # All lines of it, then only the last ones, with how many there are; then it ends.
            await conversation.send("3\n")
            await shown("4 lines")
            await conversation.send("200\n")
            await shown("189 lines folded")
            await conversation.send("30\n")
            await shown("220 lines folded")
            await conversation.send("\x04")
            await shown("✓ while")
            await pilot.press("k")
            assert drawn(program) == rows(program)
            await conversation.run("echo behind")
            await shown("✓ echo behind")
        await conversation.close()


@async_test
async def test_what_is_looked_at_stays_while_more_comes(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        for number in range(30):
            await conversation.run(f"echo number {number}; true")
        async with viewing(client, size=(160, 20)) as (program, pilot):
            await until(pilot, lambda: shows(program, "number 29"))
            await pilot.press("home")
            await until(pilot, lambda: all(program.blocks.output(f"b{n}") is not None for n in range(1, 10)))
            before = rows(program)
            await conversation.run("echo the newest")
            await until(pilot, lambda: program.blocks.blocks[-1].cmd == "echo the newest")
            assert rows(program) == before
            await pilot.press("G")
            await until(pilot, lambda: shows(program, "the newest"))
        await conversation.close()


@async_test
async def test_a_hundred_thousand_lines_are_shown_and_scrolled(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("seq 100000; false")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: shows(program, "100000"))
            await pilot.press("z")
            await until(pilot, lambda: program.blocks.virtual_size.height == 100_001)
            await pilot.press("G")
            await until(pilot, lambda: rows(program)[-1].endswith("100000"))
            await pilot.press("[")
            await until(pilot, lambda: rows(program)[1].endswith(" 1"))
            await pilot.press("space")
            height = program.blocks.size.height
            await until(pilot, lambda: int(program.blocks.scroll_offset.y) >= height - 1)
        await conversation.close()
