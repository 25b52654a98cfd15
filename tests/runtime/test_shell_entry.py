"""Giving our hooks to a shell that runs already: one that replaced ours, one inside, one that sees no file of ours."""

from __future__ import annotations

import asyncio
import base64
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.engine.states import ShellState
from blockpty.runtime import shell_entry, submission
from blockpty.runtime.channel import ConversationChannel
from tests.support.async_tests import async_test
from tests.support.ports import free_port

PROMPT = {"token": "PROMPT"}
IDLE = {"idle_ms": 100}
TIMEOUT_MS = 20_000
COMMANDS = (
    ("true", 0, ""),
    ("echo one; A='x y'\nfalse", 1, "one\n"),
    ("printf '%s|' \"$A\" 'it is !! $x' \"tab\there\"; (exit 3)", 3, "x y|it is !! $x|tab\there|"),
    ("cat <<'EOF'\na\\b\nEOF", 0, "a\\b\n"),
    ("nosuchcommand 2>/dev/null", 127, ""),
)


IN_FISH = (
    ("true", 0, ""),
    ("echo one; set A 'x y'\nfalse", 1, "one\n"),
    ("printf '%s|' \"$A\" 'it is !! $x' \"tab\there\"; sh -c 'exit 3'", 3, "x y|it is !! $x|tab\there|"),
)


async def play(conversation: blockpty.Conversation, shell: str = "bash") -> None:
    """Run some commands; all must be whole blocks of the right status and output."""
    for command, status, output in IN_FISH if shell == "fish" else COMMANDS:
        result = await conversation.run(command, timeout_ms=TIMEOUT_MS)
        block = result.block
        actual = (block.cmd, block.exit_status, block.state, block.degraded, result.output)
        assert actual == (command, status, "ended", None, output)


