"""Scenarios 80 to 106: what goes in, how much of it, and what breaks from outside."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from blockpty import Engine
from blockpty.model.results import WaitResult
from blockpty.testing import Recording, derive
from tests.scenarios import tortures
from tests.scenarios.interaction import KEYS, program, reading
from tests.scenarios.stage import EOF, GRACE_MS, PROMPT, SHORT_MS, TIMEOUT_MS, Stage
from tests.support.processes import status_of

ROOT = Path(__file__).parents[2]


async def long_lines(stage: Stage) -> Any:
    return await tortures.long_commands(stage, (5_000, 20_000, 200_000))


async def canonical_line(stage: Stage) -> Any:
    conversation = stage.conversation
    session = await conversation.exec_interactive("cat >copy; wc -c <copy | tr -d ' '")
    await stage.wait({"idle_ms": 50}, session.cursor)  # cat has the terminal
    refused = await stage.refusal(conversation.send("x" * 5000 + "\r"))
    await conversation.send("y" * 4000 + "\r")
    sent = await conversation.ctrl_d()
    await stage.wait(PROMPT, sent.cursor)
    copied = (stage.folder / "copy").read_bytes()
    return refused, copied == b"y" * 4000 + b"\n", (await stage.block(session.block_id)).exit_status


def rc_file(stage: Stage) -> Path:
    """Return the path of what the shell reads when it starts, in the empty $HOME of the test."""
    name = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}[stage.shell]
    path = Path(os.environ["HOME"]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


async def early_command(stage: Stage) -> Any:
    """A long command while another runs, and one before the first prompt: the engine keeps it, not the terminal."""
    gate = stage.gate()
    text = "z" * 5000
    running = await stage.conversation.exec_block(f"echo first; {gate.child}")
    queued = asyncio.create_task(stage.conversation.exec_block(f"echo {text}", queue=True))
    waited = await stage.absent(PROMPT, running.cursor)
    gate.release()
    await stage.wait(PROMPT, (await queued).cursor)
    outcomes = [stage.outcome(block) for block in await stage.blocks()]
    rc_file(stage).write_text(f"{gate.child}\n")
    slow = await stage.refusal(stage.engine.open("slow", shell=stage.shell, cwd="/", timeout_ms=SHORT_MS))
    other = await stage.engine.conversation("slow")
    mode = (await other.status()).mode
    early = asyncio.create_task(other.run(f"echo {text}", timeout_ms=TIMEOUT_MS))
    await other.wait_for("never", from_cursor=0, timeout_ms=SHORT_MS)
    typed = [line for line in (other.directory / "timeline.jsonl").read_text().splitlines() if '"input"' in line]
    gate.release()
    result = await early
    clean = (await other.verify()).clean
    await other.close()
    first = (waited, [(done.exit_status, done.output == f"{text}\n".encode()) for done in outcomes[1:]])
    return first, (slow, mode, typed), (result.exit_status, result.output == f"{text}\n", result.block.seq, clean)


async def paste_end(stage: Stage) -> Any:
    """Text that ends a bracketed paste: in a command it is only bytes, in a paste it loses its power."""
    conversation = stage.conversation
    done = await stage.done("printf %s 'a\x1b[201~b\x1b[200~c'")
    session = await conversation.exec_interactive(r"printf '\033[?2004h'; " + program(stage, "keys", KEYS))
    ready = await stage.wait("ready", session.cursor)
    await conversation.paste("1\x1b[201~2\x03\x1b[2\x1b[201~01~3", session_id=session.session_id)
    await conversation.send("Z", session_id=session.session_id)
    found = await stage.wait("<5a>", ready.cursor)
    await conversation.send("q")
    await stage.wait(PROMPT, found.cursor)
    output = stage.outcome(await stage.block(session.block_id)).output.replace(b"><", b" ")
    return done, output.count(b"1b 5b 32 30 31 7e"), output.count(b"1b"), output.count(b"03")


async def control_bytes(stage: Stage) -> Any:
    text = "tab\tend ^U\x15 ^R\x12 ^W\x17 ESC\x1b[A ^C\x03 ^D\x04 ^Z\x1a ^V\x16 ^H\x08 DEL\x7f ^O\x0f CR\rend"
    done = await stage.done(f"printf %s '{text}' >copy")
    return done, (stage.folder / "copy").read_bytes() == text.encode()


async def unread_input(stage: Stage) -> Any:
    """A program that prints without end and never reads: typing ends at its deadline and says how far it came."""
    conversation = stage.conversation
    begun = await conversation.exec_block("stty -icanon -echo; yes")
    await stage.wait("y\ny\n", begun.cursor)
    typed = await conversation.host.input(
        conversation.id, b"x" * 200_000, author="agent", deadline_ms=SHORT_MS, epoch=conversation.epoch
    )
    alive = (await conversation.status()).mode
    done = await conversation.interrupt(grace_ms=GRACE_MS)
    await stage.wait(PROMPT, begun.cursor)
    block = await stage.block(begun.block_id)
    await conversation.reset()  # what was left unread is now on the command line
    return 0 < typed.accepted < 200_000, alive, (done.how, block.exit_status), await stage.done("echo next")


async def odd_beginnings(stage: Stage) -> Any:
    dash = await stage.done("-x 2>/dev/null")
    if b"Unknown command: -x" in dash.output:  # fish says so whatever the command's own redirections are
        dash = dash._replace(output=b"")
    space = await stage.done(" echo leading-space")
    backslash = await stage.done("echo a \\")
    history = await stage.done("history" if stage.shell == "fish" else "fc -l 1 2>/dev/null; true")
    next_ = await stage.done("echo next")
    # fish keeps what begins with a blank out of its history, as it does with a typed line.
    kept = b"leading-space" in history.output or stage.shell == "fish"
    return dash, space, backslash, kept, next_, [b.cmd for b in await stage.blocks()][:3]


async def large_environment(stage: Stage) -> Any:
    """1 MB in ten variables works; in one variable Linux takes no more than 128 KiB, and that is said."""
    engine = stage.engine
    many = {f"BIG{number}": "x" * 100_000 for number in range(10)}
    other = await engine.open("many", shell=stage.shell, cwd="/", env=many)
    fish = "echo (string length -- $BIG0) (string length -- $BIG9)"
    result = await other.run(fish if stage.shell == "fish" else 'echo "${#BIG0} ${#BIG9}"')
    await other.close()
    one = await stage.refusal(engine.open("one", shell=stage.shell, cwd="/", env={"BIG": "x" * 1_000_000}))
    if one == "accepted":  # a system without the limit
        await (await engine.conversation("one")).close()
    live = [info.conversation_id for info in (await engine.list()).conversations if info.live]
    return (
        (result.output, result.exit_status),
        one in ("spawn_failed", "accepted"),
        len(live),
        await stage.done("echo ok"),
    )


async def cannot_start(stage: Stage) -> Any:
    engine = stage.engine
    codes = {
        "directory": await stage.refusal(engine.open("a", shell=stage.shell, cwd="/nonexistent/here")),
        "shell": await stage.refusal(engine.open("b", shell="/nonexistent/bash", cwd="/")),
    }
    # `exit` in its startup file ends only that in fish.
    rc_file(stage).write_text("exec sh -c 'exit 3'\n" if stage.shell == "fish" else "exit 3\n")
    codes["ends at once"] = await stage.refusal(engine.open("c", shell=stage.shell, cwd="/"))
    zombies = []
    if sys.platform == "linux":
        fields = [line.rpartition(")")[2].split() for line in tortures.process_stats()]
        zombies = [field for field in fields if field[0] == "Z" and int(field[1]) in stage.host_pids()]
    return codes, zombies, await stage.done("echo ok")


RC = {
    "prints": "echo '$ '; printf 'no newline'\n",
    "reads": 'read -r a; echo "got $a"\n',
    "string": "PROMPT_COMMAND='true;'; PS1='[own] '\n",
    "hooks": "precmd() { :; }; preexec() { :; }; preexec_functions=(preexec); PROMPT_COMMAND=(true false)\n",
}


FISH_RC = {
    "prints": "echo '$ '; printf 'no newline'\n",
    "reads": "sh -c 'read -r a; echo \"got $a\"'\n",
    "string": "function fish_prompt; printf '[own] '; end\n",
    "hooks": "function one --on-event fish_prompt; true; end; function two --on-event fish_preexec; false; end\n",
}


async def startup_files(stage: Stage) -> Any:
    """The first prompt is the first authentic one, whatever the startup file does before."""
    results: dict[str, Any] = {}
    gate = stage.gate()
    for name, text in {"waits": f"{gate.child}\n", **(FISH_RC if stage.shell == "fish" else RC)}.items():
        rc_file(stage).write_text(text)
        options: dict[str, Any] = {"shell": stage.shell, "cwd": "/"}
        if name in ("waits", "reads"):
            assert await stage.refusal(stage.engine.open(name, timeout_ms=SHORT_MS, **options)) == "no_prompt"
            conversation = await stage.engine.conversation(name)
            if name == "waits":
                gate.release()
            else:
                await conversation.host.input(name, b"typed\r", author="user", epoch=conversation.epoch)
        else:
            conversation = await stage.engine.open(name, timeout_ms=TIMEOUT_MS, **options)
        result = await conversation.run("echo ok; sh -c 'exit 3'", timeout_ms=TIMEOUT_MS)
        status = await conversation.status()
        results[name] = (result.output, result.exit_status, status.integrity, (await conversation.verify()).clean)
        await conversation.close()
    return results


OWN_HOOKS = {
    "bash": "trap 'seen=$((seen + 1))' DEBUG; PROMPT_COMMAND+=('mine=$((mine + 1))')",
    "fish": "set -g seen 0; set -g mine 0; function see --on-event fish_preexec; set seen (math $seen + 1); end;"
    " function count --on-event fish_prompt; set mine (math $mine + 1); end",
    "zsh": "TRAPDEBUG() { seen=$((seen + 1)) }; precmd_functions+=(count); count() { called=$((called + 1)) }",
}


async def own_hooks(stage: Stage) -> Any:
    first = await stage.done(OWN_HOOKS[stage.shell])
    done = [await stage.done(command) for command in ("echo one", "sh -c 'exit 3'", "echo a; echo b")]
    show = (
        '((seen > 3)) && echo "$((mine + called > 2))"'
        if stage.shell == "bash"
        else "((seen > 3)) && echo $((called > 2))"
    )
    if stage.shell == "fish":
        show = "test $seen -gt 3 -a $mine -gt 2; and echo 1"
    shown = await stage.done(show)
    return first, done, shown, len(await stage.blocks()), await stage.doubts()


async def many_at_once(stage: Stage) -> Any:
    return await tortures.parallel(Path(stage.engine.home) / "many", (stage.shell,), 10, 10)


async def several_waiters(stage: Stage) -> Any:
    conversation = stage.conversation
    gate = stage.gate()
    begun = await conversation.exec_block(f"echo one; {gate.child}; echo two; sh -c 'exit 3'")
    waits = [
        asyncio.create_task(conversation.wait_for(PROMPT, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS))
        for _ in range(2)
    ]
    await stage.wait("one", begun.cursor)
    reading = asyncio.create_task(stage.event("agent_block_end"))
    gate.release()
    first, second = await asyncio.gather(*waits)
    ended = await reading
    block = await stage.block(begun.block_id)
    same = (first.matched, first.reason, first.cursor) == (second.matched, second.reason, second.cursor)
    return same, first.reason, ended.fields["exit_status"], stage.outcome(block)


async def text_in_the_past(stage: Stage) -> Any:
    gate = stage.gate()
    begun = await stage.conversation.exec_block(f"echo needle; {gate.child}; echo later")
    found = await stage.wait("needle", begun.cursor)
    after = await stage.absent("needle", found.cursor)
    again = await stage.conversation.wait_for("needle", from_cursor=begun.cursor, timeout_ms=0)
    gate.release()
    await stage.wait(PROMPT, begun.cursor)
    return after, (again.matched, again.reason, again.span == found.span)


async def text_in_the_echo(stage: Stage) -> Any:
    conversation = stage.conversation
    session = await conversation.exec_interactive(reading(stage, 'read -r a; echo "<$a>"; read -r b'))
    await stage.wait({"idle_ms": 50}, session.cursor)
    sent = await conversation.send("needle\r")
    found = await stage.wait("needle", sent.cursor)
    echoed = await conversation.wait_for("needle", from_cursor=sent.cursor, echo=True, timeout_ms=TIMEOUT_MS)
    assert found.span is not None and echoed.span is not None
    first = (await stage.raw(found.span[0] - 1, found.span[1] + 1), echoed.span[1] <= found.span[0])
    await conversation.send("\r")
    end = await stage.wait(PROMPT, found.cursor)
    # The line editor's echo of the submission.
    typed = await stage.type(b"true needle two\r")
    await stage.wait(PROMPT, typed)
    return first, await stage.absent("needle two", end.cursor)


# Of a line of the letter and another at its end, also of a part of it, this has no match.
RUNS_AWAY = r"(a+)+\n"


async def runaway_pattern(stage: Stage) -> Any:
    begun = await stage.run("head -c 50000 /dev/zero | tr '\\0' a; echo b")
    waiting = stage.conversation.wait_for({"regex": RUNS_AWAY}, from_cursor=begun.block.span[0], timeout_ms=TIMEOUT_MS)
    return await stage.refusal(waiting), await stage.done("echo next")


async def cancelled_wait(stage: Stage) -> Any:
    conversation = stage.conversation
    gate = stage.gate()
    begun = await conversation.exec_block(f"echo half; {gate.child}; sh -c 'exit 3'")
    await stage.wait("half", begun.cursor)
    tasks = asyncio.all_tasks()
    waiting = [asyncio.create_task(conversation.wait_for("never", from_cursor=begun.cursor)) for _ in range(5)]
    await stage.absent(PROMPT, begun.cursor)
    for task in waiting:
        task.cancel()
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    mode = (await conversation.status()).mode
    left = len(asyncio.all_tasks() - tasks)
    gate.release()
    await stage.wait(PROMPT, begun.cursor)
    cancelled = sum(isinstance(end, asyncio.CancelledError) for end in ends)
    return cancelled, left, mode, stage.outcome(await stage.block(begun.block_id))


async def wait_times(stage: Stage) -> Any:
    gate = stage.gate()
    begun = await stage.conversation.exec_block(f"echo half; {gate.child}")
    await stage.wait("half", begun.cursor)
    results: dict[str, Any] = {}
    for name, match in (("there", "half"), ("not there", "whole")):
        once = await stage.conversation.wait_for(match, from_cursor=begun.cursor, timeout_ms=0)
        results[name] = (once.matched, once.reason)
    for time in (-1, 3_600_001, 1 << 70, 1.5, "1", None, True):
        call = stage.conversation.wait_for("half", from_cursor=begun.cursor, timeout_ms=time)  # type: ignore[arg-type]
        results[repr(time)] = await stage.refusal(call)
    gate.release()
    await stage.wait(PROMPT, begun.cursor)
    return results


async def timeout_at_the_end(stage: Stage) -> Any:
    """Deadlines around the very end: either answer may come, never another one, and asked again the end is there."""
    conversation = stage.conversation
    wrong: list[WaitResult] = []
    for number in range(40):
        begun = await conversation.exec_block("true")
        result = await conversation.wait_for(PROMPT, from_cursor=begun.cursor, timeout_ms=number % 20)
        if (result.matched, result.reason) not in ((True, "prompt"), (False, "timeout")):
            wrong.append(result)
        await stage.wait(PROMPT, begun.cursor)
        again = await conversation.wait_for(PROMPT, from_cursor=begun.cursor, timeout_ms=0)
        if (again.matched, again.reason) != (True, "prompt"):
            wrong.append(again)
    return wrong, {(block.exit_status, block.state) for block in await stage.blocks()}


async def sizes(stage: Stage) -> Any:
    conversation = stage.conversation
    results: dict[str, Any] = {}
    for cols, rows in ((1, 1), (1000, 1000), (0, 0), (1001, 24), (80, -1), (80, 24)):
        code = await stage.refusal(conversation.resize(cols, rows))
        results[f"{cols}x{rows}"] = (code, await stage.done("stty size; sh -c 'exit 3'"))
    status = await conversation.status()
    return results, (status.cols, status.rows), status.integrity, await stage.doubts()


OTHER_ENGINE = """
import asyncio, sys
import blockpty

