"""The program over a real server: list, blocks, screen, control, approvals, and a server that goes away."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from blockpty.errors import ApprovalDenied
from blockpty.surfaces.client import Client
from blockpty.surfaces.view.approvals import DEAD_MS
from tests.support.async_tests import async_test
from tests.surfaces.cli.test_answer import agent, asking
from tests.surfaces.view.pilots import drawn, header, listed, rows, screen, shows, until, viewing
from tests.surfaces.view.test_approvals import Clock

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


@async_test
async def test_older_blocks_are_read_when_the_oldest_is_looked_at(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        for number in range(105):
            await conversation.run(f": {number}")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: "100+ blocks" in header(program))
            await pilot.press("home")
            await until(pilot, lambda: "105 blocks" in header(program))
            assert [block.seq for block in program.blocks.blocks] == list(range(1, 106))
        await conversation.close()


@async_test
async def test_blocks_show_as_much_as_matters(home: Path) -> None:
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
async def test_take_over_type_and_hand_back(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: "agent types" in header(program))
            await pilot.press("t")
            await until(pilot, lambda: program.terminal.typing and "you type" in header(program))
            assert program.focused is program.terminal
            # Keys with a meaning of their own go to the program now.
            await pilot.press(*"echo jk", "question_mark", *"[^qt", "enter")
            await until(pilot, lambda: "jk?[^qt" in screen(program))
            assert (await conversation.status()).control == "user"
            await pilot.press("ctrl+right_square_bracket")
            await until(pilot, lambda: not program.terminal.typing and "agent types" in header(program))
            assert (await conversation.status()).control == "agent"
            await until(pilot, lambda: len(program.blocks.blocks) == 1)
            block = program.blocks.blocks[0]
            assert (block.cmd, block.author) == ("echo jk?[^qt", "user")
        await conversation.close()


@async_test
async def test_nothing_is_typed_without_control_or_read_only(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        async with viewing(client, read_only=True) as (program, pilot):
            program.terminal.focus()
            await pilot.press("t", "p", "w", "d", "enter")
            await conversation.run("echo done")
            await until(pilot, lambda: shows(program, "done"))
            assert [block.cmd for block in (await conversation.blocks()).blocks] == ["echo done"]
            assert (await conversation.status()).control == "agent"
        await conversation.close()


@async_test
async def test_a_paste_goes_in_brackets_where_the_program_asked_for_them(home: Path) -> None:
    from textual.events import Paste

    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        program = r"stty raw -echo; printf '\e[?2004hready'; head -c 17 | od -An -c; stty sane"
        await conversation.exec_interactive(program)
        async with viewing(client) as (program, pilot):
            # Not the command, which has the word in it and is drawn before the program asks for brackets.
            await until(pilot, lambda: any(row.strip() == "ready" for row in screen(program)))
            await pilot.press("t")
            await until(pilot, lambda: program.terminal.typing)
            program.terminal.post_message(Paste("a\nb\x1bc"))
            await until(pilot, lambda: any("[   2   0   0   ~" in row for row in screen(program)))
        # Leaving hands back.
        assert (await conversation.status()).control == "agent"
        await conversation.close()


@async_test
async def test_an_approval_is_answered_with_a_key_that_is_not_too_early(home: Path) -> None:
    clock = Clock()
    async with agent(home) as agents, Client(home) as client, viewing(client, steady_ms=clock) as (program, pilot):
        async with asking(agents, "echo asked") as call:
            await until(pilot, lambda: program.approval.display)
            assert "  | echo asked" in str(program.approval.content)
            assert "▲ 1 need you" in header(program)
            await until(pilot, lambda: "NEEDS YOU" in listed(program))
            clock.ms += DEAD_MS - 1
            await pilot.press("y")
            await pilot.pause()
            assert not call.done() and len((await client.approvals()).approvals) == 1
            clock.ms += DEAD_MS
            await pilot.press("y")
            assert (await call).output.strip() == "asked"
            await until(pilot, lambda: not program.approval.display)
        async with asking(agents, "echo refused") as call:
            await until(pilot, lambda: program.approval.display)
            clock.ms += DEAD_MS
            await pilot.press("e")
            await pilot.press(*"not so", "enter")
            with pytest.raises(ApprovalDenied, match="not so"):
                await call
            await until(pilot, lambda: not program.approval.display)


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


@async_test
async def test_a_narrow_terminal_has_tabs(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("echo seen")
        async with viewing(client, size=(100, 30)) as (program, pilot):
            parts = (program.list, program.blocks.parent, program.terminal)
            assert [part.display for part in parts] == [True, True, False]
            await pilot.press("s")
            await until(pilot, lambda: "seen" in screen(program))
            assert [part.display for part in parts] == [True, False, True]
            await pilot.resize_terminal(70, 30)
            await until(pilot, lambda: [part.display for part in parts] == [False, False, True])
            await pilot.press("h")
            assert [part.display for part in parts] == [True, False, False]
            await pilot.press("escape")
            assert [part.display for part in parts] == [False, True, False]
            await pilot.resize_terminal(160, 30)
            await until(pilot, lambda: [part.display for part in parts] == [True, True, True])
        await conversation.close()


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
        await conversation.close()
        await other.close()


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


@async_test
async def test_what_needs_no_eye_is_not_drawn(home: Path) -> None:
    """Without being visible the screen is followed, and no snapshot is taken."""
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        async with viewing(client, size=(100, 30)) as (program, pilot):
            await conversation.run("seq 50000")
            await until(pilot, lambda: shows(program, "50000"))
            end = (await conversation.status()).cursor
            await until(pilot, lambda: program.terminal._acknowledged >= end)
            assert program.terminal.screen_shown is None
            await pilot.press("s")
            await until(pilot, lambda: "50000" in screen(program))
        await conversation.close()


