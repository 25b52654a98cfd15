"""Two engines on one home, an engine that is killed, a host that is killed, callers that go away: nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from blockpty import Engine
from blockpty.runtime.follower import RecordFollower
from tests.scenarios.stage import EOF, PROMPT, SHELLS, SHORT_MS, TIMEOUT_MS, Gate, Stage, in_every_shell, open_stage
from tests.support.async_tests import async_test
from tests.support.profile import one_in_turn

ROOT = Path(__file__).parents[2]


@in_every_shell()
@async_test
async def test_second_engine(shell: str, home: Path) -> None:
    """It reads and waits; it does not write, and what it does leaves no trace."""
    async with open_stage(home, shell) as stage, Engine(home) as second:
        gate = stage.gate()
        name = stage.conversation.id
        other = await second.conversation(name)
        begun = await stage.conversation.exec_block(f"echo half; {gate.child}; echo whole; (exit 3)")
        assert (await other.wait_for("half", from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)).matched
        status = await other.status()
        assert (status.mode, status.owner, status.active_block_id) == ("block_running", False, begun.block_id)
        writes: dict[str, Callable[[], Awaitable[object]]] = {
            "exec_block": lambda: other.exec_block("true"),
            "exec_interactive": lambda: other.exec_interactive("true"),
            "run": lambda: other.run("true"),
            "send": lambda: other.send("x"),
            "send_keys": lambda: other.send_keys("[UP]"),
            "paste": lambda: other.paste("x"),
            "ctrl_c": other.ctrl_c,
            "ctrl_d": other.ctrl_d,
            "enter": other.enter,
            "resize": lambda: other.resize(100, 30),
            "interrupt": other.interrupt,
            "kill": other.kill,
            "reset": other.reset,
            "close": other.close,
            "open": lambda: second.open(name, shell=shell),
        }
        refusals = {operation: await stage.refusal(call()) for operation, call in writes.items()}
        assert refusals == dict.fromkeys(writes, "busy")
        waits = [
            asyncio.create_task(one.wait_for(PROMPT, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS))
            for one in (stage.conversation, other)
        ]
        gate.release()
        mine, theirs = await asyncio.gather(*waits)
        assert (
            (mine.matched, mine.reason, mine.cursor)
            == (theirs.matched, theirs.reason, theirs.cursor)
            == (True, "prompt", mine.cursor)
        )
        assert (await other.block(begun.block_id)).block == await stage.block(begun.block_id)
        assert stage.outcome(await stage.block(begun.block_id)) == (3, "ended", b"half\nwhole\n")
        # What a second engine waited for is not part of the record, hence nothing to disagree about.
        assert (await other.verify()).clean
        await second.close()
        assert await stage.done("echo mine") == (0, "ended", b"mine\n")


@in_every_shell()
@async_test
async def test_ownership_passes_on(shell: str, home: Path) -> None:
    """When the first engine goes, the second may write; the first one's events are continued, not repeated."""
    async with open_stage(home, shell, persist=True) as stage:
        name = stage.conversation.id
        await stage.run("echo one")
        await stage.engine.close()
        async with Engine(home) as second:
            other = await second.conversation(name)
            result = await other.run("echo two")
            assert (result.output, result.block.seq, result.block.exit_status) == ("two\n", 2, 0)
            assert (await other.verify()).clean
        stage.conversation = await stage.engine.conversation(name)
        assert await stage.done("echo three") == (0, "ended", b"three\n")
        numbers = [event.seq for event in await stage.events()]
        assert numbers == list(range(len(numbers)))


ENGINE = """
import asyncio, sys
import blockpty

async def main() -> None:
    engine = blockpty.Engine()
    await engine.__aenter__()
    if sys.argv[1] == "open":
        persist = sys.argv[4] == "persist"
        conversation = await engine.open("survivor", shell=sys.argv[2], cwd=sys.argv[3], persist=persist)
        await conversation.run("echo before")
        await conversation.exec_interactive(sys.argv[5])
    else:
        conversation = await engine.conversation("survivor")
    result = await conversation.wait_for(sys.argv[-1], from_cursor=0, timeout_ms=20000)
    print("ready" if result.matched else result, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@asynccontextmanager
async def _engine_to_kill(*arguments: str) -> AsyncIterator[None]:
    """Run an engine in a process of its own until it has seen its last argument; killed at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        ENGINE,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), TIMEOUT_MS / 1000)
        assert line == b"ready\n", line
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        await process.communicate()


