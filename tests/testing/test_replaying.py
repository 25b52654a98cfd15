"""`replayed`: an agent gets from a recording the answers that it got from the shell, and is notified where it parts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.errors import Exited, InteractiveSessionActive, NoSession
from blockpty.runtime.conversation import Conversation
from blockpty.testing import Diverged, FakePty, Recording, replayed
from tests.support.async_tests import async_test

QUESTION = {"regex": r"name\? $"}


async def agent(conversation: Conversation) -> list[Any]:
    """Do a bit of everything, and return what it came to, but for times and names of this run."""
    seen: list[Any] = []

    def note(*facts: Any) -> None:
        seen.append(facts)

    done = await conversation.run("echo one; printf '\\033[31mred\\033[0m\\n'; false")
    note(done.block.block_id, done.output, done.exit_status, done.reason)
    started = await conversation.exec_interactive("read -p 'name? ' name; echo hello $name")
    asked = await conversation.wait_for(QUESTION)
    note(asked.reason, asked.match_text, asked.mode)
    with pytest.raises(InteractiveSessionActive):
        await conversation.exec_block("echo no")
    await conversation.send("wor")
    await conversation.send("ld\n", session_id=started.session_id)
    over = await conversation.wait_for({"token": "PROMPT"})
    note(over.reason, over.text.replace("\r", ""))
    late = await conversation.run("sleep 30", timeout_ms=300)
    note(late.timed_out, late.output)
    quiet = await conversation.wait_for({"idle_ms": 200}, timeout_ms=5000)
    note(quiet.reason)
    note((await conversation.interrupt(grace_ms=5000)).how)
    note((await conversation.wait_for({"token": "PROMPT"})).reason)
    await conversation.resize(100, 30)
    await conversation.run("stty size")
    screen = await conversation.screen()
    note(screen.cols, screen.rows, [line for line in screen.content.split("\n") if "hello" in line])
    with pytest.raises(NoSession):
        await conversation.send("nothing is there")
    blocks = (await conversation.blocks()).blocks
    note([(one.block_id, one.cmd, one.exit_status, one.state, one.kind, one.out_bytes) for one in blocks])
    note((await conversation.read(block_id="b1")).data)
    types = [event.type async for event in conversation.events(follow=False)]
    note([kind for kind in types if kind.startswith("agent_block_") and kind != "agent_block_delta"])
    note((await conversation.close()).exit is not None)
    note(conversation.mode)
    with pytest.raises(Exited):
        await conversation.run("echo no")
    return seen


@pytest.mark.needs("bash")
@async_test
async def test_an_agent_gets_the_same_answers_again(tmp_path: Path) -> None:
    async with blockpty.Engine(tmp_path) as engine:
        conversation = await engine.open("c", shell="bash")
        live = await agent(conversation)
        directory = conversation.directory
    async with replayed(directory) as again:
        assert again.mode == "idle" and again.remaining[0].startswith('run "echo one')
        assert await agent(again) == live
        assert again.remaining == []
        assert (await again.verify()).clean


@pytest.mark.needs("bash", "python3")
@async_test
async def test_a_session_is_ended_and_a_shell_is_replaced(tmp_path: Path) -> None:
    async def act(conversation: Conversation) -> list[Any]:
        session = await conversation.exec_interactive("python3 -q")
        ready = await conversation.wait_for(">>> ")
        ended = await conversation.end_session(session.session_id)
        before = conversation.shell_id
        await conversation.reset()
        output = (await conversation.run("echo $((6*7))")).output
        return [ready.reason, bool(ended.how), conversation.shell_id != before, output]

    async with blockpty.Engine(tmp_path) as engine:
        conversation = await engine.open("c", shell="bash")
        live = await act(conversation)
        recording = Recording.load(conversation.directory)
    async with replayed(recording) as again:
        assert await act(again) == live == ["matched", True, True, "42\n"]


@pytest.mark.needs("bash")
@async_test
async def test_kills_are_compared(tmp_path: Path) -> None:
    async def act(conversation: Conversation) -> list[Any]:
        await conversation.exec_block("trap '' TERM; sleep 1000")
        await conversation.wait_for({"idle_ms": 50})
        return [(await conversation.kill(signal=signal)).how for signal in ("INT", "TERM")]

    async with blockpty.Engine(tmp_path) as engine:
        conversation = await engine.open("c", shell="bash")
        live = await act(conversation)
        recording = Recording.load(conversation.directory)
    assert live == ["running", "HUP"]
    async with replayed(recording) as again:
        assert await act(again) == live


def installer() -> FakePty:
    pty = FakePty()
    pty.spawn()
    pty.output(pty.mark("HELLO", v=1, sh="bash", f="ps0"))
    pty.prompt()
    pty.silence(icanon=False, echo=False, foreground="shell")
    pty.submit("./install", kind="session")
    pty.begin()
    pty.output(b"Fetching packages\r\nProceed? [y/N] ")
    pty.silence()
    pty.type(b"y\n")
    pty.output(b"y\r\nPassword: ")
    pty.silence(echo=False)
    pty.entry("input", author="agent", req=None, bytes=4, redacted=True, echo=False, icanon=True)
    pty.output(b"\r\nDone\r\n")
    pty.end(0)
    pty.prompt(0)
    pty.silence(icanon=False, echo=False, foreground="shell")
    return pty


@async_test
async def test_what_parts_from_the_recording_is_said(tmp_path: Path) -> None:
    recording = installer().recording
    async with replayed(recording) as conversation:
        assert conversation.remaining == ["run './install' as a session", "type b'y\\n'", "type something hidden"]
        with pytest.raises(Diverged, match=re.escape("ran './instal' as a session; it then did run './install'")):
            await conversation.exec_interactive("./instal")
        with pytest.raises(Diverged, match="as a command"):
            await conversation.run("./install")
    async with replayed(recording) as conversation:
        session = await conversation.exec_interactive("./install")
        asked = await conversation.wait_for({"regex": r"\[y/N\] $"})
        assert asked.matched
        for wrong in (conversation.send("n\n"), conversation.resize(9, 9), conversation.reset()):
            with pytest.raises(Diverged, match=r"it then did type b'y\\n'"):
                await wrong
        # Nothing has been typed yet: a wait for what comes then has timed out, and has taken no time.
        assert (await conversation.wait_for("Done", timeout_ms=3_600_000)).reason == "timeout"
        await conversation.send("y\n", session_id=session.session_id)
        assert (await conversation.wait_for("Done", timeout_ms=3_600_000)).reason == "password"
        # What was typed at a password prompt is in no record, so anything is right.
        await conversation.send("secret\n")
        assert (await conversation.wait_for({"token": "PROMPT"})).matched
        assert conversation.remaining == []
        with pytest.raises(Diverged, match="nothing any more"):
            await conversation.run("echo more")
        assert issubclass(Diverged, AssertionError)


@async_test
async def test_a_recording_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    path.write_text('{"version": 2, "width": 80, "height": 24}\n[0, "o", "listening on port 8123\\r\\n"]\n')
    async with replayed(path) as conversation:
        found = await conversation.wait_for({"regex": r"port (\d+)"}, from_cursor=0)
        assert found.groups == {"1": "8123"} and conversation.mode == "exited"