async def main():
    engine = blockpty.Engine()
    await engine.__aenter__()
    conversation = await engine.open("survivor", shell=sys.argv[1], cwd="/")
    await conversation.run("echo before")
    begun = await conversation.exec_block(sys.argv[2])
    await conversation.wait_for("half", from_cursor=begun.cursor)
    print("ready", conversation.cursor, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def killed_engine(stage: Stage) -> Any:
    """Another engine of this home is killed while its block is open; this one takes over."""
    gate = stage.gate()
    command = f"echo half; {gate.child}; echo whole; sh -c 'exit 3'"
    arguments = (sys.executable, "-c", OTHER_ENGINE, stage.shell, command)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE, env=environment)
    assert process.stdout is not None
    try:
        ready, cursor = (await asyncio.wait_for(process.stdout.readline(), TIMEOUT_MS / 1000)).split()
    finally:
        process.send_signal(signal.SIGKILL)
        await process.communicate()
    conversation = await stage.engine.conversation("survivor")
    other = Stage(stage.engine, conversation, stage.shell, stage.folder)
    status = await conversation.status()
    gate.release()
    waited = await other.wait(PROMPT, int(cursor))
    outcomes = [other.outcome(block) for block in await other.blocks()]
    numbers = [event.seq for event in await other.events()]
    dense = numbers == list(range(len(numbers)))
    await other.verified()
    await conversation.close()
    return ready, (status.mode, status.owner), waited.cursor > int(cursor), outcomes, dense


