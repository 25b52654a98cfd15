"""tail with a real shell and, where it matters, a real terminal."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_tail import Conversation, in_a_conversation
from tests.support.cli_terminal import start

pytestmark = pytest.mark.needs("bash")


@asynccontextmanager
async def tailing(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a tail that is following when this gives it, and that must have ended by the end."""
    command = [sys.executable, "-m", "blockpty", "tail", "c1", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
    try:
        yield process
        assert await asyncio.wait_for(process.wait(), 30) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until(process: asyncio.subprocess.Process, text: bytes) -> bytes:
    """Return what a tail prints, up to and with some text."""
    assert process.stdout is not None
    return await asyncio.wait_for(process.stdout.readuntil(text), 30)


async def rest(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    return await asyncio.wait_for(process.stdout.read(), 30)


@in_a_conversation
async def test_tail_is_live(conversation: Conversation) -> None:
    await conversation.run("echo before")
    await conversation.exec_block("echo begun; read answer; echo \"<$answer>\"; read answer; printf 'no newline'")
    await conversation.wait_for("begun")
    async with tailing() as process:
        # What the running block has printed already, and nothing of those before.
        assert await until(process, b"begun\n") == b"begun\n"
        await conversation.send("one\n")
        assert await until(process, b"<one>\n") == b"one\n<one>\n"
        await conversation.send("two\n")
        await until(process, b"no newline")
        await conversation.wait_for({"token": "PROMPT"})
        await conversation.run("printf '\\033[2J\\377'; exit 5")
        # Into a pipe it goes as it is; what is no UTF-8 is replaced.
        assert await rest(process) == "\x1b[2J\ufffdexit\n".encode()
        assert process.stderr is not None
        assert b"has ended (exit status 5)" in await process.stderr.read()


@in_a_conversation
async def test_tail_of_blocks(conversation: Conversation) -> None:
    await conversation.run("echo one; (exit 3)")
    await conversation.exec_block("read -r x; true")
    async with tailing("--from-cursor", "0", "--blocks") as process:
        await until(process, b"==> b2 $ read -r x; true\n")
        await conversation.send("x\n")
        # The end of a block comes without the beginning of another.
        assert (await until(process, b"<== b2 exit 0, ")).startswith(b"x\n")
        await until(process, b"\n")
        await conversation.run("printf tail; kill -9 $$")
        shown = (await rest(process)).decode().splitlines()
    assert shown == ["==> b3 $ printf tail; kill -9 $$", "tail", shown[-1]]
    assert shown[-1].startswith("<== b3 ")


@in_a_conversation
async def test_tail_from_a_cursor(conversation: Conversation) -> None:
    for word in ("one", "two", "three"):
        await conversation.run(f"echo {word}")
    begin, _ = (await conversation.block("b2")).block.span
    await conversation.close()
    for arguments, expected in (
        (["--from-cursor", str(begin)], b"two\nthree\n"),
        (["--from-cursor", str(begin + 1)], b"wo\nthree\n"),
        (["--from-cursor", "0"], b"one\ntwo\nthree\n"),
        ([], b""),
    ):
        async with tailing(*arguments) as process:
            assert await rest(process) == expected
    async with tailing("--from-cursor", str(begin), "--blocks") as process:
        lines = (await rest(process)).decode().splitlines()
        assert [line.split()[:2] for line in lines if line.startswith(("==>", "<=="))] == [
            ["==>", "b2"], ["<==", "b2"], ["==>", "b3"], ["<==", "b3"],
        ]  # fmt: skip


@in_a_conversation
async def test_tail_raw_is_the_stream(conversation: Conversation) -> None:
    async with tailing("--raw", "--from-cursor", "0") as process:
        await conversation.run("printf '\\033[2J\\377\\0'")
        await until(process, b"\x1b[2J\xff\x00")
        await conversation.close()
        found = await rest(process)
    assert b"7717" in found and b"__END__" in found


@in_a_conversation
async def test_tail_as_json(conversation: Conversation) -> None:
    async with tailing("--json", "--from-cursor", "0") as process:
        await conversation.run("echo ü; printf '\\303'")
        await conversation.close()
        lines = [json.loads(line) for line in (await rest(process)).splitlines()]
        assert process.stderr is not None
        assert await process.stderr.read() == b""
    types = [line["type"] for line in lines if line["block_id"] == "b1"]
    assert types[0] == "agent_block_begin" and types[-1] == "agent_block_end"
    assert set(types[1:-1]) == {"agent_block_delta"}
    assert "".join(line.get("data", "") for line in lines if line["block_id"] == "b1") == "ü\n\ufffd"


@in_a_conversation
async def test_ctrl_c_leaves_tail_and_not_the_program(conversation: Conversation) -> None:
    await conversation.exec_block('echo begun; read answer; echo "$answer"')
    await conversation.wait_for("begun")

    def tail_and_leave() -> tuple[int | None, bytes]:
        with start("tail", "c1") as terminal:
            terminal.expect_exact("begun")
            terminal.sendintr()
            shown = terminal.read()
        return terminal.exitstatus, shown

    status, shown = await asyncio.to_thread(tail_and_leave)
    assert status == 130 and b"Traceback" not in shown
    assert (await conversation.status()).mode == "block_running"
    await conversation.send("still here\n")
    await conversation.wait_for({"token": "PROMPT"})
    assert (await conversation.block("b1")).block.exit_status == 0


@in_a_conversation
async def test_a_reader_that_goes_away_ends_tail(conversation: Conversation) -> None:
    await conversation.exec_block('while read -r x; do echo "$x"; done')
    command = f"'{sys.executable}' -m blockpty tail c1 | head -n 1; echo ${{PIPESTATUS[0]}}"
    process = await asyncio.create_subprocess_exec("bash", "-c", command, stdout=-1)
    reading = asyncio.ensure_future(process.communicate())
    while not reading.done():
        # Nothing reports when it follows, or when head has gone: it is written to until both have ended.
        await conversation.send("line\n")
        await asyncio.wait((reading,), timeout=0.1)
    out, _ = await reading
    assert out == b"line\n141\n"
    await conversation.ctrl_c()


@pytest.mark.parametrize("arguments", [["--raw", "--blocks"], ["--raw", "--json"], ["--from-cursor", "-1"]])
def test_tail_refuses_what_makes_no_sense(home: Path, arguments: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "blockpty", "tail", "c1", *arguments], capture_output=True, check=False, timeout=60
    )
    assert result.returncode == 2
    assert list(home.iterdir()) == []


@in_a_conversation
async def test_hidden_input(conversation: Conversation) -> None:
    await conversation.exec_interactive("read -rsp 'Password: ' p; echo; [[ $p == 'se cret\\' ]] && echo right")
    await conversation.wait_for("Password: ")

    def type_hidden() -> tuple[int | None, bytes]:
        with start("--json", "send", "c1", "--hidden") as terminal:
            terminal.expect_exact("for c1, not shown: ")
            terminal.sendline("se cret\\")
            shown = terminal.read()
        return terminal.exitstatus, shown

    # Only the engine that owns it may write, so the command line needs it for itself.
    await conversation.detach()
    status, shown = await asyncio.to_thread(type_hidden)
    assert status == 0, shown
    assert b"cret" not in shown
    waited = await asyncio.to_thread(answered, "wait-for", "c1", "right", "--from-cursor", "0")
    assert waited[0]["matched"] is True
    events = await asyncio.to_thread(answered, "events", "c1", "--no-follow")
    assert [event["author"] for event in events if event["type"] == "input"][-1] == "user"
    await asyncio.to_thread(answered, "close", "c1")


def answered(*arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "blockpty", *arguments, "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_hidden_input_without_a_terminal_is_refused(home: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "blockpty", "send", "c1", "--hidden"],
        input=b"secret\n", capture_output=True, check=False, timeout=60, start_new_session=True,
    )  # fmt: skip
    assert result.returncode == 2 and b"needs a terminal" in result.stderr


@pytest.mark.parametrize(("keys", "status"), [("\x03", 130), ("\x04", 130)])
def test_hidden_input_can_be_left(home: Path, keys: str, status: int) -> None:
    with start("send", "c1", "--hidden") as terminal:
        terminal.expect_exact("not shown: ")
        terminal.send(keys)
        shown = terminal.read()
    assert (terminal.exitstatus, b"Traceback" in shown) == (status, False)
