"""Shells behind ssh that a tmux over there keeps, where there is no blockpty: the shell survives cut connections."""

from __future__ import annotations

import asyncio
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test
from tests.support.far_sessions import SOURCE, TIMEOUT_MS, connection, run
from tests.support.ssh_server import RUNS_COMMANDS, SshServer, ssh_server

PROMPT = {"token": "PROMPT"}
ASKS = r"""python3 -c '
import os, select, termios, tty
usual = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"\x1b[c")
got = b""
while select.select([0], [], [], 1)[0]:
    got += os.read(0, 100)
termios.tcsetattr(0, termios.TCSANOW, usual)
print(got.count(b"?"), "answers")'"""
Tmux = Callable[..., str]

pytestmark = pytest.mark.needs("tmux")


@pytest.fixture
def far(tmp_path: Path) -> Iterator[tuple[SshServer, Tmux]]:
    """Give a server whose user has a tmux of this test's own, and what runs a command of that."""
    # The path of its socket must be short.
    with tempfile.TemporaryDirectory(prefix="bptm") as directory:

        def tmux(*arguments: str) -> str:
            env = {"TMUX_TMPDIR": directory, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
            done = subprocess.run(["tmux", *arguments], env=env, capture_output=True, text=True, check=False)
            return done.stdout

        with ssh_server(tmp_path, ("env", f"TMUX_TMPDIR={directory}", "SHELL=/bin/bash", *RUNS_COMMANDS)) as server:
            # What people configure, and what must end neither the session too early nor keep it for ever.
            (tmp_path / "home" / ".tmux.conf").write_text(
                "set -g destroy-unattached on\nset -g remain-on-exit on\nset -g mouse on\nset -g base-index 1\n"
            )
            try:
                yield server, tmux
            finally:
                tmux("kill-server")


async def drawn_again(conversation: blockpty.Conversation, since: int, rows: int | None = None) -> None:
    """Return when a connection has been made since an event, and the pane has had another size then; or this one.

    It loses a row of its 24 for a moment after each new connection.
    """
    while True:
        seams = [event.fields async for event in conversation.events(since, follow=False) if event.type == "seam"]
        again = [number for number, one in enumerate(seams) if one["reason"] == "reconnected"]
        after = [one["rows"] for one in seams[again[-1] + 1 :]] if again else []
        if after and rows in (None, *after):
            return
        await asyncio.sleep(0.01)


@async_test(timeout_seconds=110)
async def test_the_shell_survives_its_connections(far: tuple[SshServer, Tmux], home: Path) -> None:
    server, tmux = far
    random.seed(7)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, resume="always", env=server.environment)
        status = await conversation.status()
        assert status.connection is not None and status.connection["state"] == "up"
        assert "tmux keeps the shell" in status.connection["reason"]
        await run(conversation, "cd /usr; kept=here; false", 1, "")
        # tmux answers what its programs ask, and no second answer is typed.
        assert "1 answers" in (await conversation.run(ASKS, timeout_ms=TIMEOUT_MS)).output
        for number in range(1, 5):
            prints = f"for i in $(seq 1 400); do echo run {number} line $i; done; sleep 0.3; (exit {number})"
            begun = await conversation.exec_block(prints)
            await conversation.wait_for(
                {"idle_ms": 60_000}, from_cursor=begun.cursor, max_bytes=random.randrange(200, 3000)
            )
            since = conversation.live.state.next_event
            server.cut()
            await connection(conversation, "up", number + 1)
            await conversation.wait_for(PROMPT, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)
            # Its end may have come while there was no connection; then it is not known, and never a wrong one.
            block = (await conversation.block(begun.block_id)).block
            assert (block.exit_status in (number, None), block.degraded is not None) == (True, True)
            # What the pane has kept is drawn anew, each line once.
            await drawn_again(conversation, since, rows=24)
            drawn = str((await conversation.screen(scrollback=1000)).content).splitlines()
            await run(conversation, "echo $kept $PWD; (exit 9)", 9, "here /usr\n")
            assert drawn.count(f"run {number} line 399") == 1 and drawn.count(f"run {number} line 17") == 1
        assert (await conversation.verify()).clean
        events = [event async for event in conversation.events(follow=False)]
        assert [event.fields["reason"] for event in events if event.type == "seam"].count("reconnected") == 4
        assert tmux("list-sessions", "-F", "#{session_name}").startswith("blockpty-")
        await conversation.close()
        # The shell over there ends with the conversation.
        assert tmux("list-sessions") == ""