async def other_chunks(stage: Stage) -> Any:
    for command in ("echo one", "seq 1 500", "cd /; false", r"printf '\033[?1049h\033]0;x\007'", "echo ünïcödé"):
        await stage.run(command)
    recording = Recording.load(stage.conversation.directory)
    whole = derive(recording)
    size = len(recording.stream)
    wrong = [step for step in (1, 2, 7, 100, 4096) if derive(recording, range(0, size, step)) != whole]
    return wrong, len(whole.blocks.splitlines())


async def clock_jump(stage: Stage) -> Any:
    """The record with a clock that was set back in the middle gives the same blocks in the same order."""
    for command in ("echo one", "false", "echo three"):
        await stage.run(command)
    recording = Recording.load(stage.conversation.directory)
    middle = len(recording.entries) // 2
    jumped = Recording(
        recording.stream,
        [
            one._replace(ts=one.ts - (3_600_000 if number > middle else 0))
            for number, one in enumerate(recording.entries)
        ],
    )
    blocks = [_timeless(derive(one).blocks) for one in (recording, jumped)]
    events = [_timeless(derive(one).events) for one in (recording, jumped)]
    times = [event.ts for event in await stage.events()]
    return blocks[0] == blocks[1], events[0] == events[1], times == sorted(times)


# The name of a block's file holds the time.
TIMES = ("ts", "ts_begin", "ts_end", "duration_ms", "out_path")