@pytest.mark.parametrize(
    ("shell", "persist"),
    [
        pytest.param(shell, persist, marks=pytest.mark.needs(shell))
        for number, persist in enumerate(("persist", "transient"))
        for shell in one_in_turn(number, SHELLS)
    ],
)
@async_test
async def test_engine_killed(shell: str, persist: str, home: Path, tmp_path: Path) -> None:
    """SIGKILL while a block is open, three times: nothing is lost, and the block closes later with its own status."""
    gate = Gate(tmp_path / "gate")
    command = (
        f"echo zero; {gate.child}; echo one; {gate.child}; echo two; {gate.child}; seq 1 20000; echo three; (exit 3)"
    )
    try:
        async with _engine_to_kill("open", shell, str(tmp_path), persist, command, "zero"):
            pass
        gate.release()
        async with _engine_to_kill("attach", "one"):
            pass
        gate.release()
        async with _engine_to_kill("attach", "two"):
            gate.release()
        async with Engine(home) as engine:
            conversation = await engine.conversation("survivor")
            stage = Stage(engine, conversation, shell, tmp_path)
            found = await stage.wait("three", 0)
            await stage.wait(PROMPT, found.cursor)
            before, block = await stage.blocks()
            assert (before.cmd, stage.outcome(before)) == ("echo before", (0, "ended", b"before\n"))
            numbers = "".join(f"{number}\n" for number in range(1, 20001)).encode()
            assert (block.kind, block.cmd) == ("session", command)
            assert stage.outcome(block) == (3, "ended", b"zero\none\ntwo\n" + numbers + b"three\n")
            status = await conversation.status()
            assert (status.mode, status.owner, status.integrity) == ("idle", True, "ok")
            assert await stage.done("echo after") == (0, "ended", b"after\n")
            numbers_of_events = [event.seq for event in await stage.events()]
            assert numbers_of_events == list(range(len(numbers_of_events)))
            await stage.verified()
            await conversation.close()
            await stage.verified()
    finally:
        gate.close()


@in_every_shell()
@async_test
async def test_shell_ends_while_no_engine_looks(shell: str, home: Path, tmp_path: Path) -> None:
    """The engine is killed, then the shell ends: the next engine finds the block closed with the shell's status."""
    gate = Gate(tmp_path / "gate")
    try:
        async with _engine_to_kill(
            "open", shell, str(tmp_path), "persist", f"echo zero; {gate.child}; echo bye; exit 6", "zero"
        ):
            pass
        gate.release()
        async with Engine(home) as engine:
            conversation = await engine.conversation("survivor")
            stage = Stage(engine, conversation, shell, tmp_path)
            waited = await stage.wait(EOF, 0)
            assert waited.reason == "eof"
            status = await conversation.status()
            assert (status.mode, status.exit) == ("exited", {"status": 6, "signal": None})
            assert stage.outcome((await stage.blocks())[-1]) == (
                6, "shell_exited", b"zero\nbye\nexit\n" if shell == "bash" else b"zero\nbye\n",
            )  # fmt: skip
            await stage.verified()
            opened = await engine.open("survivor", shell=shell, cwd=str(tmp_path))
            assert opened.opened is not None and opened.opened.shell_id == "survivor.2"
            assert await stage.done("echo again") == (0, "ended", b"again\n")
            await stage.verified()
            await opened.close()
            await stage.verified()
    finally:
        gate.close()