@async_test(timeout_seconds=110)
async def test_what_is_typed_and_the_size_reach_the_pane_after_a_cut(far: tuple[SshServer, Tmux], home: Path) -> None:
    server, tmux = far
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, resume="auto", env=server.environment)
        started = await conversation.exec_block("echo be''gun; cat")
        assert (await conversation.wait_for("begun", from_cursor=started.cursor, timeout_ms=TIMEOUT_MS)).matched
        with server.unreachable():
            await connection(conversation, "lost")
            assert (await conversation.status()).mode == "block_running"
            await conversation.send("typed without a connection\r")
        await connection(conversation, "up", 2)
        typed = {"regex": "typed without"}
        found = await conversation.wait_for(typed, from_cursor=started.cursor, timeout_ms=TIMEOUT_MS)
        assert found.matched
        await conversation.ctrl_d()
        await conversation.wait_for(PROMPT, from_cursor=found.cursor, timeout_ms=TIMEOUT_MS)
        await conversation.resize(101, 31)
        await conversation.wait_for({"idle_ms": 500}, timeout_ms=TIMEOUT_MS)
        await run(conversation, "stty size", 0, "31 101\n")
        # Its end is the end of the pane, and no lost connection; what it returned is not known.
        await conversation.exec_block("exit 5")
        await conversation.wait_for({"token": "EOF"}, timeout_ms=TIMEOUT_MS)
        assert (await conversation.status()).exit == {"status": None, "signal": None}
        assert (await conversation.verify()).clean
        assert not tmux("list-sessions", "-F", "#{session_name}").startswith("blockpty-")


@async_test(timeout_seconds=110)
async def test_a_session_that_ended_while_there_was_no_connection_is_over(
    far: tuple[SshServer, Tmux], home: Path
) -> None:
    server, tmux = far
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, resume="auto", env=server.environment)
        with server.unreachable():
            await connection(conversation, "lost")
            tmux("kill-server")
        while (how := (await conversation.status()).exit) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert how == {"status": None, "signal": None}
        await conversation.reset()
        await run(conversation, "echo again; false", 1, "again\n")


@async_test(timeout_seconds=110)
async def test_connections_that_are_cut_at_once_leave_the_size_as_it_was(
    far: tuple[SshServer, Tmux], home: Path
) -> None:
    server, tmux = far
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, resume="always", env=server.environment)
        await run(conversation, "stty size", 0, "24 80\n")
        for number in range(2, 7):
            since = conversation.live.state.next_event
            server.cut()
            await connection(conversation, "up", number)
            if number % 2:
                # While it has the other size, or has just got the usual one again.
                await drawn_again(conversation, since)
        await drawn_again(conversation, since, rows=24)
        # tmux itself gives a size to the shell a quarter of a second later where it has just given another.
        while (await conversation.run("stty size", timeout_ms=TIMEOUT_MS)).output != "24 80\n":
            pass
        sizes = tmux("list-panes", "-a", "-F", "#{pane_width}x#{pane_height}")
        assert sizes == "80x24\n"
        await conversation.close()


@async_test(timeout_seconds=110)
async def test_an_ssh_that_cannot_be_started_for_a_while_is_tried_again(
    far: tuple[SshServer, Tmux], home: Path
) -> None:
    server, _ = far
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, resume="always", env=server.environment)
        await run(conversation, "kept=here", 0, "")
        with server.no_client():
            server.cut()
            while "cannot be started" not in str((await conversation.status()).connection):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await connection(conversation, "up", 2)
        await run(conversation, "echo $kept", 0, "here\n")
        await conversation.close()
