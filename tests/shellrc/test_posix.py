"""Shells of which only the prompt can be marked: what that mark says, and what blocks are made of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blockpty.engine.states import ShellState
from blockpty.testing import FakePty, derive, events_of, every_split, state_of
from tests.scenarios.stage import PROMPT, Done, open_stage
from tests.support.async_tests import async_test

from .conftest import NONCE, Terminal, kinds

Open = Callable[..., Terminal]

SHELLS = ("dash", "busybox", "ksh93", "mksh")
in_each = pytest.mark.parametrize("shell", [pytest.param(shell, marks=pytest.mark.needs(shell)) for shell in SHELLS])


@in_each
def test_prompt(open_terminal: Open, shell: str, tmp_path: Path) -> None:
    terminal = open_terminal(shell, additions={"ENV": str(tmp_path / "home0" / ".shrc")})
    marks = terminal.start()
    assert kinds(marks) == ["HELLO", "OUT_END", "PROMPT"]
    hello, out_end, prompt = marks
    assert (hello.fields["sh"], hello.fields["f"]) == (shell, "ps1")
    assert terminal.data[out_end.end : prompt.start].endswith(b"ready> ")
    assert (prompt.number("p"), prompt.fields["b"], prompt.number("x")) == (1, "", 0)
    for number, (command, status) in enumerate((("false", 1), ("true", 0), ("sh -c 'exit 9'", 9)), 2):
        terminal.submit(command)
        out_end, prompt = terminal.until("__PROMPT__")
        assert [out_end.number("p"), prompt.number("p"), prompt.number("x")] == [number, number, status]
        assert all(mark.fields["n"] == NONCE and mark.fields["i"] == str(terminal.pid) for mark in (out_end, prompt))
        assert all(len(mark.raw) <= 512 for mark in (out_end, prompt))


@in_each
def test_environment(open_terminal: Open, shell: str, tmp_path: Path) -> None:
    """The user's ENV is read first and given back; the nonce is in no child's environment, even under `set -a`."""
    theirs = str(tmp_path / "home0" / ".shrc")
    terminal = open_terminal(shell, "set -a\nFROM_FILE=yes\nPS1='mine> '", additions={"ENV": theirs})
    marks = terminal.start()
    assert terminal.data[marks[1].end : marks[2].start].endswith(b"mine> ")
    terminal.submit("env >environment")
    terminal.until("__PROMPT__")
    variables = (terminal.home / "environment").read_bytes()
    assert b"FROM_FILE=yes" in variables and f"ENV={theirs}".encode() in variables
    assert NONCE.encode() not in variables
    environment = Path(f"/proc/{terminal.pid}/environ")
    if environment.exists():
        assert NONCE.encode() not in environment.read_bytes()
    assert not (terminal.directory / "rc" / "1").exists()


@in_each
def test_without_a_file_of_the_user(open_terminal: Open, shell: str) -> None:
    terminal = open_terminal(shell)
    assert kinds(terminal.start()) == ["HELLO", "OUT_END", "PROMPT"]
    terminal.submit("echo \"<${ENV-unset}>\"")
    terminal.until_text(b"<unset>\r\n")
    terminal.until("__PROMPT__")


@in_each
def test_login(open_terminal: Open, shell: str, tmp_path: Path) -> None:
    def profile(content: bytes) -> bytes:
        (tmp_path / "home0" / ".profile").write_text("PROFILE=read\n")
        return content

    terminal = open_terminal(shell, login=True, edit=profile)
    terminal.start()
    terminal.submit("echo \"<$PROFILE>\"")
    terminal.until_text(b"<read>\r\n")
    terminal.until("__PROMPT__")


@pytest.mark.parametrize("shell", [in_each.args[1][0], in_each.args[1][1]])
def test_continuation(open_terminal: Open, shell: str) -> None:
    terminal = open_terminal(shell)
    terminal.start()
    terminal.type("echo 'a\r")
    assert kinds(terminal.until("__PS2__")) == ["PS2"]
    assert terminal.interrupt()[-1].number("x") == 130


@in_each
@async_test
async def test_blocks(shell: str, home: Path) -> None:
    reason = f"prompt_only: {shell} has no hooks before and after a command"
    async with open_stage(home, shell) as stage:
        status = await stage.conversation.status()
        assert (status.mode, status.integrity, status.integrity_reason) == ("idle", "degraded", reason)
        (stage.folder / "sub").mkdir()
        for command, done in (
            ("echo hi", Done(0, "ended", b"hi\n")),
            ("false", Done(1, "ended", b"")),
            ("printf x", Done(0, "ended", b"x")),
            ("printf '\\n\\nx\\n\\n'", Done(0, "ended", b"\n\nx\n\n")),
            ("echo one\necho two >&2\n(exit 3)", Done(3, "ended", b"one\ntwo\n")),
            ("cat <<E\n\ttab\nE", Done(0, "ended", b"\ttab\n")),
        ):
            assert await stage.done(command) == done, command
        # What the trace looks like is each shell's own business.
        traced = await stage.done("set -u; set -f; set -a; set -x; set +x; set +u; set +f; set +a; (exit 4)")
        assert traced[:2] == (4, "ended") and b"7717" not in traced.output
        if shell != "busybox":  # its line editor writes to stdout: without that, nothing is ever seen again
            assert await stage.done("exec 3>&1; exec >/dev/null; echo unseen") == Done(0, "ended", b"")
            assert await stage.done("exec >&3; echo seen") == Done(0, "ended", b"seen\n")
        assert await stage.done("pwd", cwd="/usr") == Done(0, "ended", b"/usr\n")
        moved = await stage.done("pwd; cd -", cwd=str(stage.folder))
        assert moved == Done(0, "ended", f"{stage.folder}\n/usr\n".encode())
        missing = await stage.conversation.run("echo reached", cwd="none", timeout_ms=20_000)
        assert missing.block.exit_status != 0 and "reached\n" not in missing.output.splitlines(keepends=True)
        syntax = await stage.run("echo )")
        assert syntax.block.exit_status != 0 and "rror" in syntax.output
        for number in range(30):
            assert (await stage.done(f"echo {number}")).output == f"{number}\n".encode()
        assert {block.degraded for block in await stage.blocks()} == {"prompt_only"}
        status = await stage.conversation.status()
        assert (status.integrity_reason, await stage.doubts()) == (reason, [])


@in_each
@async_test
async def test_interrupt_and_session(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        conversation = stage.conversation
        started = await conversation.exec_block("sh -c 'echo started; exec sleep 600'; echo after")
        await stage.wait("started")
        await conversation.interrupt()
        await stage.wait(PROMPT)
        block = await stage.block(started.block_id)
        assert (block.exit_status, block.state, block.signal) == (130, "interrupted", "SIGINT")
        assert stage.outcome(block).output.startswith(b"started\n") and b"after" not in stage.outcome(block).output
        session = await conversation.exec_interactive(f"{sys.executable} -c \"print(len(input('name? ')))\"")
        await stage.wait("name? ", session_id=session.session_id)
        await conversation.send("four\r")
        await stage.wait(PROMPT, session_id=session.session_id)
        assert stage.outcome(await stage.block(session.block_id)) == Done(0, "ended", b"name? four\n4\n")
        await stage.type(b"never entered")
        assert await stage.done("echo clean") == Done(0, "ended", b"clean\n")
        own = await stage.done(f"cat {conversation.directory}/stream/*")
        assert (own.exit_status, own.state) == (0, "ended")
        assert await stage.done("echo after") == Done(0, "ended", b"after\n")


@pytest.mark.needs("bash")
def test_branch_for_bash_below_4_4(open_terminal: Open) -> None:
    """No such bash is here: a newer one is made to take the branch. END comes, BEGIN does not, and PROMPT says so."""

    def old(content: bytes) -> bytes:
        changed = content.replace(b"< 404))", b"< 9901))")
        assert changed != content
        return changed

    terminal = open_terminal("bash", edit=old)
    marks = terminal.start()
    assert kinds(marks) == ["HELLO", "END", "CWD", "PROMPT"]
    assert marks[0].fields["f"] == "ps1"
    for number, (command, status) in enumerate((("false", 1), ("echo hi", 0), ("sh -c 'exit 9'", 9)), 2):
        terminal.submit(command)
        end, prompt = terminal.until("__PROMPT__")
        assert (end.kind, end.number("s"), end.number("c"), end.number("x")) == ("__END__", number, 0, status)
        assert (prompt.number("p"), prompt.fields["b"], prompt.number("x")) == (number, "", status)


# -- the machine, with everything cut everywhere -----------------------------------------------------------------------


def prompt_only(pty: FakePty, *, ends: bool = False) -> None:
    """A shell that starts and says that it has nothing but PS1 (bash below 4.4 has END as well)."""
    pty.spawn()
    pty.output(pty.mark("HELLO", v=1, sh="sh", sv="", f="ps1"))
    if ends:
        pty.end(0)
    show(pty, 0, ends=ends)


def show(pty: FakePty, status: int, *, ends: bool = False) -> None:
    """The prompt between its two marks."""
    pty.prompts += 1
    if not ends:
        pty.output(pty.mark("OUT_END", x=status))
    pty.output(b"$ " + pty.mark("PROMPT", b="", x=status))


def derived(pty: FakePty) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Return blocks and outputs, the same however the stream is cut."""
    whole = derive(pty.recording)
    assert all(derive(pty.recording, cuts) == whole for cuts in every_split(pty.recording.stream))
    events = events_of(pty.recording)
    assert [event for event in events if event.type == "anomaly"] == []
    blocks = [json.loads(line) for line in whole.blocks.splitlines()]
    outputs = {f"blocks/{name.removeprefix('blocks/')}": data for name, data in whole.outputs.items()}
    return blocks, [outputs[block["out_path"]] for block in blocks]


