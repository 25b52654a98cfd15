"""`blockpty record` on a real terminal: the shell is shown, its commands are blocks, and its status comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from blockpty.surfaces.cli.record import passed_on
from blockpty.surfaces.client import Client
from tests.support.async_tests import async_test
from tests.support.cli_terminal import start

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]

PREFIX = "\x1d"
# What the line editor of the shell asks of the terminal when it reads.
PROMPT = "\x1b[?2004h"


@async_test(timeout_seconds=110)
async def test_what_one_does_becomes_blocks(home: Path, tmp_path: Path) -> None:
    def sit() -> tuple[str, int]:
        variables = {"RECORDED": "o n e", "PS1": "lost> "}
        with start("record", "demo", "--shell", "bash", "--home", str(home), **variables) as terminal:
            terminal.expect_exact(PROMPT)
            terminal.send("echo \"so''me $RECORDED\" $TERM\r")
            terminal.expect_exact("o n e xterm-256color")
            terminal.send("exit 7\r")
            rest = terminal.read().decode()
            terminal.wait()
            return rest, terminal.exitstatus

    rest, status = await asyncio.to_thread(sit)
    assert status == 7
    assert "the shell has ended" in rest and "blockpty log demo" in rest
    async with Client(home) as client:
        conversation = await client.conversation("demo")
        first = (await conversation.blocks()).blocks[0]
        assert (first.author, first.kind, first.exit_status) == ("user", "user", 0)
        assert (await conversation.read(block_id=first.block_id, view="text")).data == "so''me o n e xterm-256color\n"
        assert (await conversation.status()).exit == {"status": 7, "signal": None}


@async_test(timeout_seconds=110)
async def test_it_goes_on_when_one_leaves_and_is_seen_elsewhere(home: Path) -> None:
    async with Client(home) as client:

        def sit() -> int:
            with start("record", "demo", "--shell", "bash", "--home", str(home)) as terminal:
                terminal.expect_exact(PROMPT)
                terminal.send("echo fr''om here\r")
                terminal.expect_exact("from here")
                with start("attach", "demo", "--home", str(home)) as other:
                    other.expect_exact("from here")
                    other.send("echo fr''om there\r")
                    terminal.expect_exact("from there")
                    other.send(PREFIX + "d")
                    other.read()
                    other.wait()
                terminal.send(PREFIX + "d")
                assert "blockpty attach demo" in terminal.read().decode()
                terminal.wait()
                return int(terminal.exitstatus)

        assert await asyncio.to_thread(sit) == 0
        conversation = await client.conversation("demo")
        assert (await conversation.status()).mode == "idle"
        assert (await conversation.run("echo on")).output == "on\n"
        await conversation.close()


def test_the_environment_is_that_of_a_person_without_what_a_terminal_is() -> None:
    given = {"HOME": "/h", "API": "x", "TERM": "dumb", "TMUX": "/t", "PS1": "$", "__bpty_n": "x", "SHLVL": "3"}
    assert passed_on(given) == {"HOME": "/h", "API": "x"}
