"""A secret that was typed with echo off and never read is not run, not drawn and not recorded."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
from pathlib import Path

import pytest

import blockpty
from blockpty.runtime.conversation import Conversation
from tests.support.async_tests import async_test
from tests.support.profile import in_turn
from tests.support.terminal_readers import terminal_of, unread

SECRET = "hunter2leak"
TIMEOUT_MS = 20_000
# What the kernel holds for a program that reads nothing, in raw mode.
TERMINAL_BYTES = 4095
SHELLS = ("bash", "zsh", "fish")
# Each waits in line mode without echo. All but the last read a line and end; that one never reads.
PROMPTS = {
    "bash read -s": "bash -c 'read -s x; sleep 0'",
    "bash read -s -p": "bash -c 'read -s -p \"Password: \" x'",
    "getpass": "python3 -c 'import getpass; getpass.getpass()'",
    "stty -echo": "sh -c 'stty -echo; read x; stty echo'",
    "zsh read -s": "zsh -fc 'read -s x'",
    "left behind": "sh -c 'stty -echo; exec sleep 1000'",
}
ENDS = ("interrupt", "ctrl_c", "term", "kill", "hup")


async def ended(conversation: Conversation, how: str, session_id: str) -> None:
    """End the program that asks, in one of five ways."""
    if how == "interrupt":
        await conversation.interrupt()
    elif how == "ctrl_c":
        await conversation.ctrl_c(session_id=session_id)
    else:
        status = await conversation.status()
        pid = int(status.pid or 0)
        signals = {"term": "TERM", "kill": "KILL", "hup": "HUP"}
        assert pid
        await asyncio.to_thread(os.system, f"pkill -{signals[how]} -P {pid}")


async def prompt(conversation: Conversation, cursor: int) -> None:
    """Wait for the prompt. Until a signal has reached the program, it still asks, and a wait says so at once."""
    reason = "password"
    while reason == "password":
        waited = await conversation.wait_for({"token": "PROMPT"}, from_cursor=cursor, timeout_ms=TIMEOUT_MS)
        reason = waited.reason
    assert reason == "prompt", waited


def traces(home: Path) -> list[Path]:
    """Return the files of a home that hold the secret, in any of the usual forms."""
    plain = SECRET.encode()
    forms = (
        plain, base64.b64encode(plain).rstrip(b"=")[:-1], plain.hex().encode(), SECRET.encode("utf-16-le"),
        SECRET.encode("utf-16-be"),
    )  # fmt: skip
    found = []
    for path in home.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with contextlib.suppress(FileNotFoundError):  # the host leaves, and takes its own with it
                content = path.read_bytes()
                found += [path] if any(form in content for form in forms) else []
    return found


@pytest.mark.parametrize(
    ("shell", "kind"),
    [
        pytest.param(shell, kind, marks=pytest.mark.needs(shell))
        for number, kind in enumerate(PROMPTS)
        for shell in in_turn(number, SHELLS)
    ],
)
@async_test
async def test_a_secret_that_no_program_reads(shell: str, kind: str, home: Path) -> None:
    if kind.startswith("zsh") and shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        for how in ENDS:
            for whole in (False, True):
                session = await conversation.exec_interactive(PROMPTS[kind])
                asked = await conversation.wait_for(
                    {"regex": "never there"}, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS
                )
                assert asked.reason == "password", asked
                await conversation.send(SECRET + ("\r" if whole else ""), session_id=session.session_id)
                if not whole or kind == "left behind":
                    await ended(conversation, how, session.session_id)
                await prompt(conversation, session.cursor)
                result = await conversation.run("echo OK-$((6 * 7))" if shell != "fish" else "echo OK-(math 6 x 7)",
                                                timeout_ms=TIMEOUT_MS)
                assert (result.output, result.block.exit_status, result.block.degraded) == ("OK-42\n", 0, None)
                await conversation.run("stty echo icanon", timeout_ms=TIMEOUT_MS)
        assert SECRET not in (await conversation.screen(scrollback=1000)).content
        kinds = {block.kind for block in (await conversation.blocks()).blocks}
        assert kinds <= {"session", "command"}, "what was left over was run"
        assert (await conversation.verify()).clean
    assert traces(home) == []


@pytest.mark.linux
@pytest.mark.parametrize(
    ("shell", "size"),
    [
        pytest.param(shell, size, marks=pytest.mark.needs(shell))
        for number, size in enumerate((3, 13_824))
        for shell in in_turn(number, SHELLS)
    ],
)
@async_test
async def test_input_in_raw_mode_that_no_program_reads(shell: str, size: int, home: Path) -> None:
    """Raw and without echo: whatever is left over, the command that was submitted is the command that runs."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        end = home.parent / "end"
        ending = f"sh -c 'stty raw -echo; until [ -e {end} ]; do sleep 0.01; done'"
        for program in ("stty raw -echo; sleep 1000", ending):
            session = await conversation.exec_interactive(program)
            await conversation.wait_for({"idle_ms": 300}, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
            sending = asyncio.create_task(conversation.send("y" * size, session_id=session.session_id))
            terminal = terminal_of((await conversation.status()).pid)
            while not sending.done() and unread(terminal) < TERMINAL_BYTES:  # noqa: ASYNC110  (nothing tells)
                await asyncio.sleep(0.01)
            if program is ending:
                end.touch()
            else:
                await conversation.interrupt()
            await conversation.wait_for({"token": "PROMPT"}, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
            await sending
            result = await conversation.run("echo next", timeout_ms=TIMEOUT_MS)
            assert (result.output, result.block.exit_status) == ("next\n", 0)
            await conversation.run("stty sane", timeout_ms=TIMEOUT_MS)
        assert {block.kind for block in (await conversation.blocks()).blocks} <= {"session", "command"}


@pytest.mark.needs("bash")
@pytest.mark.parametrize("ending", ["", "\r", "'\r", "\x00\r"])
@async_test
async def test_what_read_has_taken_and_not_used_is_not_run(ending: str, home: Path) -> None:
    """bash's `read` takes all that is there into a buffer of bash's own, and the next `read` begins with the rest.

    So it is with a line of which a signal has ended the reading; here it is a second line, to have it every time.
    """
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        typed = f"first\r{SECRET}{ending}"
        session = await conversation.exec_interactive(
            f"stty -icanon -echo min {len(typed)} time 0; read -r x; stty icanon echo; echo \"<$x>\""
        )
        await conversation.wait_for({"token": "INPUT"}, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
        await conversation.send(typed, session_id=session.session_id, secret=True)
        found = await conversation.wait_for({"token": "PROMPT"}, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
        assert "<first>" in found.text
        result = await conversation.run("echo next", timeout_ms=TIMEOUT_MS)
        assert (result.block.cmd, result.output, result.block.exit_status) == ("echo next", "next\n", 0)
        assert (await conversation.verify()).clean
    assert traces(home) == []