@pytest.mark.parametrize("ends", [False, True])
def test_derived_blocks(ends: bool) -> None:
    pty = FakePty()
    prompt_only(pty, ends=ends)
    for command, output, status in (("echo hi", b"hi\r\n", 0), ("false", b"", 1), ("printf x", b"x", 0)):
        pty.submit(command)
        pty.output(output)
        if ends:
            pty.end(status)
        show(pty, status, ends=ends)
        pty.silence(foreground="shell")
    blocks, outputs = derived(pty)
    assert [(block["exit_status"], block["state"], block["degraded"], block["parts"]) for block in blocks] == [
        (0, "ended", "prompt_only", 1), (1, "ended", "prompt_only", 1), (0, "ended", "prompt_only", 1),
    ]  # fmt: skip
    assert outputs == [b"hi\n", b"", b"x"]
    state = state_of(pty.recording)
    assert state.current.integrity_reason == "prompt_only: bash has no hooks before and after a command"
    assert state.shell is ShellState.IDLE
    assert "spoofed_mark" not in [event.type for event in events_of(pty.recording)]


@pytest.mark.parametrize("echo", [
    b" . /c/1\r\n", b" . /c/\r\r\n1\r\n", b" . /c\r/c/1   <\b\b\b/c/1\r\r\n", b" . /c/1\x1b[K\r\n",
])  # fmt: skip
def test_echo_of_line_editors(echo: bytes) -> None:
    """ash breaks a long line, ksh scrolls it; the output begins behind the line end that Enter made."""
    pty = FakePty()
    prompt_only(pty)
    pty.submit("echo hi")
    plain = len(b" . /c/1\r\n")
    pty.recording.stream = pty.recording.stream[:-plain] + echo + b"hi\r\n"
    show(pty, 0)
    assert derived(pty)[1] == [b"hi\n"]


