"""Bad input and faults: whatever a program prints, a caller asks or a machine does, the record stays whole."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from blockpty import (
    BadCondition,
    BadCursor,
    BadRequest,
    Busy,
    Exited,
    NotFound,
    SpawnFailed,
)
from tests.scenarios.limits import RUNS_AWAY
from tests.scenarios.stage import PROMPT, TIMEOUT_MS, in_every_shell, open_stage
from tests.support.async_tests import async_test
from tests.support.profile import LONG


def _facts(done: Any) -> tuple[Any, ...]:
    return (done.block.exit_status, done.block.signal, done.block.state, done.reason)


# -- what a program prints ------------------------------------------------------------------------------------------


@in_every_shell()
@async_test
async def test_bytes_that_are_no_text(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        data = b"\0\0a\xff\xfe\xc3(\xed\xa0\x80\xf8\x88\x80\x80\x80\0\x7f\x80" * 50 + b"\n"
        (stage.folder / "data").write_bytes(data)
        result = await stage.run("cat data")
        assert stage.outcome(result.block) == (0, "ended", data)
        assert "\ufffd" in result.output and "\0" not in result.output
        begun = await stage.conversation.exec_block("cat data; echo Ende")
        found = await stage.wait({"regex": "(?P<word>End)e"}, begun.cursor)
        assert found.groups is not None and found.groups["word"] == "End"
        await stage.wait(PROMPT, begun.cursor)


@in_every_shell()
@async_test
async def test_input_that_is_no_text(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        conversation = stage.conversation
        session = await conversation.exec_interactive("stty raw -echo; echo go; head -c 6 | od -An -tx1; stty sane")
        await stage.wait("go", session.cursor)
        await conversation.send(data_b64="AP/+gAMN")  # 00 ff fe 80 03 0d
        found = await stage.wait({"regex": r"00 ff fe 80 03 0d"}, session.cursor)
        await stage.wait(PROMPT, found.cursor)
        hard: tuple[Any, ...] = ("echo \0", "echo \ud800", 7, None, b"true")
        for command in hard:
            with pytest.raises(BadRequest):
                await conversation.exec_block(command)
            with pytest.raises(BadRequest):
                await conversation.run(command)
        # What cannot be sent is refused before anything is typed.
        session = await conversation.exec_interactive("cat")
        wrong: tuple[dict[str, Any], ...] = (
            {"data_b64": "!"},
            {},
            {"data": "a", "data_b64": "YQ=="},
            {"data": "\ud800"},
        )
        for bad in wrong:
            with pytest.raises(BadRequest):
                await conversation.send(**bad)
        await conversation.ctrl_d()
        await stage.wait(PROMPT, session.cursor)
        assert stage.outcome(await stage.block(session.block_id)) == (0, "ended", b"")


UNFINISHED = (
    r"\033]", r"\033]0;title", r"\033]8;;http://host/", r"\033P", r"\033P1$q", r"\033_G", r"\033^pm", r"\033X",
    r"\033[", r"\033[1;2",
    r"\033", r"\033]7717;", r"\033]7717;__END__;n=", r"\033]7717;__END__;n=x;i=1;s=1;c=1;p=1;x=0",
    r"\033]7717;__PROMPT__\033",
    r"\303", r"\360\237\231", r"\r", r"\016", r"\033#", r"\033(",
)  # fmt: skip


@in_every_shell()
@async_test
async def test_unfinished_sequences(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        for sequence in UNFINISHED:
            done = await stage.done(f"printf 'a{sequence}'; (exit 3)")
            plain = sequence.encode().decode("unicode_escape").encode("latin-1")
            assert done == (3, "ended", b"a" + plain), sequence
            result = await stage.run("echo next")
            assert (stage.outcome(result.block), result.output) == ((0, "ended", b"next\n"), "next\n"), sequence


@in_every_shell()
@pytest.mark.timeout(300)
@async_test(timeout_seconds=290)
async def test_long_lines(shell: str, home: Path) -> None:
    """Waits with text and pattern in lines of some MB, one of them without an end."""
    async with open_stage(home, shell) as stage:
        size = 5_000_000 if LONG else 300_000
        begun = await stage.conversation.exec_block(
            f"head -c {size} /dev/zero | tr '\\0' x; echo END; head -c {size} /dev/zero | tr '\\0' y"
        )
        text = await stage.wait("xEND", begun.cursor)
        pattern = await stage.wait({"regex": r"x{20}END$"}, begun.cursor)
        assert text.span is not None and pattern.span is not None and text.span[1] == pattern.span[1]
        await stage.wait(PROMPT, begun.cursor)
        done = stage.outcome(await stage.block(begun.block_id))
        assert done == (0, "ended", b"x" * size + b"END\n" + b"y" * size)
        gone = await stage.conversation.wait_for({"regex": "z"}, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)
        assert (gone.matched, gone.reason) == (False, "prompt")


@in_every_shell()
@async_test
async def test_own_stream(shell: str, home: Path) -> None:
    """The stream is printed three times into itself: old marks stay text, and the blocks are those that were run."""
    async with open_stage(home, shell) as stage:
        await stage.run("echo first; (exit 4)")
        folder = shlex.quote(str(stage.conversation.directory / "stream"))
        for _ in range(3):
            # A copy, because a plain cat would follow its own output for ever.
            done = await stage.done(f"cat {folder}/* >../copy; cat ../copy; (exit 3)")
            assert done[:2] == (3, "ended")
        blocks = await stage.blocks()
        assert [(block.seq, block.exit_status, block.kind) for block in blocks] == [
            (1, 4, "command"), (2, 3, "command"), (3, 3, "command"), (4, 3, "command"),
        ]  # fmt: skip
        doubts = await stage.doubts()
        assert len(doubts) > 3 and set(doubts) == {("spoofed_mark", "sequence")}


# -- what a command does to the shell -------------------------------------------------------------------------------


@in_every_shell()
@async_test
async def test_commands_that_end_the_shell(shell: str, home: Path) -> None:
    endings = {
        "exit": (0, None, "shell_exited", "eof"),
        "exit 7": (7, None, "shell_exited", "eof"),
        "kill -9 $$": (None, "SIGKILL", "shell_exited", "eof"),
        "exec true": (0, None, "shell_exited", "eof"),
        "exec false": (1, None, "shell_exited", "eof"),
        "exec sh -c 'while :; do i=x$i; [ ${#i} -lt 15000 ] || exit 5; done'": (5, None, "shell_exited", "eof"),
        "set -e; false": (1, None, "shell_exited", "eof"),
        "trap 'kill -9 $$' EXIT; exit 3": (None, "SIGKILL", "shell_exited", "eof"),
    }
    async with open_stage(home, shell) as stage:
        conversation = stage.conversation
        last = 0
        for command, expected in endings.items():
            result = await stage.run(command)
            assert _facts(result) == expected, command
            assert result.cursor >= last
            status = await conversation.status()
            assert (status.mode, status.tty, status.pid) == ("exited", None, None)
            assert status.exit == {"status": expected[0], "signal": expected[1]}
            with pytest.raises(Exited) as refused:
                await conversation.exec_block("true")
            assert refused.value.code == "exited" and refused.value.hint
            opened = await conversation.reset()
            last = opened.cursor
        assert await stage.done("echo alive") == (0, "ended", b"alive\n")
        resets = await stage.events("reset")
        assert len(resets) == len(endings)


@in_every_shell()
@async_test
async def test_ctrl_c_at_the_prompt(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        await stage.run("true")
        for typed in (b"", b"echo half", b"echo 'open\r", b"echo \\\r", b"((("):
            if typed:
                await stage.type(typed)
            sent = await stage.conversation.ctrl_c()
            await stage.wait(PROMPT, sent.cursor)
            status = await stage.conversation.status()
            assert (status.mode, status.tty, status.integrity) == ("idle", "at_prompt", "ok"), typed
            assert await stage.done("echo next") == (0, "ended", b"next\n"), typed
        assert {block.cmd for block in await stage.blocks()} == {"true", "echo next"}


@in_every_shell()
@async_test
async def test_odd_commands(shell: str, home: Path) -> None:
    # zsh keeps the status before a wrong text unless that was 0.
    error = 2 if shell == "bash" else 1
    async with open_stage(home, shell) as stage:
        await stage.run("false")
        quiet = ("", " ", "\n", "\n\n\n", "# note", "\t", "true # note", "true \\", ":<<END")
        broken: tuple[str, ...] = ("if", "fi", "case", "{", "(", "&&", "echo 'open", 'echo "open')
        if shell == "zsh":
            # bash 5.2 may abort after one of these in a sourced file, with no hooks at all: its own heap is damaged.
            broken += ("echo $(", "echo `", "${", "$((")
        commands = {**dict.fromkeys(quiet, 0), "-x": 127, "--": 127, **dict.fromkeys(broken, error)}
        for number, (command, expected) in enumerate(commands.items(), 2):
            result = await stage.run(command)
            actual = (
                result.block.seq,
                result.block.cmd,
                result.block.exit_status,
                result.block.state,
                result.block.parts,
            )
            state = "rejected" if command in broken else "ended"
            assert actual == (number, command, expected, state, 1), result
            # bash warns about the here-document without an end.
            assert bool(result.output) == (expected != 0 or (shell == "bash" and command == ":<<END")), result
        assert await stage.done("echo next") == (0, "ended", b"next\n")
        assert len(await stage.blocks()) == len(commands) + 2


# -- what a caller asks ---------------------------------------------------------------------------------------------


@in_every_shell()
@async_test
async def test_open_that_fails(shell: str, home: Path, tmp_path: Path) -> None:
    """A failed open says why, leaves no process, and its name can be used afterwards."""
    (tmp_path / "file").write_text("no program")
    shells = (
        "/nonexistent/shell",
        "no-such-shell-here",
        str(tmp_path),
        str(tmp_path / "file"),
        "",
        "/bin/true",
        "../bash",
        "a\0b",
    )
    async with open_stage(home, shell) as stage:
        engine = stage.engine
        for wrong in shells:
            with pytest.raises(SpawnFailed) as refused:
                await engine.open("again", shell=wrong, cwd=str(tmp_path))
            assert refused.value.message and refused.value.hint, wrong
        for missing in (tmp_path / "missing", tmp_path / "file"):
            with pytest.raises(SpawnFailed) as refused:
                await engine.open("again", shell=shell, cwd=str(missing))
            assert str(missing) in refused.value.message
        assert [info.conversation_id for info in (await engine.list()).conversations if info.live] == [
            stage.conversation.id
        ]
        again = await engine.open("again", shell=shell, cwd=str(tmp_path))
        result = await again.run("pwd")
        assert (result.output, result.block.seq) == (f"{tmp_path}\n", 1)
        assert (await again.verify()).clean
        with pytest.raises(Busy):
            await engine.open("again", shell=shell)
        await again.close()
        assert (await again.verify()).clean


@in_every_shell()
@async_test
async def test_open_with_bad_parameters(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        bad: list[dict[str, Any]] = [
            {"cols": 0}, {"cols": 1001}, {"rows": -1}, {"rows": True}, {"env": {"A=B": "c"}}, {"env": {"": "c"}},
            {"env": {"A": "b\0"}}, {"env": {"PS1": "x"}}, {"env": {"__bpty_n": "x"}}, {"env": {"PROMPT_COMMAND": "x"}},
        ]  # fmt: skip
        for parameters in bad:
            with pytest.raises(BadRequest):
                await stage.engine.open(shell=shell, **parameters)
        assert sum(info.live for info in (await stage.engine.list()).conversations) == 1


@in_every_shell()
@async_test
async def test_missing_directory(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        conversation = stage.conversation
        (stage.folder / "file").write_text("")
        for wrong in (str(stage.folder / "missing"), "missing", str(stage.folder / "file"), "", "a\0b"):
            for call in (conversation.exec_block, conversation.exec_interactive, conversation.run):
                with pytest.raises(BadRequest) as refused:
                    await call("touch ran", cwd=wrong)
                assert refused.value.message
        assert not (stage.folder / "ran").exists() and await stage.blocks() == []
        (stage.folder / "there").mkdir()
        assert await stage.done("pwd", cwd="there") == (0, "ended", f"{stage.folder}/there\n".encode())


HOSTILE = (
    "", ".", "..", "../x", "../../etc/passwd", "a/b", "/", "/etc/passwd", "a/../b", "./a", "a/", "a\0b", "\0", "-x",
    "--help", "_x", ".hidden",
    "~", "~root", "$HOME", "`id`", "$(id)", "a;b", "a|b", "a&b", "a b", " a", "a ", "a\nb", "a\n", "a\r", "a\tb",
    "a\\b", "a:b", "C:\\x", "*", "?",
    "é", "ａ", "١", "a\u202eb", "a\u0301", "🙂", "x\x1b[31m", "%2e%2e", "a%00", "a" * 129, "a" * 100_000, "\udcff", "'",
    '"',
)  # fmt: skip


@async_test
async def test_hostile_names(home: Path) -> None:
    assert len(HOSTILE) >= 30
    async with open_stage(home, "bash") as stage:
        before = sorted(path for path in home.parent.rglob("*") if "host" not in path.parts)
        names: tuple[Any, ...] = (*HOSTILE, 5, b"abc", ["a"], True)
        for name in names:
            for call in (stage.engine.open, stage.engine.conversation):
                with pytest.raises(BadRequest) as refused:
                    await call(name)
                assert len(refused.value.message) < 500
        with pytest.raises(BadRequest):
            await stage.engine.conversation(None)  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            await stage.engine.conversation("a" * 128)
        assert sorted(path for path in home.parent.rglob("*") if "host" not in path.parts) == before


@in_every_shell()
@async_test
async def test_cursors_that_do_not_exist(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        conversation = stage.conversation
        await stage.run("echo one")
        end = (await conversation.status()).cursor
        # A prompt may still be drawn behind its mark, hence the distance.
        for cursor in (end + 1_000_000, 1 << 80, -1):
            with pytest.raises(BadCursor) as refused:
                await conversation.wait_for("x", from_cursor=cursor)
            assert refused.value.hint
            with pytest.raises(BadCursor):
                await conversation.read(cursor)
            with pytest.raises(BadCursor):
                await conversation.read(cursor, block_id="b1")
        for no_cursor in ("0", 1.5, True):
            with pytest.raises(BadCursor):
                await conversation.wait_for("x", from_cursor=no_cursor)  # type: ignore[arg-type]
        at_end = await conversation.read((await conversation.status()).cursor)
        assert (at_end.data, at_end.eof) == ("", False)
        with pytest.raises(NotFound):
            await conversation.read(block_id="b99")
        with pytest.raises(NotFound):
            await conversation.block("b99")


@in_every_shell()
@async_test
async def test_numbers_out_of_range(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        conversation = stage.conversation
        await stage.run("echo one")
        calls: dict[str, Callable[[int], Awaitable[Any]]] = {
            "read max_bytes": lambda number: conversation.read(0, max_bytes=number),
            "wait max_bytes": lambda number: conversation.wait_for(
                "never", from_cursor=0, max_bytes=number, timeout_ms=0
            ),
            "run max_bytes": lambda number: conversation.run("true", max_bytes=number, timeout_ms=TIMEOUT_MS),
            "page_size": lambda number: conversation.blocks(page_size=number),
            "cols": lambda number: conversation.resize(number, 24),
            "rows": lambda number: conversation.resize(80, number),
        }
        negative: dict[str, Callable[[int], Awaitable[Any]]] = {
            "wait timeout_ms": lambda number: conversation.wait_for("never", from_cursor=0, timeout_ms=number),
            "run timeout_ms": lambda number: conversation.run("true", timeout_ms=number),
            "grace_ms": lambda number: conversation.interrupt(grace_ms=number),
            "page": lambda number: conversation.blocks(page=number),
        }
        cases = [(name, call, number) for name, call in calls.items() for number in (0, -1)]
        cases += [(name, call, -1) for name, call in negative.items()]
        accepted = []
        for name, call, number in cases:
            if await stage.refusal(call(number)) != "bad_request":
                accepted.append((name, number))
        await stage.wait(PROMPT)
        assert accepted == []
        assert [block.cmd for block in await stage.blocks()] == ["echo one"]


@in_every_shell()
@async_test
async def test_conditions_that_are_none(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        conversation = stage.conversation
        bad: tuple[Any, ...] = (
            {"regex": "("}, {"regex": "[a"}, {"regex": "a{2,1}"}, {"regex": "(?P<n>a)(?P<n"}, {"regex": ""},
            {"regex": "a" * 5000}, {"regex": 3},
            {"token": "prompt"}, {"token": None}, {"idle_ms": 0}, {"idle_ms": -1}, {"idle_ms": True}, {"idle_ms": 1e3},
            {"texts": "a"}, {"text": ""}, {"ignore_case": True}, {},
            {"regex": "a", "token": "EOF"}, "", [], ["a", []], [{"regex": "("}], None, 3, b"a",
        )  # fmt: skip
        for match in bad:
            with pytest.raises(BadCondition) as refused:
                await conversation.wait_for(match)
            assert refused.value.code == "bad_condition" and refused.value.message
        for stop in bad[:-3]:
            with pytest.raises(BadCondition):
                await conversation.wait_for("a", stop=stop)
        with pytest.raises(BadRequest):
            await conversation.wait_for("a", view="pretty")
        assert await stage.done("echo next") == (0, "ended", b"next\n")


@in_every_shell()
@pytest.mark.timeout(300)
@async_test(timeout_seconds=290)
async def test_runaway_pattern(shell: str, home: Path) -> None:
    """It is refused after a bounded time of the processor, and meanwhile everything else goes on."""
    async with open_stage(home, shell) as stage:
        engine, conversation = stage.engine, stage.conversation
        other = await engine.open("other", shell=shell)
        gate = stage.gate()
        begun = await conversation.exec_block(f"head -c 50000 /dev/zero | tr '\\0' a; echo b; {gate.child}")
        await stage.wait("ab\n", begun.cursor)
        for begin in (begun.cursor, None):
            waiting = asyncio.create_task(
                conversation.wait_for({"regex": RUNS_AWAY}, from_cursor=begin or begun.cursor, timeout_ms=TIMEOUT_MS)
            )
            results: list[str] = []
            while len(results) < 5:
                results.append((await other.run("echo alive")).output)
                results.append((await conversation.status()).mode)
                results.append((await stage.wait("ab\n", begun.cursor)).reason)
                assert not waiting.done(), "the pattern was answered too soon to show anything"
            with pytest.raises(BadCondition) as refused:
                await waiting
            assert refused.value.hint
        gate.release()
        await stage.wait(PROMPT, begun.cursor)
        assert (await other.verify()).clean
        await other.close()


@in_every_shell() if LONG else pytest.mark.parametrize("shell", ["bash"])
@pytest.mark.timeout(300)
@async_test(timeout_seconds=290)
async def test_runaway_pattern_on_new_output(shell: str, home: Path) -> None:
    """The same, when the line that it runs away on comes only after the wait has begun."""
    async with open_stage(home, shell) as stage:
        conversation = stage.conversation
        gate = stage.gate()
        begun = await conversation.exec_block(
            f"{gate.child}; head -c 50000 /dev/zero | tr '\\0' a; echo b; {gate.child}; (exit 3)"
        )
        waiting = asyncio.create_task(
            conversation.wait_for({"regex": RUNS_AWAY}, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)
        )
        assert await stage.absent(PROMPT, begun.cursor) == "timeout"
        gate.release()
        await stage.wait("ab\n", begun.cursor)
        with pytest.raises(BadCondition):
            await waiting
        gate.release()
        await stage.wait(PROMPT, begun.cursor)
        assert stage.outcome(await stage.block(begun.block_id))[:2] == (3, "ended")


@in_every_shell()
@async_test
async def test_status_changes_no_answer(shell: str, home: Path) -> None:
    """Looking at the terminal must not change what a wait answers: a wait is a function of the record."""
    async with open_stage(home, shell) as stage:
        conversation = stage.conversation
        gate = stage.gate()
        session = await conversation.exec_interactive(
            f"stty -echo; echo off; {gate.child}; stty echo; echo on; {gate.child}"
        )
        await stage.wait("off", session.cursor)
        for _ in range(20):
            await conversation.status()
            waited = await conversation.wait_for("never", from_cursor=session.cursor, timeout_ms=0)
            assert waited.reason in ("password", "timeout")
        # Only the silence tells that a password is asked for; the delta of "off" is written with it.
        asked = await conversation.wait_for("never", from_cursor=session.cursor, timeout_ms=20_000)
        assert asked.reason == "password"
        seen = len(await stage.events())
        gate.release()
        # The silence after the next output tells that echo is on again; until then a password is asked for.
        await stage.event("agent_block_delta", seen)
        await stage.wait("on\n", session.cursor)
        for _ in range(20):
            await conversation.status()
            await conversation.wait_for("never", from_cursor=session.cursor, timeout_ms=0)
        gate.release()
        await stage.wait(PROMPT, session.cursor)