async def started(conversation: blockpty.Conversation, command: str) -> blockpty.SessionResult:
    """Start a shell inside and return when its line editor reads."""
    session = await conversation.exec_interactive(command)
    while True:
        waited = await conversation.wait_for(IDLE, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
        assert waited.matched, waited
        if waited.tty == "raw":
            return session
        assert (await conversation.status()).mode == "interactive"


@pytest.mark.parametrize("second", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("first", ["bash", "zsh", "fish"])
@pytest.mark.needs("zsh", "fish")
@async_test
async def test_a_shell_that_replaced_ours_gets_the_hooks(first: str, second: str, home: Path) -> None:
    bare = {"bash": "exec bash --norc", "zsh": "exec zsh -f", "fish": "exec fish --no-config"}[second]
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=first)
        begun = await conversation.exec_block(bare)
        lost = await conversation.wait_for(PROMPT, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)
        assert (lost.reason, (await conversation.status()).integrity) == ("hooks_lost", "degraded")
        await play(conversation, second)
        assert (await conversation.status()).integrity == "ok"
        block = (await conversation.block(begun.block_id)).block
        assert (block.state, block.exit_status, block.degraded) == ("ended", None, "shell_entered")
        # And once more: what it is now counts as its program.
        again = await conversation.exec_block(bare)
        lost = await conversation.wait_for(PROMPT, from_cursor=again.cursor, timeout_ms=TIMEOUT_MS)
        assert lost.reason == "hooks_lost"
        await play(conversation, second)
        if second != "fish":  # there `exit` in a sourced file ends only that
            left = await conversation.run("exit 7", timeout_ms=TIMEOUT_MS)
            assert (left.reason, left.block.exit_status, left.block.state) == ("eof", 7, "shell_exited")
        assert (await conversation.verify()).clean


# Each takes away every hook that the shell has.
GONE = {
    "bash": "unset PROMPT_COMMAND PS0; PS1='x> '",
    "zsh": "precmd_functions=() preexec_functions=(); zle -D zle-line-init",
    "fish": "functions -e (functions -a)",
}
# Builtins that read keys, in the mode of the line editor or with it, and what ends them.
READERS = {
    "bash": (("read -e x", "1\r"), ("read -s -n1 x", "1"), ("f() { read -e x; }; f", "1\r"),
             ("eval 'while read -e x; do break; done'", "1\r")),
    "zsh": (("vared -c x", "1\r"), ("read -k x", "1"), ("read -q", "y"), ("f() { vared -c y }; f", "1\r")),
    "fish": (("read x", "1\r"), ("read -n1 x", "1"), ("set x (read)", "1\r"), ("read -s x", "1\r")),
}  # fmt: skip


async def measured(conversation: blockpty.Conversation) -> None:
    """Return when the record says where the shell waits at its prompt."""
    while conversation.live.state.prompt_depth is None:
        assert (await conversation.wait_for(IDLE, timeout_ms=TIMEOUT_MS)).matched


@pytest.mark.linux
@pytest.mark.parametrize("shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in GONE])
@async_test
async def test_a_shell_that_has_lost_its_hooks_gets_them_again(shell: str, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        for _ in range(2):
            await measured(conversation)
            begun = await conversation.exec_block(GONE[shell])
            lost = await conversation.wait_for(PROMPT, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)
            status = await conversation.status()
            assert (lost.reason, status.integrity) == ("hooks_lost", "degraded")
            assert status.integrity_reason == "hooks_lost: the shell reads a command, and its hooks are gone"
            await play(conversation, shell)
            assert (await conversation.status()).integrity == "ok"
            block = (await conversation.block(begun.block_id)).block
            assert (block.state, block.exit_status, block.degraded) == ("ended", None, "shell_entered")
        assert (await conversation.verify()).clean


@pytest.mark.parametrize("shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in READERS])
@async_test
async def test_a_builtin_that_reads_keys_is_no_lost_shell(shell: str, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        for command, keys in READERS[shell]:
            if sys.platform == "linux":
                await measured(conversation)
            session = await started(conversation, command)
            assert (await conversation.status()).integrity == "ok"
            await conversation.send(keys)
            ended = await conversation.wait_for(PROMPT, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
            assert (ended.matched, (await conversation.status()).integrity) == (True, "ok")
        assert {block.degraded for block in (await conversation.blocks()).blocks} == {None}
        assert (await conversation.verify()).clean


@async_test
async def test_another_program_gets_nothing_typed(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        begun = await conversation.exec_block("exec cat")
        lost = await conversation.wait_for(PROMPT, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)
        assert lost.reason == "hooks_lost"
        with pytest.raises(blockpty.NoPrompt, match="replaced"):
            await conversation.exec_block("echo no")
        with pytest.raises(blockpty.BadRequest, match="cat"):
            await conversation.enter_shell()
        await conversation.reset()
        await play(conversation)
        assert (await conversation.verify()).clean


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.needs("zsh")
@async_test
async def test_a_shell_inside(shell: str, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        session = await started(conversation, {"bash": "bash --norc", "zsh": "zsh -f"}[shell])
        entered = await conversation.enter_shell()
        assert entered.how == "file"
        await play(conversation)
        near, far = await prompts(conversation)
        me = pwd.getpwuid(os.getuid()).pw_name
        assert (near["user"], near["host"]) == (me, socket.gethostname()) == (far["user"], far["host"])
        assert base64.b64decode(far["cwd_b64"]).decode() == far["cwd"]
        sleeping = await conversation.exec_block("sh -c 'echo started; exec sleep 600'")
        await conversation.wait_for("started", from_cursor=sleeping.cursor)
        assert (await conversation.interrupt(grace_ms=5000)).how == "SIGINT"
        assert (await conversation.block(sleeping.block_id)).block.exit_status == 130
        # A third one inside the second.
        await started(conversation, "bash --norc")
        await conversation.enter_shell()
        await play(conversation)
        for status in (5, 6):
            left = await conversation.run(f"exit {status}", timeout_ms=TIMEOUT_MS)
            assert (left.block.state, left.block.exit_status) == ("shell_exited", status)
        await play(conversation)
        first = (await conversation.block(session.block_id)).block
        assert (first.state, first.exit_status, first.degraded) == ("ended", None, "shell_entered")
        kinds = [event.type async for event in conversation.events(follow=False)]
        assert (kinds.count("shell_entered"), kinds.count("shell_left")) == (2, 2)
        assert (await conversation.status()).integrity == "ok"
        assert (await conversation.verify()).clean


@pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=pytest.mark.needs("zsh"))])
@async_test
async def test_what_is_typed_at_the_new_prompt_stays_on_the_line(
    shell: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = {"bash": "bash --norc", "zsh": "zsh -f"}[shell]

    type_in = shell_entry.type_in
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await started(conversation, bare)

        async def with_more(channel: ConversationChannel, data: bytes) -> int:
            begin = await type_in(channel, data)
            while channel.live.state.shell is not ShellState.IDLE:
                await channel.live.subscribers.changed()
            await channel.host.input(channel.id, b"echo on", author="user", epoch=channel.epoch)
            while channel.live.state.shell is not ShellState.EDITING:
                await channel.live.subscribers.changed()
            return begin

        with monkeypatch.context() as patched:
            patched.setattr(shell_entry, "type_in", with_more)
            await conversation.enter_shell()
        cursor = conversation.cursor
        await conversation.send("e\r", author="user")
        assert (await conversation.wait_for(PROMPT, from_cursor=cursor, timeout_ms=TIMEOUT_MS)).matched
        typed = (await conversation.blocks()).blocks[-1]
        assert (typed.cmd, typed.exit_status, typed.author) == ("echo one", 0, "user")


@async_test
async def test_a_home_whose_name_has_to_be_quoted(home: Path) -> None:
    odd = home / "it's a \u00e4 home"
    odd.mkdir(mode=0o700)
    async with blockpty.Engine(odd) as engine:
        conversation = await engine.open("c1")
        await started(conversation, "bash --norc")
        assert (await conversation.enter_shell()).how == "file"
        await play(conversation)
        assert (await conversation.verify()).clean


@async_test
async def test_a_caller_that_goes_leaves_nothing_half_done(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        session = await started(conversation, "stty raw -echo; cat >/dev/null; stty sane; exit 4")
        entering = asyncio.ensure_future(conversation.enter_shell("bash", timeout_ms=60_000))
        # The question that nothing there answers is typed.
        async for event in conversation.events():
            if event.fields.get("author") == "engine":
                break
        assert list((conversation.directory / "rc").glob("*/hooks"))
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        # The first shell's marks are accepted again: it ends as it would have.
        await conversation.kill(signal="INT")
        ended = await conversation.wait_for({"token": "EOF"}, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
        assert ended.reason == "eof" and conversation.live.state.outer == []
        assert not list((conversation.directory / "rc").glob("*/hooks"))
        assert (await conversation.verify()).clean


@async_test
async def test_hooks_that_do_not_show(home: Path) -> None:
    """What reads there is no shell: that is reported, and the program is as it was."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        session = await started(conversation, "stty raw -echo; cat >/dev/null; stty sane; exit 4")
        with pytest.raises(blockpty.NoPrompt, match="do not show"):
            await conversation.enter_shell("bash", timeout_ms=300)
        assert conversation.live.state.outer == []
        # The marks of the shell that started it are accepted again: it ends as it would have.
        await conversation.kill(signal="INT")
        ended = await conversation.wait_for({"token": "EOF"}, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
        assert ended.reason == "eof"
        assert (await conversation.verify()).clean


def _private_root() -> str | None:
    """Return what starts a program with another /tmp than ours, or None where that is not allowed."""
    before = "unshare -m"
    if os.geteuid() != 0:
        before = "unshare -r -m"
    try:
        mount = [*before.split(), "mount", "-t", "tmpfs", "none", "/tmp"]
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return before if done.returncode == 0 else None


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.needs("zsh", "fish")
@async_test(timeout_seconds=110)
async def test_a_shell_that_sees_no_file_of_ours(shell: str, home: Path) -> None:
    before = _private_root()
    if before is None:
        pytest.skip("no mount namespace may be made here")
    assert home.is_relative_to("/tmp"), "the conversation must lie where the other root has nothing"
    bare = {"bash": "bash --norc", "zsh": "zsh -f", "fish": "fish --no-config"}[shell]
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await started(conversation, f"{before} sh -c 'mount -t tmpfs none /tmp; exec {bare}'")
        assert (await conversation.enter_shell()).how == "typed"
        await play(conversation, shell)
        long = f"cat >/dev/null <<'E'\n{'x' * 200_000}\nE\necho done"
        if shell == "fish":
            long = f"echo '{'x' * 20_000}' >/dev/null; echo done"
        big = await conversation.run(long, timeout_ms=100_000)
        assert (big.reason, big.block.exit_status, big.output) == ("prompt", 0, "done\n")
        there = await conversation.run("pwd", cwd="/usr", timeout_ms=TIMEOUT_MS)
        assert there.output == "/usr\n"
        left = await conversation.run("exit 7", timeout_ms=TIMEOUT_MS)
        # fish marks the end of a command also where that ends the shell.
        over = "ended" if shell == "fish" else "shell_exited"
        assert (left.block.state, left.block.exit_status) == (over, 7)
        await play(conversation)
        assert (await conversation.verify()).clean


# Passes bytes on between its terminal and a program on one of its own, and reads no input while a file is there.
_RELAY = """
import os, pty, select, sys, tty
hold = sys.argv[1]
pid, master = pty.fork()
if not pid:
    os.execvp(sys.argv[2], sys.argv[2:])
tty.setraw(0)
while True:
    held = os.path.exists(hold)
    ready = select.select([master] if held else [0, master], [], [], 0.05)[0]
    if master in ready:
        try:
            os.write(1, os.read(master, 65536))
        except OSError:
            break
    if 0 in ready:
        # No more than a terminal takes at once: its other side may be waiting for this one to read.
        os.write(master, os.read(0, 1024))
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.needs("zsh", "fish")
@async_test
async def test_a_command_that_does_not_go_in_whole(shell: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _private_root()
    if before is None:
        pytest.skip("no mount namespace may be made here")
    monkeypatch.setattr(submission, "SUBMIT_DEADLINE_MS", 300)
    bare = {"bash": "bash --norc", "zsh": "zsh -f", "fish": "fish --no-config"}[shell]
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        hold = conversation.directory / "hold"
        inside = f"{before} sh -c 'mount -t tmpfs none /tmp; exec {bare}'"
        await started(conversation, shlex.join([sys.executable, "-c", _RELAY, str(hold)]) + f" {inside}")
        assert (await conversation.enter_shell(shell=shell)).how == "typed"
        await play(conversation, shell)
        hold.touch()
        calling = asyncio.ensure_future(conversation.run(f"echo {'x' * 300_000}", timeout_ms=TIMEOUT_MS))
        async for event in conversation.events():
            if event.fields.get("reason") == "input_cut":
                break
        hold.unlink()
        with pytest.raises(blockpty.NoPrompt, match=r"took only \d+ of the \d+ bytes"):
            await calling
        # What the shell has of it is no part of the next.
        await play(conversation, shell)
        cut = [block for block in (await conversation.blocks()).blocks if "xxx" in block.cmd]
        assert [(block.state, block.exit_status, block.degraded) for block in cut] == [("cancelled", 130, None)]
        assert (await conversation.status()).integrity == "ok"
        assert (await conversation.verify()).clean


@pytest.fixture
def far_side(tmp_path: Path) -> Iterator[str]:
    """A command that logs in to an sshd of this test on loopback, where our files cannot be seen."""
    before = _private_root()
    server = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if server is None or before is None or os.geteuid() != 0:
        pytest.skip("needs openssh-server, root and mount namespaces")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    port = free_port()
    (tmp_path / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/user.pub\n"
        "StrictModes no\nUsePAM no\nPermitRootLogin yes\nPrintMotd no\n"
    )
    daemon = subprocess.Popen([server, "-D", "-e", "-f", str(tmp_path / "sshd_config")], stderr=subprocess.PIPE)
    try:
        assert daemon.stderr is not None
        for line in daemon.stderr:
            if b"Server listening" in line:
                break
        else:
            pytest.skip("sshd does not start here")
        yield (
            f"ssh -F none -p {port} -i {tmp_path}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
            f' -o LogLevel=ERROR -t 127.0.0.1 "{before} sh -c \'mount -t tmpfs none /tmp; cd /; exec %s\'"'
        )
    finally:
        daemon.kill()
        daemon.wait()
        if daemon.stderr is not None:
            daemon.stderr.close()


async def prompts(conversation: blockpty.Conversation) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the first prompt and the last one."""
    found = [event.fields async for event in conversation.events(follow=False) if event.type == "prompt"]
    return found[0], found[-1]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.needs("zsh")
@async_test
async def test_a_shell_behind_ssh(shell: str, home: Path, far_side: str) -> None:
    bare = {"bash": "bash --norc", "zsh": "zsh -f"}[shell]
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await started(conversation, far_side % bare)
        with pytest.raises(blockpty.BadRequest, match="ssh"):
            await conversation.enter_shell()
        # The editor of the far side is not known from here: its prompt has to be seen.
        shown = await conversation.wait_for({"regex": r"[#%$] ?$"}, from_cursor=0, timeout_ms=TIMEOUT_MS)
        assert shown.matched
        assert (await conversation.enter_shell(shell)).how == "typed"
        await play(conversation)
        sleeping = await conversation.exec_block("sh -c 'echo started; exec sleep 600'")
        await conversation.wait_for("started", from_cursor=sleeping.cursor)
        assert (await conversation.interrupt(grace_ms=5000)).how == "SIGINT"
        # A program that ignores both keys runs on, and so does ssh.
        stubborn = await conversation.exec_block("sh -c 'trap \"\" INT QUIT; echo started; cat >/dev/null'")
        await conversation.wait_for("started", from_cursor=stubborn.cursor)
        assert (await conversation.interrupt(up_to="KILL", grace_ms=100)).how == "running"
        await conversation.ctrl_d()
        await conversation.wait_for(PROMPT, from_cursor=stubborn.cursor, timeout_ms=TIMEOUT_MS)
        left = await conversation.run("exit 7", timeout_ms=TIMEOUT_MS)
        assert (left.block.state, left.block.exit_status) == ("shell_exited", 7)
        await play(conversation)
        assert (await conversation.verify()).clean