def test_echo_that_never_comes() -> None:
    """Then all up to the prompt is taken for output; nothing is lost."""
    pty = FakePty()
    prompt_only(pty)
    pty.submit("echo hi")
    pty.recording.stream = pty.recording.stream[: -len(b" . /c/1\r\n")] + b"hi\r\n"
    show(pty, 0)
    blocks, outputs = derived(pty)
    assert ([block["exit_status"] for block in blocks], outputs) == ([0], [b"hi\n"])


def test_old_marks_are_refused() -> None:
    """The transcript shown again: neither its prompts nor its ends of output are accepted."""
    pty = FakePty()
    prompt_only(pty)
    pty.submit("true")
    show(pty, 0)
    shown = bytes(pty.recording.stream)
    pty.submit("cat transcript")
    pty.output(shown + b"last\r\n")
    show(pty, 7)
    blocks, outputs = derived(pty)
    assert [block["exit_status"] for block in blocks] == [0, 7]
    assert outputs[1].endswith(b"last\n")


def test_ended_while_it_ran() -> None:
    pty = FakePty()
    prompt_only(pty)
    pty.submit("exit 3")
    pty.entry("exit", status=3, signal=None)
    pty.entry("eof")
    assert [(block["exit_status"], block["state"]) for block in derived(pty)[0]] == [(3, "shell_exited")]
