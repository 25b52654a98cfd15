"""Scenarios 36 to 46: signals, jobs and what goes on in the background."""

from __future__ import annotations

import os
import re
import resource
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

from blockpty.model.results import ExecResult
from tests.scenarios.stage import GRACE_MS, PROMPT, SHORT_MS, Stage

NOTICE = re.compile(rb"\[\d+\] *\+ +[Dd]one|fish: Job \d+, .* has ended")
# Says when it runs and when it runs again; dies of SIGINT as sleep does.
RESUMABLE = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGCONT, lambda *_: os.write(1, b"resumed\\n"))
os.write(1, b"started\\n")
while True:
    signal.pause()
"""


async def interrupted(stage: Stage) -> Any:
    """Once when the program is known to run, and often at once: the interrupt must not get lost on the way."""
    begun = await stage.conversation.exec_block("sh -c 'echo started; exec sleep 1000'")
    await stage.wait("started", begun.cursor)
    seen = [await _interrupt(stage, begun)]
    for _ in range(10):
        seen.append(await _interrupt(stage, await stage.conversation.exec_block("sleep 1000")))
    return seen, await stage.done("echo next")


async def _interrupt(stage: Stage, begun: ExecResult) -> Any:
    done = await stage.conversation.interrupt(grace_ms=1000)
    if done.how == "running":
        return done.how, (await stage.conversation.interrupt(up_to="KILL", grace_ms=1000)).how
    waited = await stage.wait(PROMPT, begun.cursor)
    block = await stage.block(begun.block_id)
    # An interrupt that comes before the command has begun cancels it.
    state = "interrupted" if block.state == "cancelled" and block.span[0] == block.span[1] else block.state
    return done.how, waited.reason, block.exit_status, block.signal, state


async def interrupt_ignored(stage: Stage) -> Any:
    # The second half of the first line, so that the program is there before the interrupt is.
    command = "trap '' INT; echo set; sleep 1000"
    # In fish a trap is a function, and nothing ignores a signal: a program of its own does it.
    fish = f"sh -c {shlex.quote(command)}"
    begun = await stage.conversation.exec_block(fish if stage.shell == "fish" else command)
    await stage.wait("set\n", begun.cursor)
    first = await stage.conversation.interrupt(grace_ms=SHORT_MS)
    running = (await stage.absent(PROMPT, begun.cursor), (await stage.conversation.status()).mode)
    second = await stage.conversation.interrupt(up_to="QUIT", grace_ms=1000)
    await stage.wait(PROMPT, begun.cursor)
    block = await stage.block(begun.block_id)
    next_ = "echo next" if stage.shell == "fish" else "trap - INT; echo next"
    return first.how, running, second.how, (block.exit_status, block.signal), await stage.done(next_)


async def pager(stage: Stage) -> Any:
    (stage.folder / "file").write_text("".join(f"line {number}\n" for number in range(1, 1001)))
    conversation = stage.conversation
    session = await conversation.exec_interactive("less -+F file")
    ready = await stage.wait({"regex": "^file$"}, session.cursor)  # its first prompt: it is ready for keys
    reading = await conversation.status()
    how = (await conversation.interrupt(grace_ms=SHORT_MS)).how
    alive = (await conversation.status()).active_session_id == session.session_id
    # It draws the page again, and drops what was typed before that.
    await stage.wait({"regex": "^:$"}, ready.cursor)
    quit_ = await conversation.send("q", session_id=session.session_id)
    waited = await stage.wait(PROMPT, quit_.cursor)
    block = await stage.block(session.block_id)
    after = await conversation.status()
    return {
        "reading": (
            reading.mode,
            reading.tty in ("raw", "alt_screen"),
            reading.active_session_id == session.session_id,
        ),
        "interrupted": (how, alive),
        "quit": (waited.reason, block.kind, block.exit_status, block.state),
        "after": (after.mode, after.active_session_id, await stage.done("echo next")),
    }


async def suspended(stage: Stage) -> Any:
    program = stage.folder / "resumable.py"
    program.write_text(RESUMABLE)
    conversation = stage.conversation
    begun = await conversation.exec_block(f"{shlex.quote(sys.executable)} {program}")
    await stage.wait("started", begun.cursor)
    await conversation.send_keys("^Z")
    await stage.wait(PROMPT, begun.cursor)
    first = await stage.block(begun.block_id)
    resumed = await conversation.exec_block("fg")
    await stage.wait("resumed", resumed.cursor)
    done = await conversation.interrupt(grace_ms=GRACE_MS)
    await stage.wait(PROMPT, resumed.cursor)
    second = await stage.block(resumed.block_id)
    return {
        "stopped": (first.exit_status, first.state),
        "resumed": (done.how, second.exit_status, second.signal, second.state),
        "jobs": (await stage.done("jobs")).output,
    }


def _last(stage: Stage) -> str:
    return "$last_pid" if stage.shell == "fish" else "$!"


async def job_notice(stage: Stage) -> Any:
    gate = stage.gate()
    if stage.shell == "fish":  # it gives no notice of a job that a sourced file has begun
        cursor = (await stage.conversation.status()).cursor
        block = await stage.type_line(f"{gate.child} &")
        assert block is not None
    else:
        begun = await stage.run(f"{gate.child} &")
        cursor, block = begun.cursor, begun.block
    running = (await stage.done(f"kill -0 {_last(stage)}")).exit_status
    gate.release()
    # bash tells at the next prompt after it has heard of the end, zsh at once.
    for _ in range(1000):
        typed = await stage.type(b"\r")
        await stage.wait(PROMPT, typed)
        if NOTICE.search(await stage.raw(cursor)):
            break
    two = await stage.run("echo two")
    found = NOTICE.search(await stage.raw(), cursor)
    assert found is not None
    at = found.start()
    return running, (block.exit_status, block.state), stage.outcome(two.block), await _outside(stage, at)


async def orphan_output(stage: Stage) -> Any:
    gate = stage.gate()
    text = f"{gate.builtin}; echo LATE"
    # fish puts only programs in the background.
    late = f"sh -c {shlex.quote(text)}" if stage.shell == "fish" else f"({text})"
    one = await stage.run(f"{late} & echo now")
    # The prompt is drawn: from here on it is the output of no command.
    await stage.wait({"idle_ms": 25}, one.cursor)
    gate.release()
    found_late = await stage.wait("LATE", one.cursor)
    two = await stage.run("echo two")
    assert found_late.span is not None
    made = [stage.outcome(block).output for block in await stage.blocks() if block.kind == "background"]
    found = await _outside(stage, found_late.span[0])
    return (
        stage.outcome(one.block).output.splitlines()[-1],
        stage.outcome(two.block),
        found,
        any(b"LATE" in o for o in made),
    )


async def _outside(stage: Stage, at: int) -> bool:
    """Whether a place lies in no block of a command."""
    blocks = [block for block in await stage.blocks() if block.span[0] <= at < (block.span[1] or 0)]
    return [block.kind for block in blocks] in ([], ["background"])


async def subshell_in_background(stage: Stage) -> Any:
    gate = stage.gate()
    result = await stage.run(f"sh -c {shlex.quote(gate.builtin)} &" if stage.shell == "fish" else f"({gate.builtin}) &")
    alive = await stage.done(f"kill -0 {_last(stage)} && echo alive")
    gate.release()
    waited = await stage.done(f"wait {_last(stage)}")
    return (result.reason, result.block.exit_status, result.block.state), alive.output, waited.exit_status


async def flood(stage: Stage) -> Any:
    before = memory(stage)
    result = await stage.conversation.run("yes", timeout_ms=1000, max_bytes=65536)
    limits = (result.truncated, result.output_bytes > 10 * 65536, len(result.output) < 65536 + 200)
    running = (result.timed_out, result.reason, result.block.state, result.block.exit_status)
    ends = (result.output.startswith("y\ny\n"), result.output.rstrip("\n").endswith("\ny"))
    done = await stage.conversation.interrupt(grace_ms=GRACE_MS)
    await stage.wait(PROMPT, result.block.span[0])
    block = await stage.block(result.block.block_id)
    assert block.out_bytes >= result.output_bytes // 2
    grown = [after - begin for begin, after in zip(before, memory(stage), strict=True)]
    return {
        "running": running,
        "limits": limits,
        "ends": ends,
        "interrupted": (done.how, block.exit_status, block.state),
        "next": await stage.done("echo next"),
        "memory": max(grown) < 64 * 1024,
    }


def memory(stage: Stage) -> list[int]:
    """Return the most KiB that this process, the keeper and the recorder have ever used."""
    peaks = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)]
    for pid in stage.host_pids() if sys.platform == "linux" else []:
        status = Path(f"/proc/{pid}/status").read_text()
        peaks.append(int(status.partition("VmHWM:")[2].split()[0]))
    return peaks


async def left_server(stage: Stage) -> Any:
    started = await stage.done(f"nohup sleep 1000 >/dev/null 2>&1 & echo {_last(stage)}")
    pid = int(started.output.split()[-1])
    alive = is_running(pid)
    closed = await stage.conversation.close()
    ended = closed.exit is not None and (closed.exit["status"] is not None or closed.exit["signal"] is not None)
    return alive, ended, is_running(pid), (await stage.conversation.status()).mode


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
        state = (
            Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] if sys.platform == "linux" else b"?"
        )
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state not in (b"Z", b"X")


async def cancelled_heredoc(stage: Stage) -> Any:
    cursor = await stage.type(b"cat <<EOF\r")
    first = await stage.conversation.wait_for(PROMPT, from_cursor=cursor)
    cursor = await stage.type(b"first line\r")
    second = await stage.conversation.wait_for(PROMPT, from_cursor=cursor)
    sent = await stage.conversation.ctrl_c()
    await stage.wait(PROMPT, sent.cursor)
    status = await stage.conversation.status()
    return {
        "open": (first.reason, second.reason),
        "cancelled": (status.mode, status.tty),
        "next": await stage.done("echo ok"),
        "blocks": [block.cmd for block in await stage.blocks()],
    }


async def killed_from_outside(stage: Stage) -> Any:
    begun = await stage.conversation.exec_block("sh -c 'echo pid $$; exec sleep 1000'")
    found = await stage.wait({"regex": r"pid (\d+)"}, begun.cursor)
    assert found.groups is not None
    os.kill(int(found.groups["1"]), signal.SIGTERM)
    await stage.wait(PROMPT, begun.cursor)
    block = await stage.block(begun.block_id)
    return block.exit_status, block.signal, block.state, await stage.done("echo next")