@in_every_shell()
@async_test
async def test_shell_ends_while_an_engine_attaches(
    shell: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell ends between the engine's look at the record and its question to the host: its status is kept."""
    gate = Gate(tmp_path / "gate")
    catch_up = RecordFollower.catch_up
    try:
        async with _engine_to_kill(
            "open", shell, str(tmp_path), "persist", f"echo zero; {gate.child}; echo bye; exit 6", "zero"
        ):
            pass
        async with Engine(home) as engine:

            async def catch_up_then_end(live: RecordFollower) -> None:
                await catch_up(live)
                gate.release()
                while "survivor" in await engine.live():  # noqa: ASYNC110 - no client has subscribed yet
                    await asyncio.sleep(0.01)

            monkeypatch.setattr(RecordFollower, "catch_up", catch_up_then_end)
            conversation = await engine.conversation("survivor")
            status = await conversation.status()
            assert (status.mode, status.exit) == ("exited", {"status": 6, "signal": None})
            await Stage(engine, conversation, shell, tmp_path).verified()
    finally:
        gate.close()


@in_every_shell()
@async_test
async def test_host_killed(shell: str, home: Path) -> None:
    """Recorder and keeper are killed in turn while a block is open; both come back, and nothing is lost."""
    async with open_stage(home, shell) as stage:
        gates = [stage.gate() for _ in range(2)]
        begun = await stage.conversation.exec_block(
            f"echo zero; {gates[0].child}; echo one; {gates[1].child}; echo two; (exit 3)"
        )
        await stage.wait("zero", begun.cursor)
        for pid_of, gate, text in ((1, gates[0], "one"), (0, gates[1], "two")):
            os.kill(stage.host_pids()[pid_of], signal.SIGKILL)
            gate.release()
            await stage.wait(text, begun.cursor)
        await stage.wait(PROMPT, begun.cursor)
        assert stage.outcome(await stage.block(begun.block_id)) == (3, "ended", b"zero\none\ntwo\n")
        assert await stage.done("echo next") == (0, "ended", b"next\n")


@in_every_shell()
@async_test
async def test_cancelled_wait(shell: str, home: Path) -> None:
    """A caller that goes away leaves no task, no open wait in the record, and the program as it is."""
    async with open_stage(home, shell) as stage:
        gate = stage.gate()
        begun = await stage.conversation.exec_block(f"echo half; {gate.child}; (exit 3)")
        await stage.wait("half", begun.cursor)
        waiting = [
            asyncio.create_task(stage.conversation.wait_for("never", from_cursor=begun.cursor)) for _ in range(20)
        ]
        assert await stage.absent(PROMPT, begun.cursor) == "timeout"
        # What is cancelled before it has begun leaves nothing.
        async with asyncio.timeout(60):
            while [event.fields["match"] for event in await stage.events("wait_begin")].count(["never"]) < 20:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        for task in waiting:
            task.cancel()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        gate.release()
        await stage.wait(PROMPT, begun.cursor)
        assert (await stage.block(begun.block_id)).exit_status == 3
        await stage.verified()  # which waits for what is still to be written
        waits = await stage.events("wait_begin", "wait_end")
        begins = [event for event in waits if event.type == "wait_begin"]
        ends = [event for event in waits if event.type == "wait_end"]
        assert [event.fields["reason"] for event in ends].count("cancelled") == 20
        assert {event.fields["wait_id"] for event in begins} == {event.fields["wait_id"] for event in ends}


@in_every_shell()
@async_test
async def test_timeouts_are_results(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        gate = stage.gate()
        begun = await stage.conversation.exec_block(f"echo half; {gate.child}; echo whole; (exit 3)")
        await stage.wait("half", begun.cursor)
        once = await stage.conversation.wait_for("whole", from_cursor=begun.cursor, timeout_ms=0)
        assert (once.matched, once.reason, once.mode) == (False, "timeout", "block_running")
        short = await stage.conversation.wait_for("whole", from_cursor=once.cursor, timeout_ms=SHORT_MS)
        assert (short.matched, short.reason) == (False, "timeout")
        gate.release()
        found = await stage.wait("whole", short.cursor)
        assert found.match_text == "whole"
        await stage.wait(PROMPT, begun.cursor)
