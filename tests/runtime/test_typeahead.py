"""A command is never appended to what somebody else has left on the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test

PROMPT = {"token": "PROMPT"}
TIMEOUT_MS = 20_000
SHELLS = [pytest.param(shell, marks=pytest.mark.needs(shell)) for shell in ("bash", "zsh", "fish")]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("left", ["xyzzy", "echo 'half", "q"])
@async_test
async def test_input_that_a_program_left_unread(shell: str, left: str, home: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        session = await conversation.exec_interactive(f"head -n 1 '{gate}'")
        await conversation.send(left, session_id=session.session_id)
        descriptor = os.open(gate, os.O_WRONLY)
        os.write(descriptor, b"go\n")
        os.close(descriptor)
        await conversation.wait_for(PROMPT, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
        result = await conversation.run("echo next", timeout_ms=TIMEOUT_MS)
        assert (result.block.cmd, result.block.exit_status, result.output) == ("echo next", 0, "next\n")
        assert (await conversation.verify()).clean


@pytest.mark.needs("bash")
@async_test
async def test_vi_mode_that_misses_a_ctrl_c(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("set -o vi", timeout_ms=TIMEOUT_MS)
        for _ in range(2):
            await conversation.type(b"echo half\x1b", "user")
            result = await conversation.run("echo next", timeout_ms=TIMEOUT_MS)
            assert (result.block.cmd, result.block.exit_status, result.output) == ("echo next", 0, "next\n")
            await conversation.type(b"echo half\x1b", "user")
            cleared = await conversation.ctrl_c()
            waited = await conversation.wait_for(PROMPT, from_cursor=cleared.cursor, timeout_ms=TIMEOUT_MS)
            assert waited.reason == "prompt"
        assert (await conversation.verify()).clean
