"""What may be typed: nothing into another session, nothing behind what was left on the command line."""

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


@async_test
async def test_a_session_has_the_terminal_to_itself(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        with pytest.raises(blockpty.NoSession):
            await conversation.send("into nowhere\r")
        session = await conversation.exec_interactive("cat")
        assert (await conversation.status()).mode == "interactive"
        assert (await conversation.status()).active_session_id == session.session_id
        with pytest.raises(blockpty.InteractiveSessionActive):
            await conversation.exec_block("echo no")
        with pytest.raises(blockpty.NoSession):
            await conversation.send("x", session_id="s99")
        sent = await conversation.send("over there\r", session_id=session.session_id)
        # cat says again what the terminal echoed: the echo is not output, so this can only be cat.
        assert (await conversation.wait_for("over there", from_cursor=sent.cursor)).matched
        await conversation.ctrl_d()
        ended = await conversation.wait_for({"token": "EOF"})
        assert ended.matched and ended.reason == "eof"
        assert (await conversation.block(session.block_id)).block.kind == "session"
        assert (await conversation.verify()).clean
