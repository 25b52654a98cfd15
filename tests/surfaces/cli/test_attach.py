"""`blockpty attach` on a real terminal: what it shows, what it sends, and how it leaves the terminal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from blockpty.errors import UserInControl
from blockpty.screen.emulator import Emulator
from blockpty.surfaces.client import Client
from tests.support.asking_agents import CHOICES, agent, asking
from tests.support.async_tests import async_test
from tests.support.cli_terminal import on_terminal, start, unsafe
from tests.support.hostile_output import HOSTILE
from tests.support.processes import stop_server
from tests.support.terminal_sockets import person
from tests.support.tmux_panes import in_shell

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]

# All that a picture is drawn with apart from colours, and the modes that decide what keys send.
OURS = re.compile(r"\x1b\[(?:\?(?:1049|25|7|2004|1)[hl]|2J|2K|H|\d+;\d+H)|\x1b[=>]")
LEFT = "\x1b[?1049l"
PREFIX = "\x1d"


@contextmanager
def attached(home: Path, *options: str, columns: int = 80) -> Iterator[Any]:
    """Give a terminal of 40 rows on which attach runs."""
    with start("attach", "c1", "--home", str(home), *options, columns=columns) as terminal:
        yield terminal


def shown(output: bytes, columns: int = 80) -> list[str]:
    """Return what a terminal shows after this output."""
    screen = Emulator(columns, 40)
    screen.feed(output)
    return [line.text.rstrip() for line in screen.frame().lines]


def leave(terminal: Any) -> str:
    """Detach; return all that came out since the last look."""
    terminal.send(PREFIX + "d")
    rest: str = terminal.read().decode()
    terminal.wait()
    assert terminal.exitstatus == 0, rest
    return rest


@async_test
async def test_the_screen_is_there_and_what_is_typed_goes_in(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("echo from before")

        def look() -> str:
            with attached(home) as terminal:
                terminal.expect_exact("from before")
                terminal.send("echo so''me $((6*7))\r")
                terminal.expect_exact("some 42")
                return leave(terminal)

        rest = await asyncio.to_thread(look)
        assert LEFT in rest and "detached" in rest
        await conversation.run("true")
        block = (await conversation.blocks()).blocks[-2]
        assert (block.cmd, block.author, block.exit_status) == ("echo so''me $((6*7))", "user", 0)
        await conversation.close()


@async_test
async def test_a_full_screen_program_is_drawn_whole_when_joined_in_the_middle(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/", cols=80, rows=40)
        drawing = r"printf '\e[?1049h\e[2J\e[5;20r\e[7;9H\e[31mred\e[m\e[20;1H'; seq 30; printf '\e[39;3Hthe la''st'"
        await conversation.exec_interactive(f"{drawing}; read x")
        await conversation.wait_for("the last")

        def look() -> bytes:
            with attached(home) as terminal:
                terminal.expect_exact("the last")
                output: bytes = terminal.before + terminal.after
                leave(terminal)
                return output

        output = await asyncio.to_thread(look)
        expected = (await conversation.screen(format="text")).content.split("\n")
        assert shown(output) == [line.rstrip() for line in expected] + [""] * (40 - len(expected))
        await conversation.close()


@async_test
async def test_control_is_taken_and_handed_back(home: Path) -> None:
    async with Client(home) as client, Client(home, agent="mcp") as agent:
        conversation = await client.open("c1", shell="bash", cwd="/")
        agents = await agent.conversation("c1")

        async def ask(terminal: Any, keys: str, answer: str) -> None:
            await asyncio.to_thread(terminal.send, keys)
            await asyncio.to_thread(terminal.expect_exact, answer)

        with attached(home) as terminal:
            await ask(terminal, "echo rea''dy\r", "ready")
            await ask(terminal, PREFIX + "t", "you have control")
            with pytest.raises(UserInControl):
                await agents.run("echo no")
            await ask(terminal, PREFIX + "h", "agents may type")
            assert (await agents.run("echo agent")).output == "agent\n"
            async with person(home, "ann") as ann:
                await ask(terminal, PREFIX + "t", "you have control")
                for keys, answer in (("k", {"kind": "asking", "state": "kept"}), ("h", {"kind": "control"})):
                    await ann.does("ask_control")
                    await asyncio.to_thread(terminal.expect_exact, "ann asks for control")
                    await asyncio.to_thread(terminal.send, PREFIX + keys)
                    await ann.sees(**answer)
                await ask(terminal, PREFIX + "t", "ann has control, and is asked for it")
                await ann.does("keep_control")
                await asyncio.to_thread(terminal.expect_exact, "ann keeps control")
                await ask(terminal, PREFIX + "t", "ann has control, and is asked for it")
                await ann.does("release_control")
                await asyncio.to_thread(terminal.expect_exact, "you have control")
                await ask(terminal, PREFIX + "h", "agents may type")
            await ask(terminal, PREFIX + "?", "detach")
            await asyncio.to_thread(leave, terminal)
        await conversation.close()


@async_test
async def test_a_question_of_an_agent_is_answered_without_leaving(home: Path) -> None:
    async with agent(home) as client:

        def answer(terminal: Any) -> None:
            terminal.expect_exact("asks for approval")
            terminal.send(PREFIX + "a")
            terminal.expect_exact(CHOICES)
            terminal.send("y\r")
            # Back on the screen, where the command runs now.
            terminal.expect_exact("from an agent")
            terminal.send("echo ty''ped\r")
            terminal.expect_exact("typed")
            leave(terminal)

        with attached(home) as terminal:
            async with asking(client, "echo from an agent") as call:
                await asyncio.to_thread(answer, terminal)
            assert (await call).output == "from an agent\n"


@async_test
async def test_a_question_that_waits_already_is_said_until_it_is_answered(home: Path) -> None:
    async with agent(home) as client, asking(client, "echo from an agent") as call, Client(home) as owner:
        conversation = await owner.conversation("c1")
        with attached(home) as terminal:
            await asyncio.to_thread(terminal.expect_exact, "asks for approval")
            (question,) = (await owner.approvals()).approvals
            await conversation.approve(question["approval_id"], question["digest"])
            assert (await call).output == "from an agent\n"
            shown = (await asyncio.to_thread(leave, terminal)).rpartition("from an agent")[2]
            assert "asks for approval" not in shown


@async_test
async def test_a_key_of_the_person_puts_a_question_away(home: Path) -> None:
    async with agent(home) as client, asking(client, "echo from an agent") as call:
        with attached(home) as terminal:
            await asyncio.to_thread(terminal.expect_exact, "asks for approval")
            terminal.send(PREFIX + "?")
            await asyncio.to_thread(terminal.expect_exact, "detach")
            terminal.send(PREFIX + "h")
            terminal.send("echo ty''ped\r")
            await asyncio.to_thread(terminal.expect_exact, "typed")
            assert "asks for approval" not in await asyncio.to_thread(leave, terminal)
        call.cancel()


@async_test
async def test_read_only_types_nothing(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.run("echo from before")
        cursor = (await conversation.status()).cursor

        def look() -> None:
            with attached(home, "--read-only") as terminal:
                terminal.expect_exact("from before")
                terminal.send("x")
                terminal.expect_exact("nothing is typed")
                terminal.send(PREFIX + "t")
                terminal.expect_exact("does nothing else")
                leave(terminal)

        await asyncio.to_thread(look)
        assert (await conversation.status()).cursor == cursor
        await conversation.close()


@async_test
async def test_nothing_hostile_reaches_the_terminal(home: Path, tmp_path: Path) -> None:
    payload = tmp_path / "payload"
    payload.write_bytes(HOSTILE + b"\x1b[m\r\n")
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd=str(tmp_path))

        def look() -> str:
            with attached(home) as terminal:
                terminal.send("cat payload; echo the e''nd\r")
                terminal.expect_exact("the end")
                output: str = (terminal.before + terminal.after).decode()
                return output + leave(terminal)

        output = await asyncio.to_thread(look)
        # No title, no clipboard, no question to the terminal: nothing but cells, colours and what keys send.
        assert unsafe(OURS.sub("", output)) == []
        assert "OWNED" not in output
        await conversation.close()


@async_test
async def test_the_program_gets_the_size_of_this_terminal(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")

        def look() -> None:
            with attached(home, "--fit", columns=91) as terminal:
                terminal.send("until [ \"$(stty size)\" = '40 91' ]; do sleep 0.01; done; echo fi''ts\r")
                terminal.expect_exact("fits")
                terminal.setwinsize(33, 70)
                terminal.send("until [ \"$(stty size)\" = '33 70' ]; do sleep 0.01; done; echo al''so\r")
                terminal.expect_exact("also")
                leave(terminal)

        await asyncio.to_thread(look)
        await conversation.close()


@async_test
async def test_the_terminal_is_as_before_also_when_attach_is_killed(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")
        await conversation.exec_interactive(r"printf '\e[?1049h\e[?1h\e[?1002;1006;2004h\e=dra''wn'; read x")

        def look() -> bytes:
            with attached(home) as terminal:
                terminal.expect_exact("\x1b[?2004h")
                output: bytes = terminal.before + terminal.after
                terminal.kill(signal.SIGTERM)
                rest: bytes = terminal.read()
                return output + rest

        output = await asyncio.to_thread(look)
        screen = Emulator(80, 40)
        before = screen.frame().modes
        screen.feed(output)
        after = screen.frame()
        assert (after.modes, after.alt, after.cursor.visible) == (before, False, True)
        assert b"SIGTERM" in output
        await conversation.close()


def test_it_goes_on_when_the_server_is_killed_and_ends_with_the_shell(home: Path) -> None:
    for words in (["open", "c1", "--shell", "bash", "--cwd", "/"], ["run", "c1", "echo from before"]):
        subprocess.run([sys.executable, "-m", "blockpty", *words, "--home", str(home)], check=True, capture_output=True)
    with attached(home) as terminal:
        terminal.expect_exact("from before")
        os.kill(json.loads((home / "server" / "server.json").read_text())["pid"], signal.SIGKILL)
        terminal.expect_exact("trying again")
        # What is typed in between is not sent later.
        terminal.expect_exact("connected again")
        terminal.send("echo go''es on\r")
        terminal.expect_exact("goes on")
        terminal.send("exit\r")
        output: str = terminal.read().decode()
        terminal.wait()
    assert terminal.exitstatus == 0 and "the shell has ended" in output, output
    stop_server(home)


def test_what_is_wrong_is_said(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "blockpty", "attach", "c1", "--home", str(home)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "needs a terminal" in done.stderr
    status, output = on_terminal("attach", "c1", "--keys", "x", "--home", str(home))
    assert status == 2 and "--keys x" in output
    status, output = on_terminal("attach", "missing", "--home", str(home))
    assert status == 1 and "not_found" in output and LEFT not in output
    stop_server(home)


@pytest.mark.needs("tmux")
@async_test
async def test_several_terminals_of_other_sizes_show_one_conversation(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/", cols=70, rows=12)
        await conversation.run("printf 'left%60s\\n' right")
        places = [tmp_path_factory.mktemp("t") for _ in range(2)]
        whole = ("attach", "c1", "--home", str(home))
        with in_shell(places[0], columns=80, lines=20) as wide, in_shell(places[1], columns=40, lines=8) as small:
            for tmux in (wide, small):
                await tmux.until(lambda rows: any("before" in row for row in rows))
                tmux("send-keys", shlex.join([sys.executable, "-m", "blockpty", *whole]), "Enter")
            await wide.until(lambda rows: any(row.startswith("left") and row.endswith("right") for row in rows))
            # Of what is larger the part around the cursor is shown, and that is said.
            await small.until(lambda rows: any("the screen is 70x12" in row for row in rows))
            # What one types, all see.
            wide("send-keys", "echo typed in o''ne", "Enter")
            for tmux in (wide, small):
                await tmux.until(lambda rows: any(row == "typed in one" for row in rows))
            small("send-keys", "echo typed in the o''ther", "Enter")
            for tmux in (wide, small):
                await tmux.until(lambda rows: any(row == "typed in the other" for row in rows))
            assert [block.author for block in (await conversation.blocks()).blocks] == ["agent", "user", "user"]
            # One leaves, and finds its terminal as it was; the other stays.
            wide("send-keys", "C-]", "d")
            rows = await wide.until(lambda rows: any("blockpty: detached" in row for row in rows))
            assert any("before" in row for row in rows) and not any("left" in row for row in rows)
            assert wide("display-message", "-p", "#{alternate_on} #{cursor_flag}").strip() == "0 1"
            await conversation.run("echo st''ill")
            await small.until(lambda rows: any(row == "still" for row in rows))
            small("send-keys", "C-]", "d")
            await small.until(lambda rows: any("blockpty: detached" in row for row in rows))
        await conversation.close()
