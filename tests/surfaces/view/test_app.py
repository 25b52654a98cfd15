"""The program over a real server: control, typing, approvals, and what a narrow terminal shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Static

from blockpty.errors import ApprovalDenied
from blockpty.surfaces.client import Client
from blockpty.surfaces.view.approvals import DEAD_MS
from blockpty.surfaces.view.dialogs import Always
from tests.support.asking_agents import agent, asking
from tests.support.async_tests import async_test
from tests.support.pilots import Clock, header, listed, screen, shows, until, viewing
from tests.support.terminal_sockets import person

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]


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
            async with person(home, "ann") as ann:
                await pilot.press("t")
                await until(pilot, lambda: program.terminal.typing)
                await ann.does("ask_control")
                await until(pilot, lambda: "ann asks for control. ^] hands it over." in str(program.banner.render()))
                await pilot.press("ctrl+right_square_bracket")
                await ann.sees("control")
                await until(pilot, lambda: "ann types" in header(program) and not program.banner.display)
                viewed = program.conversation
                assert viewed is not None
                for asks in (True, False, True):
                    await pilot.press("t")
                    await until(pilot, lambda asks=asks: viewed.asks is asks)
                await ann.does("release_control")
                await until(pilot, lambda: program.terminal.typing and "you type" in header(program))
                assert not viewed.asks
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
        # Always: after a look at the rule, which is then in the policy.
        async with asking(agents, "echo ever") as call:
            await until(pilot, lambda: program.approval.display)
            clock.ms += DEAD_MS
            await pilot.press("a")
            await until(pilot, lambda: isinstance(program.screen, Always))
            assert "echo ever" in str(program.screen.query_one(Static).content)
            await pilot.press("escape")
            assert not isinstance(program.screen, Always) and not call.done()
            await pilot.press("a", "y")
            assert (await call).output.strip() == "ever"
        assert (await (await agents.conversation("c1")).run("echo ever")).output.strip() == "ever"


@async_test
async def test_a_narrow_terminal_has_tabs(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("echo seen")
        async with viewing(client, size=(100, 30)) as (program, pilot):
            parts = (program.list, program.query_one("#middle"), program.terminal)
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
async def test_a_hidden_screen_is_not_drawn(home: Path) -> None:
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


@async_test
async def test_what_comes_while_the_program_leaves_starts_no_timer(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        async with viewing(client) as (program, pilot):
            await until(pilot, lambda: "agent types" in header(program))
        # The tasks that follow are stopped after Textual has stopped its timers. A task that is left fails the test.
        program.changed({"b1"})
        program.home._changed()
        await conversation.close()
