"""A program that types into its own terminal (TIOCSTI): it fools no border, and reaches no other conversation."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test

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
