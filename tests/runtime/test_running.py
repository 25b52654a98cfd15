"""A command run to its end: the reported block is its own, whatever a program types, and a timeout is a result."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test

PROMPT = {"token": "PROMPT"}

TRIES = 12
STUFF = """python3 -c '
import fcntl, termios
for c in b"echo stuffed\\n":
    fcntl.ioctl(0, termios.TIOCSTI, bytes([c]))
print("done")
'"""


SHELLS = [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh", "fish")]


@pytest.mark.linux
@pytest.mark.parametrize("shell", SHELLS)
@async_test
async def test_s21_what_a_program_types_is_not_the_agents_command(home: Path, shell: str) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell, cwd="/")
        other = await engine.open("c2", shell=shell, cwd="/")
        if "done" not in (await conversation.run(STUFF)).output:
            pytest.skip("this kernel lets no program type into its terminal (dev.tty.legacy_tiocsti is 0)")
        answered = 0
        for number in range(TRIES):
            # At once: the shell may read what was put in before it reads the command, or after.
            try:
                result = await conversation.run(f"echo real{number}")
            except (blockpty.errors.Busy, blockpty.errors.NoPrompt):
                pass
            else:
                answered += 1
                assert (result.output, result.block.degraded) in (
                    (f"real{number}\n", None), ("stuffed\n", "other_input"),
                )  # fmt: skip
                assert result.block.degraded is None or shell == "bash"
            await conversation.wait_for({"idle_ms": 60})
            with contextlib.suppress(blockpty.errors.Busy, blockpty.errors.NoPrompt):
                await conversation.run(STUFF, timeout_ms=20000)
        assert answered
        await conversation.wait_for({"idle_ms": 200})
        blocks = (await conversation.blocks()).blocks
        for block in blocks:
            if block.cmd.startswith("echo real") and block.degraded is None:
                content = (await conversation.read(block_id=block.block_id)).data
                assert content == block.cmd.removeprefix("echo ") + "\n", block
        stuffed = [block for block in blocks if block.author == "user"]
        assert stuffed, "nothing was typed by the program"
        assert not (await other.blocks()).blocks
        assert (await conversation.verify()).clean


@async_test
async def test_a_timeout_is_a_result_and_the_program_runs_on(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        result = await conversation.run("echo begun; read x; echo ended", timeout_ms=100, stop_at_input=False)
        assert result.timed_out and result.exit_status is None and result.output == "begun\n"
        wait = await conversation.wait_for("ended", timeout_ms=0)
        assert not wait.matched and wait.reason == "timeout"
        await conversation.send("\r")
        assert (await conversation.wait_for("ended", from_cursor=wait.cursor)).matched
        assert (await conversation.wait_for(PROMPT)).matched
        assert (await conversation.verify()).clean