def _timeless(lines: bytes) -> list[Mapping[str, Any]]:
    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(one) for key, one in value.items() if key not in TIMES}
        return value

    return [without(json.loads(line)) for line in lines.splitlines()]


async def end_of_terminal(stage: Stage) -> Any:
    typed = await stage.type(b"exit 4\r")
    waited = await stage.wait(EOF, typed)
    status = await stage.conversation.status()
    types = [event.type for event in await stage.events("shell_exit", "eof", "anomaly")]
    return waited.reason, status.mode, status.exit, types


async def local_access(stage: Stage) -> Any:
    """What there is to connect to belongs to the user alone."""
    home = Path(stage.engine.home)
    sockets = [path for path in home.rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]
    modes = {oct(stat.S_IMODE(path.lstat().st_mode)) for path in sockets}
    parents = {oct(stat.S_IMODE(path.parent.stat().st_mode)) for path in sockets}
    return len(sockets) > 0, modes, parents


async def names_with_paths(stage: Stage) -> Any:
    names = ("../x", "..", "a/b", "/etc/passwd", "a\0b", ".hidden", "%2e%2e%2fx")
    calls = {name: (stage.engine.open(name, shell=stage.shell), stage.engine.conversation(name)) for name in names}
    codes = {await stage.refusal(call) for pair in calls.values() for call in pair}
    made = sorted(path.name for path in (Path(stage.engine.home) / "conversations").iterdir())
    return codes, made == [stage.conversation.id]


