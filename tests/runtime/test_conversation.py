"""What can be asked of a conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import blockpty
from tests.support.async_tests import async_test

PROMPT = {"token": "PROMPT"}


@async_test
async def test_busy_and_queue(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        first = await conversation.exec_block("read line; echo got $line")
        with pytest.raises(blockpty.Busy, match="b1"):
            await conversation.exec_block("echo no")
        queued = asyncio.create_task(conversation.exec_block("echo queued", queue=True))
        await conversation.send("x\r")
        second = await queued
        assert second.seq == first.seq + 1
        assert (await conversation.wait_for(PROMPT, from_cursor=second.cursor)).matched
        outputs = [(await conversation.read(block_id=name)).data for name in ("b1", "b2")]
        assert outputs == ["x\ngot x\n", "queued\n"]


@async_test
async def test_interrupt_goes_as_far_as_it_may(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        assert (await conversation.interrupt()).how == "nothing_runs"
        await conversation.exec_block("sleep 1000")
        await conversation.wait_for({"idle_ms": 50})
        assert (await conversation.interrupt()).how == "SIGINT"
        assert (await conversation.block("b1")).block.state == "interrupted"
        await conversation.exec_block(
            "python3 -c 'import signal; signal.signal(2, signal.SIG_IGN); print(1); signal.pause()'"
        )
        await conversation.wait_for("1\n")
        assert (await conversation.interrupt(grace_ms=100)).how == "running"
        assert (await conversation.interrupt(up_to="KILL", grace_ms=100)).how == "SIGQUIT"
        assert (await conversation.block("b2")).block.signal == "SIGQUIT"
        with pytest.raises(blockpty.BadRequest):
            await conversation.interrupt(up_to="STOP")


@pytest.mark.parametrize(
    "match",
    [
        "",
        [],
        {},
        {"regex": "("},
        {"regex": 5},
        {"token": "PRMPT"},
        {"idle_ms": 0},
        {"idle_ms": True},
        7,
        None,
        {"a": 1, "b": 2},
    ],
)
@async_test
async def test_what_is_no_condition_is_refused(home: Path, match: Any) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        with pytest.raises(blockpty.BadCondition):
            await conversation.wait_for(match)
        with pytest.raises(blockpty.BadCursor):
            await conversation.wait_for("x", from_cursor=10**9)
        with pytest.raises(blockpty.BadCursor):
            await conversation.wait_for("x", from_cursor=-1)
        with pytest.raises(blockpty.BadCursor):
            await conversation.read(10**9)


@async_test
async def test_a_password_is_nowhere_on_disk(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.exec_interactive("read -s -p 'Password: ' p; echo; echo ${#p}")
        assert (await conversation.wait_for("never", timeout_ms=10000)).reason == "password"
        assert (await conversation.status()).tty == "password"
        await conversation.send("hunter2-secret\r")
        assert (await conversation.wait_for("14")).matched
        await conversation.wait_for(PROMPT)
        assert (await conversation.verify()).clean
        for path in conversation.directory.rglob("*"):
            if path.is_file():
                assert b"hunter2-secret" not in path.read_bytes(), path


@async_test
async def test_a_password_that_is_asked_for_without_a_word_is_noticed(home: Path) -> None:
    """Long after the silence that followed the last output, by a wait that was there before."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.exec_interactive("sleep 0.5; read -rs p; sleep 0.3; stty -echo; read -r p")
        waiting = asyncio.ensure_future(conversation.wait_for("never", timeout_ms=20_000))
        assert (await waiting).reason == "password"
        await conversation.send("hunter2-secret\r")
        assert (await conversation.wait_for("never", timeout_ms=20_000)).reason == "password"
        await conversation.send("hunter2-secret\r")
        await conversation.wait_for(PROMPT)
        assert (await conversation.verify()).clean
        for path in conversation.directory.rglob("*"):
            assert not path.is_file() or b"hunter2-secret" not in path.read_bytes(), path


@async_test
async def test_the_nonce_leaves_the_disk_and_is_masked(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        nonce = conversation.live.state.current.nonce
        result = await conversation.run("set | grep bp; declare -f | grep -c bp", max_bytes=1 << 20)
        assert nonce not in result.output and nonce.encode() in (conversation.directory / "timeline.jsonl").read_bytes()
        assert not list((conversation.directory / "rc").rglob("*rc"))
        read = await conversation.read(0, view="raw", max_bytes=1 << 20)
        assert nonce not in read.data and "*" * 22 in read.data
        assert (await conversation.verify()).clean


@async_test
async def test_resize_reaches_the_program_and_the_record(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.resize(132, 50)
        assert (await conversation.run("stty size")).output == "50 132\n"
        assert (await conversation.status()).cols == 132
        for cols, rows in ((0, 1), (1, 0), (1001, 1), (-5, 5)):
            with pytest.raises(blockpty.BadRequest):
                await conversation.resize(cols, rows)


@async_test
async def test_verify_sees_a_changed_byte(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        result = await conversation.run("echo evidence")
        assert (await conversation.verify()).clean
        assert result.block.out_path is not None
        path = conversation.directory / result.block.out_path
        path.write_bytes(b"Evidence\n")
        report = await conversation.verify()
        assert not report.clean and report.differences[0]["invariant"] == "I4"
        path.write_bytes(b"evidence\n")
        assert (await conversation.verify()).clean


@async_test
async def test_a_path_is_a_directory_as_well(home: Path, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", cwd=tmp_path)  # type: ignore[arg-type]
        assert (await conversation.run("pwd -P")).output == f"{tmp_path.resolve()}\n"
        there = await conversation.run("pwd -P", cwd=tmp_path / "below")  # type: ignore[arg-type]
        assert there.output == f"{(tmp_path / 'below').resolve()}\n"
