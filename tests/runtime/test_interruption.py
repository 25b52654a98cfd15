"""How programs and shells end: sessions, signals, jobs."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.errors import NoSession
from blockpty.host import cgroup, spawn
from tests.support.async_tests import async_test
from tests.support.profile import in_turn, some_of

TWO = [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh")]


@pytest.mark.parametrize("shell", TWO)
@async_test
async def test_signals_have_names_and_a_stopped_job_is_not_over(home: Path, shell: str) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell, cwd="/")
        for signal, state in (("USR1", "ended"), ("STOP", "stopped"), ("TSTP", "stopped")):
            block = (await conversation.run(f"sh -c 'kill -{signal} $$'")).block
            assert (block.signal, block.state) == (f"SIG{signal}", state)
        session = await conversation.exec_interactive("cat")
        await conversation.send("typed\r")
        await conversation.wait_for("typed")
        await conversation.send_keys("^Z")
        assert (await conversation.wait_for({"token": "PROMPT"})).matched
        assert (await conversation.block(session.block_id)).block.state == "stopped"
        assert (await conversation.verify()).clean


@pytest.mark.parametrize("shell", TWO)
@async_test
async def test_what_a_program_left_unread_does_not_hide_its_end(
    home: Path, shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell, cwd="/")
        host, signal = conversation.host, conversation.host.signal
        await conversation.exec_block("stty -icanon -echo; echo ready; sleep 1000")
        # The shell may lose a SIGINT that comes before the program.
        while (await conversation.status()).foreground != "sleep":
            pass
        await host.input(conversation.id, b"unread", author="agent", deadline_ms=5000, epoch=conversation.epoch)

        def stream() -> bytes:
            return b"".join(segment.read_bytes() for segment in sorted((conversation.directory / "stream").iterdir()))

        def is_quiet() -> bool:
            """Whether the prompt and its line are printed, and the silence behind them is entered."""
            whole = stream()
            lines = (conversation.directory / "timeline.jsonl").read_bytes().split(b"\n")[:-1]
            silences = [entry["offset"] for entry in map(json.loads, lines) if entry["kind"] == "silence"]
            return b"__PROMPT__" in whole[begin:] and len(whole) in silences

        begin = len(stream())

        async def late(*args: Any, **options: Any) -> Any:
            done = await signal(*args, **options)
            # Blocks the loop meanwhile, so that the engine reads all of it at once.
            while not is_quiet():
                time.sleep(0.01)  # noqa: ASYNC251
            return done

        monkeypatch.setattr(host, "signal", late)
        assert (await conversation.interrupt(up_to="KILL", grace_ms=5000)).how == "SIGINT"
        monkeypatch.undo()
        await conversation.reset()
        assert (await conversation.run("echo next")).output == "next\n"


IGNORES = """python3 -c 'import signal
for n in (2, 3, 15): signal.signal(n, signal.SIG_IGN)
print("ready")
signal.pause()'"""
WRITE = "seq 500 > lines; "


@pytest.mark.parametrize(
    ("program", "ready", "how"),
    some_of([
        pytest.param("bash --norc", {"regex": "[$#] $"}, "exit", id="a shell"),
        pytest.param("python3 -q", ">>> ", "exit", id="a REPL", marks=pytest.mark.needs("python3")),
        pytest.param("sqlite3", "sqlite> ", "exit", id="sqlite", marks=pytest.mark.needs("sqlite3")),
        pytest.param("sleep 1000", None, "ctrl_c", id="no REPL"),
        pytest.param(WRITE + "less -M lines", {"screen": "lines 1-"}, "quit", id="less",
                     marks=pytest.mark.needs("less")),
        pytest.param(WRITE + "less -M +F lines", {"screen": "Waiting for data"}, "quit", id="less that follows",
                     marks=pytest.mark.needs("less")),
        pytest.param("{ seq 500; sleep 1000; } | less -M", {"screen": "lines 1-"}, "ctrl_c", id="what feeds less",
                     marks=pytest.mark.needs("less")),
        pytest.param("man -P 'less -M' -l page.1", {"screen": "LESSON"}, "quit", id="man",
                     marks=pytest.mark.needs("man", "less")),
        pytest.param("man -P /usr/bin/pager -l page.1", {"screen": "LESSON"}, "quit", id="man and its pager",
                     marks=pytest.mark.needs("man", "pager")),
        pytest.param("vim -u NONE lines", {"screen": "New"}, "quit", id="vim", marks=pytest.mark.needs("vim")),
        pytest.param("bash --norc -c 'vim -u NONE -o lines more'", {"screen": "New"}, "quit", id="vim in a script",
                     marks=pytest.mark.needs("vim")),
        pytest.param("nano lines", {"screen": "GNU nano"}, "quit", id="nano", marks=pytest.mark.needs("nano")),
        pytest.param("bash -c 'trap \"\" INT; sleep 100'", None, "SIGQUIT", id="deaf to Ctrl-C"),
        pytest.param(IGNORES, "ready", "SIGKILL", id="deaf to INT, QUIT and TERM", marks=pytest.mark.needs("python3")),
    ], 2),
)  # fmt: skip
@async_test
async def test_a_session_is_ended_and_the_shell_stays(
    home: Path, tmp_path: Path, program: str, ready: Any, how: str
) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd="/")
        work = tmp_path / "work"
        work.mkdir()
        (work / "page.1").write_text('.TH LESSON 1\n.SH NAME\nlesson\n' + ".PP\nMore to read.\n" * 200)
        assert (await conversation.run(f"cd '{work}'; export KEEP=kept")).exit_status == 0
        shell = conversation.shell_id
        session = await conversation.exec_interactive(program)
        found = await conversation.wait_for([ready or {"idle_ms": 50}, {"idle_ms": 5000}])
        if "vim" in program or "nano" in program:
            # Something that was not saved.
            await conversation.send("iword" if "vim" in program else "word")
            assert (await conversation.wait_for({"screen": "(?m)^word"})).matched
        assert (await conversation.end_session(session.session_id)).how == how, found
        assert (await conversation.run("echo $KEEP $PWD")).output == f"kept {work}\n"
        assert conversation.shell_id == shell
        assert (await conversation.verify()).clean


