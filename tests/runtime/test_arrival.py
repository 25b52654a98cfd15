"""Shells that are elsewhere: over ssh to an sshd of the test's own on loopback, and in what stands for a container."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test
from tests.support.podman import podman_container
from tests.support.profile import LONG
from tests.support.ssh_server import SshServer, ssh_server

PROMPT = {"token": "PROMPT"}
END = {"token": "EOF"}
TIMEOUT_MS = 20_000
SHELLS = {"bash": ("bash", "-il"), "zsh": ("zsh", "-il"), "fish": ("fish", "-il")}
CUTS = 5 if LONG else 2
SAID_BY_SSH = re.compile(rb"\r?(?:\n?client_loop|Connection to|Connection reset|Read from)")
SOURCE = "ssh:127.0.0.1"

COMMANDS = (
    ("true", 0, ""),
    ("echo one; A='x y'\nfalse", 1, "one\n"),
    ("printf '%s|' \"$A\" 'it is !! $x' \"tab\there\"; (exit 3)", 3, "x y|it is !! $x|tab\there|"),
    ("cat <<'EOF'\na\\b\nEOF", 0, "a\\b\n"),
    ("for i in 1 2\ndo\n  echo \"ä$i\"\ndone", 0, "ä1\nä2\n"),
    ("nosuchcommand 2>/dev/null", 127, ""),
)


IN_FISH = (
    ("true", 0, ""),
    ("echo one; set A 'x y'\nfalse", 1, "one\n"),
    ("printf '%s|' \"$A\" 'it is !! $x' \"tab\there\"; sh -c 'exit 3'", 3, "x y|it is !! $x|tab\there|"),
    ("for i in 1 2\n  echo \"ä$i\"\nend", 0, "ä1\nä2\n"),
    ("echo " + "x" * 6000, 0, "x" * 6000 + "\n"),
    ("sh -c 'exit 127'", 127, ""),
)


@pytest.fixture(params=["bash", "zsh", "fish"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SshServer]:
    if shutil.which(request.param) is None:
        pytest.skip(f"needs {request.param}")
    with ssh_server(tmp_path, SHELLS[request.param]) as made:
        for folder in (".local/share", ".cache"):
            # Or fish would read all manual pages in the background.
            (made.directory / "home" / folder / "fish" / "generated_completions").mkdir(parents=True)
        (made.directory / "home" / ".zshrc").write_text("PS1='far%% '\n")
        (made.directory / "home" / ".bash_profile").write_text("PS1='far$ '\n")
        yield made


@pytest.fixture
def bash_server(tmp_path: Path) -> Iterator[SshServer]:
    with ssh_server(tmp_path, SHELLS["bash"]) as made:
        yield made


@async_test
async def test_the_far_shell_is_as_exact_as_one_here(server: SshServer, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, env={**server.environment, "LC_TIME": "C.UTF-8"})
        status = await conversation.status()
        actual = (status.source, status.mode, status.integrity, status.tty, status.cwd)
        assert actual == (SOURCE, "idle", "ok", "at_prompt", str(server.directory / "home"))
        for command, code, output in IN_FISH if status.shell == "fish" else COMMANDS:
            result = await conversation.run(command, timeout_ms=TIMEOUT_MS)
            block = result.block
            said = (block.cmd, block.exit_status, block.state, block.degraded, result.output)
            assert said == (command, code, "ended", None, output)
        there = await conversation.run("cd /usr && pwd && echo $TERM $LC_TIME", timeout_ms=TIMEOUT_MS)
        assert there.output == "/usr\nxterm-256color C.UTF-8\n"
        assert (await conversation.run("pwd", cwd="/", timeout_ms=TIMEOUT_MS)).output == "/\n"
        assert (await conversation.status()).cwd == "/"
        # Nothing of ours is on the screen but one line, and nothing is left in the home over there.
        assert "__bpty_put" not in (await conversation.read(0, view="text")).data
        assert not list((server.directory / "home").glob("*bpty*"))
        left = await conversation.run("exit 7", timeout_ms=TIMEOUT_MS)
        # fish marks the end of a command also where that ends the shell.
        over = "ended" if status.shell == "fish" else "shell_exited"
        assert (left.block.state, left.block.exit_status) == (over, 7)
        assert (await conversation.status()).exit == {"status": 7, "signal": None}
        assert (await conversation.verify()).clean


@async_test
async def test_big_output_interactive_programs_and_interrupts(server: SshServer, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, env=server.environment)
        big = await conversation.run("seq 1 200000", timeout_ms=60_000, max_bytes=2_000_000)
        assert big.output == "".join(f"{number}\n" for number in range(1, 200_001))
        session = await conversation.exec_interactive("sh -c 'echo name?; read x; echo hello $x; exit 4'")
        assert (await conversation.wait_for("name?", session_id=session.session_id, timeout_ms=TIMEOUT_MS)).matched
        await conversation.send("Ada\r", session_id=session.session_id)
        await conversation.wait_for(PROMPT, from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
        assert (await conversation.block(session.block_id)).block.exit_status == 4
        sleeping = await conversation.exec_block("sh -c 'echo started; exec sleep 600'")
        await conversation.wait_for("started", from_cursor=sleeping.cursor, timeout_ms=TIMEOUT_MS)
        assert (await conversation.interrupt(grace_ms=5000)).how == "SIGINT"
        assert (await conversation.block(sleeping.block_id)).block.exit_status == 130
        assert (await conversation.run("echo on", timeout_ms=TIMEOUT_MS)).output == "on\n"
        assert (await conversation.verify()).clean


@async_test
async def test_another_engine_takes_it_up(bash_server: SshServer, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        await engine.open("c1", source=SOURCE, env=bash_server.environment, persist=True)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        assert (await conversation.run("echo still", timeout_ms=TIMEOUT_MS)).output == "still\n"
        await conversation.close()
        # It was asked for, and no connection was lost.
        ended = (await conversation.status()).exit
        assert ended is not None and "reason" not in ended
        assert (await conversation.verify()).clean


@async_test(timeout_seconds=120)
async def test_a_connection_that_breaks_is_lost_and_what_was_recorded_is_whole(
    bash_server: SshServer, home: Path
) -> None:
    whole = "".join(f"{number} \u00e4\u20ac \x1b[31mred\x1b[0m\n" for number in range(1, 30_001))
    chance = random.Random(21)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, env=bash_server.environment)
        for _ in range(CUTS):
            begun = await conversation.exec_block(
                "seq 1 30000 | sed $'s/$/ \u00e4\u20ac \\e[31mred\\e[0m/'; sleep 600"
            )
            line = chance.randrange(1, 30_000)
            await conversation.wait_for({"regex": f"^{line} "}, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)
            bash_server.cut()
            over = await conversation.wait_for(END, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)
            assert (over.reason, over.mode) == ("eof", "exited")
            status = await conversation.status()
            assert (status.exit, status.lost) == ({"status": None, "signal": None, "reason": "connection_lost"}, None)
            block = (await conversation.block(begun.block_id)).block
            assert (block.state, block.exit_status, block.signal) == ("connection_lost", None, None)
            end = block.span[1]
            assert end is not None
            shown = conversation.live.stream.read(block.span[0], end - block.span[0])
            # ssh itself says that the connection is closed, behind what came over it.
            came = SAID_BY_SSH.split(shown)[0].replace(b"\r\n", b"\n")
            assert whole.encode().startswith(came) and came.count(b"\n") >= line
            with pytest.raises(blockpty.ConnectionLost):
                await conversation.run("echo no")
            # The same way again, in the same record.
            await conversation.reset()
            assert (await conversation.run("echo back", timeout_ms=TIMEOUT_MS)).output == "back\n"
        assert (await conversation.verify()).clean


@async_test
async def test_questions_on_the_way_are_for_a_person(tmp_path: Path, home: Path) -> None:
    with ssh_server(tmp_path, SHELLS["bash"], checking="ask") as made:
        # The key has a passphrase as well.
        key = str(tmp_path / "user")
        change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "open sesame", "-f", key]
        await asyncio.to_thread(subprocess.run, change, check=True)
        async with blockpty.Engine(home) as engine:
            with pytest.raises(blockpty.NoPrompt, match="continue connecting") as asked:
                await engine.open("c1", source=SOURCE, env=made.environment)
            assert (asked.value.details["tty"], asked.value.details["waits_for_answer"]) == ("reads_line", True)
            conversation = await engine.conversation("c1")
            listed = (await engine.list()).conversations[0]
            assert (listed.mode, listed.needs) == ("starting", ["line"])
            assert "fingerprint" in (await conversation.screen()).content
            await conversation.send("yes\r", author="user")
            hidden = await conversation.wait_for(PROMPT, timeout_ms=TIMEOUT_MS)
            assert (hidden.reason, hidden.mode, hidden.tty) == ("password", "starting", "password")
            assert "passphrase" in (await conversation.screen()).content
            await conversation.send("open sesame\r", author="user")
            assert (await conversation.wait_for(PROMPT, timeout_ms=TIMEOUT_MS)).matched
            assert (await conversation.run("echo in", timeout_ms=TIMEOUT_MS)).output == "in\n"
            assert "sesame" not in conversation.layout.timeline.read_text()
            assert (await conversation.verify()).clean


@async_test
async def test_a_shell_that_takes_no_hooks_is_one_session(tmp_path: Path, home: Path) -> None:
    with ssh_server(tmp_path, ("sh", "-i")) as made:
        async with blockpty.Engine(home) as engine:
            conversation = await engine.open("c1", source=SOURCE, env=made.environment)
            status = await conversation.status()
            assert (status.mode, status.integrity) == ("interactive", "degraded")
            assert status.integrity_reason == "no_hooks: the commands behind ssh are not marked"
            with pytest.raises(blockpty.InteractiveSessionActive):
                await conversation.run("ls")
            sent = await conversation.send("echo $((6*7))\r")
            assert (await conversation.wait_for("42", from_cursor=sent.cursor, timeout_ms=TIMEOUT_MS)).matched
            await conversation.send("exit 3\r")
            await conversation.wait_for(END, timeout_ms=TIMEOUT_MS)
            block = (await conversation.block("b1")).block
            assert (block.kind, block.state, block.exit_status, block.degraded) == ("session", "ended", 3, "no_hooks")
            assert (await conversation.verify()).clean


@async_test
async def test_a_host_that_cannot_be_reached_leaves_no_conversation(bash_server: SshServer, home: Path) -> None:
    bash_server.daemon.kill()
    bash_server.daemon.wait()
    async with blockpty.Engine(home) as engine:
        with pytest.raises(blockpty.SpawnFailed, match="ssh ended") as refused:
            await engine.open("c1", source=SOURCE, env=bash_server.environment)
        assert "Connection refused" in refused.value.details["printed"]
        assert (await engine.list()).conversations == []


@async_test
async def test_no_name_is_an_option(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        for text in ("ssh:-oProxyCommand=x", "ssh:u@-h", "container:docker/--privileged"):
            with pytest.raises(blockpty.BadRequest):
                await engine.open("c1", source=text)
        with pytest.raises(blockpty.BadRequest, match="cwd"):
            await engine.open("c1", source="ssh:host", cwd="/")


@pytest.mark.parametrize("shell", ["bash", "zsh", "sh"])
@async_test
async def test_a_container(shell: str, tmp_path: Path, home: Path) -> None:
    """The runtime is a script that stands for docker: it checks its arguments, and runs one shell with a bare PATH."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    inside = tmp_path / "inside"
    inside.mkdir()
    for program in {shell, "sh", "stty", "seq", "cat", "ls"}:
        (inside / program).symlink_to(str(shutil.which(program)))
    (tmp_path / "docker").write_text(
        '#!/bin/sh\n[ "$1 $2 $3" = "exec -it -e" ] && [ "$4 $5" = "TERM=xterm-256color web" ] || exit 125\nshift 5\n'
        f"cd {inside}; exec env -i PATH={inside} TERM=xterm-256color HOME={inside} \"$@\"\n"
    )
    (tmp_path / "docker").chmod(0o755)
    async with blockpty.Engine(home) as engine:
        source = "container:docker/web"
        conversation = await engine.open("c1", source=source, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
        status = await conversation.status()
        if shell == "sh":
            assert (status.source, status.mode, status.integrity) == (source, "interactive", "degraded")
        else:
            assert (status.source, status.mode, status.integrity) == (source, "idle", "ok")
            for command, code, output in COMMANDS:
                result = await conversation.run(command, timeout_ms=TIMEOUT_MS)
                assert (result.block.exit_status, result.output) == (code, output)
            left = await conversation.run("exit 7", timeout_ms=TIMEOUT_MS)
            assert (left.block.state, left.block.exit_status) == ("shell_exited", 7)
        assert json.loads(conversation.layout.meta.read_bytes())["open"]["source"] == source
        assert (await conversation.verify()).clean


@async_test
async def test_a_container_of_podman(tmp_path: Path, home: Path) -> None:
    with podman_container(tmp_path) as name:
        async with blockpty.Engine(home) as engine:
            conversation = await engine.open("c1", source=f"container:podman/{name}")
            status = await conversation.status()
            assert (status.shell, status.mode, status.integrity, status.cwd) == ("bash", "idle", "ok", "/")
            for command, code, output in COMMANDS:
                result = await conversation.run(command, timeout_ms=TIMEOUT_MS)
                actual = (result.block.exit_status, result.block.degraded, result.output)
                assert actual == (code, None, output)
            big = await conversation.run("seq 1 20000", timeout_ms=TIMEOUT_MS, max_bytes=1_000_000)
            assert big.output == "".join(f"{number}\n" for number in range(1, 20_001))
            left = await conversation.run("exit 7", timeout_ms=TIMEOUT_MS)
            assert (left.block.state, left.block.exit_status) == ("shell_exited", 7)
            assert (await conversation.status()).exit == {"status": 7, "signal": None}
            assert (await conversation.verify()).clean