async def full_disk(stage: Stage) -> Any:
    """A disk without space stops the program, loses nothing, and is over when there is space again."""
    home = Path(stage.engine.home) / "small"
    place = home / "conversations"
    home.mkdir(mode=0o700)
    place.mkdir(mode=0o700)
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs to mount a small file system; tests/host/test_storage.py says more")
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(place)]
    if await status_of(*mount):
        pytest.skip("cannot mount a small file system here")
    try:
        async with Engine(home) as engine:
            conversation = await engine.open("full", shell=stage.shell, cwd="/", env={"HISTFILE": "/dev/null"})
            other = Stage(engine, conversation, stage.shell, stage.folder)
            gate = stage.gate()
            begun = await conversation.exec_block(f"{gate.child}; seq 1 30000; sh -c 'exit 3'")
            await other.wait({"idle_ms": 50}, begun.cursor)
            ballast = place / "ballast"
            with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
                while True:
                    file.write(b"b" * 4096)
            os.truncate(ballast, ballast.stat().st_size - 64 * 1024)
            gate.release()
            while (await conversation.host.inspect("full")).storage is None:
                pass
            mode = (await conversation.status()).mode
            refused = await other.refusal(conversation.send("x" * 4000))
            ballast.unlink()
            await other.wait(PROMPT, begun.cursor)
            outcome = other.outcome(await other.block(begun.block_id))
            whole = b"".join(b"%d\n" % number for number in range(1, 30_001))
            after = await other.done("echo next")
            states = [event.fields["state"] for event in await other.events("storage")]
            await other.verified()
    finally:
        assert await status_of("umount", "-l", str(place)) == 0
    return mode, refused, (outcome[:2], outcome.output == whole), states, after
