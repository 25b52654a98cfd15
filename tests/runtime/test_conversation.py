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


@async_test
async def test_views_of_one_block(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        result = await conversation.run(r"printf 'a\rB\033[31mred\033[0m\n10%%\r100%%\n'")
        assert result.output == "a\rBred\n10%\r100%\n"

        async def view(name: str) -> str:
            return (await conversation.read(block_id=result.block.block_id, view=name)).data

        assert await view("text") == result.output
        assert await view("ansi") == "a\rB\x1b[31mred\x1b[0m\n10%\r100%\n"
        assert await view("raw") == "a\rB\x1b[31mred\x1b[0m\r\n10%\r100%\r\n"
        assert await view("rendered") == "Bred\n100%\n"
        with pytest.raises(blockpty.BadRequest):
            await view("pretty")


@async_test
async def test_reading_in_small_pieces_gives_the_whole(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        result = await conversation.run(
            "for i in 1 2 3 4 5 6 7 8 9; do printf '\\033[3%dmzeile %d \\303\\244\\n' $i $i; done"
        )
        for view in ("text", "ansi", "raw"):
            whole = (await conversation.read(block_id="b1", view=view)).data
            pieces, cursor, eof = "", result.block.span[0], False
            while not eof:
                piece = await conversation.read(cursor, block_id="b1", view=view, max_bytes=7)
                assert piece.cursor > cursor
                pieces, cursor, eof = pieces + piece.data, piece.cursor, piece.eof
            if view != "raw":  # raw bytes are cut anywhere, also inside a character
                assert pieces == whole


@async_test
async def test_long_output_keeps_head_and_tail_and_says_how_much(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        result = await conversation.run("seq 1 300000", max_bytes=1000, timeout_ms=60000)
        assert result.truncated and result.block.out_bytes == 1988895
        assert result.output.startswith("1\n2\n") and result.output.endswith("\n300000\n")
        assert len(result.output) < 1200 and "left out" in result.output
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


@async_test
async def test_waits_on_the_past_give_the_same_answer_every_time(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        for number in range(5):
            await conversation.run(f"echo number {number}; echo")
        answers = [await conversation.wait_for({"regex": r"number (\d)"}, from_cursor=0) for _ in range(3)]
        assert {(answer.match_text, answer.span) for answer in answers} == {("number 0", answers[0].span)}
        assert answers[0].groups == {"1": "0"}
        second = await conversation.wait_for({"regex": r"number (?P<n>\d)"}, from_cursor=answers[0].cursor)
        assert second.groups == {"1": "1", "n": "1"}
        assert (await conversation.verify()).waits >= 4


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
async def test_cancelling_a_wait_leaves_the_program_alone(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.exec_block("read x; echo got $x")
        wait = asyncio.create_task(conversation.wait_for("got", timeout_ms=60000))
        await conversation.wait_for({"idle_ms": 50})
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        await conversation.send("it\r")
        assert (await conversation.wait_for("got it")).matched
        await conversation.wait_for(PROMPT)
        assert (await conversation.verify()).clean
        reasons = [
            event.fields["reason"] async for event in conversation.events(follow=False) if event.type == "wait_end"
        ]
        assert "cancelled" in reasons


@async_test
async def test_events_come_live_and_in_order(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        seen: list[int] = []

        async def follow() -> None:
            async for event in conversation.events():
                seen.append(event.seq)
                if event.type == "agent_block_end":
                    return

        follower = asyncio.create_task(follow())
        await conversation.run("echo hello")
        await follower
        assert seen == list(range(len(seen)))


@async_test
async def test_events_come_live_to_an_engine_that_does_not_write_them(home: Path) -> None:
    async with blockpty.Engine(home) as engine, blockpty.Engine(home) as other:
        conversation = await engine.open("c1")
        watching = await other.conversation("c1")
        status = await watching.status()
        assert not status.owner
        seen = []

        async def follow() -> None:
            async for event in watching.events(status.next_seq):
                seen.append((event.seq, event.type))
                if event.type == "eof":
                    return

        follower = asyncio.create_task(follow())
        await conversation.run("echo hello")
        assert (await watching.status()).next_seq > status.next_seq
        await conversation.close()
        await asyncio.wait_for(follower, 20)
        assert [seq for seq, _ in seen] == list(range(status.next_seq, status.next_seq + len(seen)))
        assert "agent_block_end" in [kind for _, kind in seen]


@async_test
async def test_our_marks_are_not_in_the_ansi_view(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.run("echo hello")
        shown = (await conversation.read(0, view="ansi")).data
        assert "hello" in shown and "7717" not in shown


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