@async_test
async def test_the_session_to_end_needs_no_name(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with pytest.raises(NoSession, match="nothing runs"):
            await conversation.end_session()
        await conversation.exec_block("sleep 1000")
        with pytest.raises(NoSession, match="no interactive session"):
            await conversation.end_session()
        await conversation.interrupt()
        await conversation.wait_for({"token": "PROMPT"})
        await conversation.exec_interactive("sh -c 'echo ready; exec sleep 1000'")
        # Before its program is there, Ctrl-C meets the shell alone.
        await conversation.wait_for("ready\n")
        assert (await conversation.end_session()).how == "ctrl_c"


@async_test
async def test_a_new_shell_is_the_last_resort(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        # What ignores Ctrl-C is the shell itself: there is no other process that could be ended.
        session = await conversation.exec_interactive("trap '' INT; while :; do read x; done")
        await conversation.wait_for([{"idle_ms": 50}])
        assert (await conversation.end_session(session.session_id)).how == "reset"
        assert (await conversation.run("echo on")).output == "on\n"
        assert (await conversation.verify()).clean


@async_test
async def test_nothing_is_typed_into_a_program_that_does_not_read(home: Path) -> None:
    """A shell that waits for its child would read the line after the child's end, and so leave with it."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        session = await conversation.exec_interactive("bash -c 'sleep 1000'")
        await conversation.wait_for({"idle_ms": 50})
        await conversation.end_session(session.session_id)
        typed = [event async for event in conversation.events(follow=False) if event.type == "input"]
        assert [event.fields.get("bytes") for event in typed if event.fields["author"] == "engine"] == [1]


@pytest.mark.needs("bash")
@async_test
async def test_a_program_in_a_shell_without_hooks_is_ended_and_the_shell_is_not(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd="/")
        await conversation.wait_for({"idle_ms": 100})  # where the shell waits at its prompt is known by then
        lost = await conversation.run("unset PROMPT_COMMAND PS0; PS1='> '", timeout_ms=20_000)
        assert lost.reason == "hooks_lost"
        await conversation.send("sh -c 'trap \"\" INT QUIT; echo rea\"\"dy; while :; do sleep 1; done'\r")
        await conversation.wait_for("ready")
        ended = await conversation.interrupt(grace_ms=500, up_to="KILL")
        assert ended.how == "SIGTERM"
        assert conversation.pid is not None and alive(conversation.pid)
        await conversation.close()


@pytest.mark.needs("fish")
@async_test
async def test_fish_outlives_signals_to_its_own_read(home: Path, tmp_path: Path) -> None:
    # A Ctrl-C behind `read` may end the handlers that write END and count the prompt.
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="fish", cwd="/")
        shell = conversation.pid
        for number in range(10):
            await conversation.exec_interactive("read x")
            await conversation.send("v\r")
            await conversation.interrupt(grace_ms=300, up_to="KILL")
            result = await conversation.run(f"echo {number} | tee -a {tmp_path / 'ran'}", timeout_ms=30_000)
            assert (result.output, result.block.exit_status) == (f"{number}\n", 0)
        assert conversation.pid == shell
        assert (tmp_path / "ran").read_text().split() == [str(number) for number in range(10)]
        assert (await conversation.verify()).clean
        await conversation.close()


@pytest.mark.parametrize(
    ("shell", "running"),
    [
        pytest.param(shell, running, marks=pytest.mark.needs(shell))
        for running in (False, True)
        for shell in in_turn(running, ("bash", "zsh", "fish"))
    ],
)
@async_test
async def test_kill_ends_the_conversation(home: Path, shell: str, *, running: bool) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        if running:
            await conversation.exec_block("sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done'")
            await conversation.wait_for({"idle_ms": 50})
        assert (await conversation.kill()).how in ("TERM", "HUP", "KILL")
        assert conversation.mode == "exited"


@pytest.mark.parametrize("shell", TWO)
@async_test
async def test_a_kill_that_the_shell_survives_says_so(home: Path, shell: str) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        for signal in ("INT", "sigint", "SIGQUIT"):
            assert (await conversation.kill(signal=signal)).how == "running"
        assert (await conversation.run("trap '' HUP")).exit_status == 0
        assert (await conversation.kill(signal="hup")).how == "running"
        assert (await conversation.run("echo on")).output == "on\n"
        for wrong in ("SIG", "", "USR1", "SIGSIGTERM", "9"):
            with pytest.raises(blockpty.BadRequest):
                await conversation.kill(signal=wrong)
        assert (await conversation.kill(signal="SigKill")).how == "KILL"
        assert conversation.mode == "exited"


@pytest.mark.parametrize("shell", [*TWO, pytest.param("fish", marks=pytest.mark.needs("fish"))])
@async_test
async def test_what_a_shell_draws_after_a_signal_is_no_block(home: Path, shell: str) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        await conversation.run("echo one")
        for signal in ("INT", "QUIT", "INT"):
            # The prompt has been silent: from here on what comes is output.
            await conversation.wait_for({"idle_ms": 200})
            assert (await conversation.kill(signal=signal)).how == "running"
        await conversation.wait_for({"idle_ms": 200})
        assert [block.kind for block in (await conversation.blocks()).blocks] == ["command"]
        assert (await conversation.run("echo two")).output == "two\n"
        assert (await conversation.verify()).clean


@pytest.mark.parametrize("signal", ["HUP", "KILL"])
@async_test
async def test_a_kill_that_ends_the_shell_has_gone_well(home: Path, signal: str) -> None:
    async with blockpty.Engine(home) as engine:
        for _ in range(5):
            conversation = await engine.open("c1", shell="bash")
            # At a prompt the shell itself is in the foreground: it may be gone before it is its own turn.
            assert (await conversation.kill(signal=signal)).how == signal
            assert (await conversation.wait_for({"token": "EOF"})).matched


# Each writes its number when it has left the session; what is deaf to TERM has to be killed.
# It has no children: one that was forked a moment ago would still bear the command of its parent.
DAEMON = "setsid sh -c 'trap \"\" HUP {deaf}; echo $$ > {name}; exec sleep 1000' &"


def alive(pid: int) -> bool:
    facts = spawn.process_facts(pid)
    return facts is not None and facts[0] not in "ZX"


async def daemons(conversation: blockpty.Conversation, place: Path) -> list[int]:
    """Start two processes that leave the session; return their numbers."""
    os.mkfifo(place / "numbers")
    for deaf in ("USR1", "TERM"):
        command = DAEMON.format(deaf=deaf, name="numbers")
        await conversation.run(f"cd '{place}'; {command}")
    await conversation.run("exec 3<> numbers; read -u 3 one; read -u 3 two")
    return [int(number) for number in (await conversation.run("echo $one $two")).output.split()]


@pytest.mark.linux
@pytest.mark.parametrize("limit", [4096, 0])
@pytest.mark.parametrize("leave", [False, True])
@async_test
async def test_close_names_what_has_left_the_session(home: Path, tmp_path: Path, limit: int, *, leave: bool) -> None:
    if limit and cgroup.find_base() is None:
        pytest.skip("no pids cgroup can be made here")
    async with blockpty.Engine(home, process_limit=limit) as engine:
        other = await engine.open("other", shell="bash")
        spared = await daemons(other, tmp_path)
        conversation = await engine.open("c1", shell="bash")
        place = tmp_path / "c1"
        place.mkdir()
        numbers = await daemons(conversation, place)
        try:
            result = await conversation.close(leave=leave)
            assert {one["pid"]: one["ended"] for one in result.outside} == dict.fromkeys(numbers, not leave)
            assert [alive(pid) for pid in numbers] == [leave, leave]
            assert [alive(pid) for pid in spared] == [True, True]
            assert result.exit is not None and conversation.mode == "exited"
        finally:
            for pid in (*numbers, *spared):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, 9)


@pytest.mark.linux
@async_test
async def test_a_new_shell_does_not_cost_what_runs_on_its_own(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        numbers = await daemons(conversation, tmp_path)
        try:
            await conversation.reset()
            assert [alive(pid) for pid in numbers] == [True, True]
        finally:
            for pid in numbers:
                os.killpg(pid, 9)
