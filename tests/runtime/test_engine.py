"""Opening, finding, listing and closing conversations."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test

PROMPT = {"token": "PROMPT"}


@pytest.mark.parametrize("shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh")])
@async_test
async def test_a_conversation_runs_commands_and_proves_it(home: Path, shell: str) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        assert conversation.opened is not None and conversation.opened.mode == "idle"
        result = await conversation.run("echo hello; (exit 3)")
        assert (result.output, result.exit_status, result.block.state) == ("hello\n", 3, "ended")
        assert result.block.out_path is not None
        assert (conversation.directory / result.block.out_path).read_bytes() == b"hello\n"
        assert (await conversation.verify()).clean


@async_test
async def test_without_persist_the_shell_ends_with_the_engine(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        assert conversation.opened is not None
        pid = conversation.opened.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@async_test
async def test_a_persistent_conversation_is_resumed_where_it_was(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", persist=True)
        await conversation.run("export KEPT=yes; cd /")
        cursor = (await conversation.status()).cursor
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        status = await conversation.status()
        assert status.mode == "idle" and status.cwd == "/" and status.cursor >= cursor
        assert (await conversation.run("echo $KEPT")).output == "yes\n"
        assert [block.seq for block in (await conversation.blocks()).blocks] == [1, 2]
        assert (await conversation.verify()).clean
        await conversation.close()


@async_test
async def test_an_ended_conversation_can_be_read_and_opened_again(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        first = await conversation.run("echo one")
        assert (await conversation.close()).exit is not None
        with pytest.raises(blockpty.Exited):
            await conversation.exec_block("echo two")
        assert (await conversation.read(block_id=first.block.block_id)).data == "one\n"
        again = await engine.open("c1")
        result = await again.run("echo two")
        assert result.output == "two\n" and result.block.seq == 2
        assert result.block.span[0] > (first.block.span[1] or 0)
        assert (await again.verify()).clean


@async_test
async def test_list_names_conversations_newest_first(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        for name in ("one", "two", "three"):
            await engine.open(name)
        await (await engine.conversation("one")).close()
        listed = {info.conversation_id: info for info in (await engine.list()).conversations}
        assert set(listed) == {"one", "two", "three"}
        assert not listed["one"].live and listed["two"].live and listed["two"].mode == "idle"
        assert [info.conversation_id for info in (await engine.list("tw")).conversations] == ["two"]


@async_test
async def test_what_cannot_be_opened_says_why(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home, session_limit=1) as engine:
        with pytest.raises(blockpty.SpawnFailed, match="no-such-shell"):
            await engine.open(shell="/no-such-shell")
        with pytest.raises(blockpty.SpawnFailed):
            await engine.open(cwd=str(tmp_path / "missing"))
        for name in ("", "../x", "a/b", "-x", ".hidden", "x" * 129, "a\0b", "ä"):
            with pytest.raises(blockpty.BadRequest):
                await engine.open(name)
        for size in ({"cols": 0}, {"rows": 1001}, {"cols": True}):
            with pytest.raises(blockpty.BadRequest):
                await engine.open("c1", **size)  # type: ignore[arg-type]
        with pytest.raises(blockpty.NotFound):
            await engine.conversation("missing")
        await engine.open("c1")
        with pytest.raises(blockpty.Busy):
            await engine.open("c1")
        with pytest.raises(blockpty.SessionLimit):
            await engine.open("c2")


@async_test
async def test_env_is_clean_but_for_what_is_asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD_NOT", "1")
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(env={"ASKED": "for this"}, cols=100, rows=30)
        result = await conversation.run('echo "$ASKED|${SECRET_TOKEN-unset}|${LD_PRELOAD_NOT-unset}"; stty size')
        assert result.output == "for this|unset|unset\n30 100\n"


@async_test
async def test_reset_gives_a_fresh_shell_and_keeps_the_transcript(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.run("X=1")
        before = (await conversation.status()).cursor
        await conversation.exec_block("sleep 1000")
        opened = await conversation.reset()
        assert opened.shell_id == "c1.2" and opened.cursor > before
        assert (await conversation.run("echo ${X-gone}")).output == "gone\n"
        states = [block.state for block in (await conversation.blocks()).blocks]
        assert states == ["ended", "shell_exited", "ended"]
        assert (await conversation.verify()).clean


@async_test
async def test_closing_waits_until_a_lost_host_is_found_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    async def find(engine: blockpty.Engine) -> None:
        await asyncio.sleep(0)
        done.append(engine)

    monkeypatch.setattr(blockpty.Engine, "_find_host", find)
    engine = blockpty.Engine(home)
    engine._host_lost()
    await engine.close()
    assert done == [engine]
