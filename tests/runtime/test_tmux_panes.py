"""Panes of tmux as sources: the exact seam, sizes, other clients, the alternate screen, pauses, and every end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import blockpty
from blockpty.engine.states import ShellState
from blockpty.runtime.tmux_panes import follow_size
from tests.support.async_tests import async_test
from tests.support.tmux_server import TmuxServer, shown, tmux_server

END = {"token": "EOF"}
TIMEOUT_MS = 30_000
# 100 by hand: BLOCKPTY_ATTACHED=100.
ATTACHED = int(os.environ.get("BLOCKPTY_ATTACHED", "5"))
SETTLED = {"idle_ms": 300}


@pytest.fixture
def tmux() -> Iterator[TmuxServer]:
    with tmux_server() as server:
        yield server


def started(tmux: TmuxServer, name: str, command: str = "bash --norc", cols: int = 80, rows: int = 24) -> None:
    tmux("new-session", "-d", "-s", name, "-x", str(cols), "-y", str(rows), command)


async def opened(engine: blockpty.Engine, tmux: TmuxServer, target: str, name: str = "c1") -> blockpty.Conversation:
    return await engine.open(name, source=f"tmux:{target}", env=tmux.environment)


async def screen_rows(conversation: blockpty.Conversation) -> list[str]:
    content = (await conversation.screen()).content
    return [row.rstrip() for row in str(content).split("\n")]


async def same_screen(conversation: blockpty.Conversation, tmux: TmuxServer, target: str) -> None:
    """Check that our screen is that of tmux, once both are quiet."""
    for _ in range(20):
        await conversation.wait_for(SETTLED, from_cursor=conversation.cursor, timeout_ms=TIMEOUT_MS)
        theirs, ours = tmux.rows(target), await screen_rows(conversation)
        if (blank := len(theirs) - len(ours)) > 0:
            ours += [""] * blank
        status = await conversation.status()
        if (ours, (status.cols, status.rows)) == (theirs, tmux.size(target)):
            break
    assert (ours, (status.cols, status.rows)) == (theirs, tmux.size(target))


async def seams(conversation: blockpty.Conversation) -> list[str]:
    events = [event async for event in conversation.events(follow=False)]
    return [event.fields["reason"] for event in events if event.type == "seam"]


@async_test(timeout_seconds=110 if ATTACHED == 5 else 60 * ATTACHED)
async def test_the_seam_is_exact_while_the_pane_prints(tmux: TmuxServer, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        for number in range(ATTACHED):
            target = f"t{number}"
            started(tmux, target)
            tmux("send-keys", "-t", target, "seq 1 200000; echo e-n-d", "Enter")
            # Some way into it, each time another.
            printed = 2000 * 3**number if ATTACHED == 5 else 190_000 * number // ATTACHED
            assert shown(lambda: int(tmux.value(target, "history_size")) > printed, True)  # noqa: B023
            conversation = await opened(engine, tmux, target, target)
            over = await conversation.wait_for({"regex": "^e-n-d$"}, from_cursor=0, timeout_ms=TIMEOUT_MS)
            assert over.matched
            await conversation.wait_for(SETTLED, timeout_ms=TIMEOUT_MS)
            text = (await conversation.read(0, view="text", max_bytes=8 << 20)).data
            lines = [line.rstrip() for line in text.rstrip().split("\n")]
            assert lines == tmux.lines(target)
            assert [line for line in lines if line.isdigit()] == [str(line) for line in range(1, 200_001)]
            assert await seams(conversation) == ["attached"]
            await conversation.close()
            tmux("kill-session", "-t", target)


@async_test
async def test_without_hooks_it_is_one_degraded_session(tmux: TmuxServer, home: Path) -> None:
    started(tmux, "work")
    async with blockpty.Engine(home) as engine:
        conversation = await opened(engine, tmux, "work")
        status = await conversation.status()
        assert (status.source, status.mode, status.integrity) == ("tmux:work", "interactive", "degraded")
        assert status.integrity_reason == "no_hooks: the commands behind tmux are not marked"
        with pytest.raises(blockpty.InteractiveSessionActive, match="enter_shell"):
            await conversation.run("ls")
        sent = await conversation.send("echo $((6*7)) ä€\r")
        assert (await conversation.wait_for("42 ä€", from_cursor=sent.cursor, timeout_ms=TIMEOUT_MS)).matched
        await same_screen(conversation, tmux, "work")
        await conversation.send("exit\r")
        await conversation.wait_for(END, timeout_ms=TIMEOUT_MS)
        block = (await conversation.block("b1")).block
        actual = (block.kind, block.state, block.exit_status, block.degraded)
        assert actual == ("session", "ended", None, "no_hooks")
        assert (await conversation.status()).exit == {"status": None, "signal": None}
        assert (await conversation.verify()).clean


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.needs("zsh")
@async_test
async def test_a_shell_in_the_pane_gets_hooks_and_its_blocks_are_exact(
    shell: str, tmux: TmuxServer, home: Path
) -> None:
    started(tmux, "work", {"bash": "bash --norc", "zsh": "zsh -f"}[shell])
    async with blockpty.Engine(home) as engine:
        conversation = await opened(engine, tmux, "work")
        assert (await conversation.wait_for({"regex": r"[#%$] ?$"}, from_cursor=0, timeout_ms=TIMEOUT_MS)).matched
        assert (await conversation.enter_shell(shell)).how == "typed"
        assert (await conversation.status()).integrity == "ok"
        for command, code, output in (("true", 0, ""), ("echo one; false", 1, "one\n"), ("cd /usr; pwd", 0, "/usr\n")):
            result = await conversation.run(command, timeout_ms=TIMEOUT_MS)
            assert (result.block.exit_status, result.output, result.block.degraded) == (code, output, None)
        big = await conversation.run("seq 1 20000", timeout_ms=TIMEOUT_MS, max_bytes=1_000_000)
        assert big.output == "".join(f"{number}\n" for number in range(1, 20_001))
        # Hooks of an earlier attachment are replaced.
        (client,) = tmux.control_clients()
        tmux("detach-client", "-t", client)
        await conversation.wait_for(END, timeout_ms=TIMEOUT_MS)
        await conversation.reset()
        assert (await conversation.status()).integrity == "degraded"
        await conversation.enter_shell(shell)
        again = await conversation.run("pwd; (exit 3)", timeout_ms=TIMEOUT_MS)
        assert (again.block.exit_status, again.output, again.block.degraded) == (3, "/usr\n", None)
        assert (await conversation.status()).integrity == "ok"
        assert (await conversation.verify()).clean


@async_test
async def test_every_byte_that_is_typed_arrives(tmux: TmuxServer, home: Path) -> None:
    started(tmux, "work", "sh -c 'stty raw -echo; echo ready; head -c 256 | od -An -v -tx1 -w256; cat'")
    async with blockpty.Engine(home) as engine:
        conversation = await opened(engine, tmux, "work")
        await conversation.wait_for("ready", from_cursor=0, timeout_ms=TIMEOUT_MS)
        # Another client looks at the history meanwhile: keys are for the program all the same.
        tmux("copy-mode", "-t", "work")
        await conversation.send(bytes(range(256)))
        wanted = " ".join(f"{byte:02x}" for byte in range(256))
        assert (await conversation.wait_for("fd fe ff", from_cursor=0, timeout_ms=TIMEOUT_MS)).matched
        text = (await conversation.read(0, view="text")).data
        assert wanted in text
        assert tmux.value("work", "pane_in_mode") == "0"


@async_test
async def test_other_clients_keep_their_size_and_their_window(tmux: TmuxServer, home: Path) -> None:
    started(tmux, "work", "bash --norc", 100, 30)
    tmux("new-window", "-d", "-t", "work:", "cat")
    tmux.client("work", 120, 40)
    assert shown(lambda: tmux.size("work:0"), (120, 39))
    async with blockpty.Engine(home) as engine:
        conversation = await opened(engine, tmux, "work:1.0")
        status = await conversation.status()
        assert (status.cols, status.rows) == tmux.size("work:1")
        assert tmux.value("work", "window_index") == "0"
        await conversation.resize(60, 20)
        await same_screen(conversation, tmux, "work:1")
        # No client shows the other window; it gets the size of the client that there is.
        assert (tmux.size("work:0"), tmux.size("work:1")) == ((120, 39), (120, 39))
        assert "[work]" not in (await conversation.read(0, view="text")).data
        await conversation.close()
        assert tmux.size("work:0") == (120, 39) and tmux.value("work", "window_index") == "0"
        assert (await conversation.verify()).clean


@async_test
async def test_alone_it_gives_the_pane_its_size(tmux: TmuxServer, home: Path) -> None:
    started(tmux, "work", "bash --norc", 100, 30)
    async with blockpty.Engine(home) as engine:
        conversation = await opened(engine, tmux, "work")
        assert tmux.size("work") == (100, 30)
        await conversation.resize(60, 20)
        assert shown(lambda: tmux.size("work"), (60, 20))
        await same_screen(conversation, tmux, "work")
        # A second pane takes some of it, and gives it back when it ends.
        tmux("split-window", "-h", "-t", "work", "cat")
        assert shown(lambda: tmux.size("work:0.0")[0] < 60, True)
        await same_screen(conversation, tmux, "work:0.0")
        tmux("kill-pane", "-t", "work:0.1")
        await same_screen(conversation, tmux, "work:0.0")
        assert (await conversation.verify()).clean


@async_test
async def test_a_storm_of_sizes_ends_with_the_screen_of_tmux(tmux: TmuxServer, home: Path) -> None:
    started(tmux, "work", "bash --norc")
    async with blockpty.Engine(home) as engine:
        conversation = await opened(engine, tmux, "work")
        await conversation.send("PS1='$ '; for i in $(seq 3000); do echo \"line $i of a text that is long\"; done\r")
        for number in range(40):
            tmux("resize-window", "-t", "work", "-x", str(40 + number * 13 % 90), "-y", str(10 + number * 7 % 40))
        await conversation.wait_for({"regex": "^line 3000 "}, from_cursor=0, timeout_ms=TIMEOUT_MS)
        await same_screen(conversation, tmux, "work")
        assert "resized" in await seams(conversation)
        assert (await conversation.verify()).clean


@async_test
async def test_the_alternate_screen_has_no_history_and_is_left_with_a_new_seam(tmux: TmuxServer, home: Path) -> None:
    program = "for i in $(seq 1 50); do echo main $i; done; printf \"\\033[?1049h\\033[5;5Hfull\"; read x; " \
              "printf \"\\033[?1049l\"; echo back; cat"  # fmt: skip
    started(tmux, "work", f"bash -c '{program}'")
    assert shown(lambda: tmux.value("work", "alternate_on"), "1")
    async with blockpty.Engine(home) as engine:
        conversation = await opened(engine, tmux, "work")
        assert (await conversation.screen()).alt_screen
        await same_screen(conversation, tmux, "work")
        assert "main" not in (await conversation.read(0, view="text")).data
        await conversation.enter()
        await conversation.wait_for("back", from_cursor=0, timeout_ms=TIMEOUT_MS)
        await same_screen(conversation, tmux, "work")
        assert not (await conversation.screen()).alt_screen
        assert await seams(conversation) == ["attached", "alternate_left"]
        assert "main 1\n" in (await conversation.read(0, view="text")).data
        assert (await conversation.verify()).clean


@async_test
async def test_after_a_pause_the_seam_is_redone_with_a_reset(tmux: TmuxServer, home: Path) -> None:
    started(tmux, "work", "bash --norc")
    async with blockpty.Engine(home) as engine:
        conversation = await opened(engine, tmux, "work")
        await conversation.send("PS1='$ '; seq 1 30000; echo e-n-d\r")
        (client,) = tmux.control_clients()
        for _ in range(5):
            tmux("refresh-client", "-t", client, "-A", f"{tmux.value('work', 'pane_id')}:pause")
        await conversation.wait_for({"regex": "^e-n-d$"}, from_cursor=0, timeout_ms=TIMEOUT_MS)
        await same_screen(conversation, tmux, "work")
        found = await seams(conversation)
        assert found[0] == "attached" and set(found[1:]) == {"paused"}
        # Behind the last reset stands all that the pane has, as it stands in tmux.
        raw = conversation.live.stream.read(0, conversation.cursor)
        begin = raw.rindex(b"\x1bc")
        text = (await conversation.read(begin, view="text", max_bytes=8 << 20)).data
        assert [line.rstrip() for line in text.rstrip().split("\n")] == tmux.lines("work")
        assert (await conversation.verify()).clean


@async_test
async def test_marks_that_were_dropped_in_a_pause_are_made_up_for(tmux: TmuxServer, home: Path) -> None:
    started(tmux, "work", "bash --norc")
    async with blockpty.Engine(home) as engine:
        conversation = await opened(engine, tmux, "work")
        await conversation.wait_for({"regex": r"[#$] ?$"}, from_cursor=0, timeout_ms=TIMEOUT_MS)
        await conversation.enter_shell("bash")
        (client,), pane = tmux.control_clients(), tmux.value("work", "pane_id")
        for _ in range(3):
            begun = await conversation.exec_block("seq 1 20000; echo e-n-d")
            for _ in range(3):
                tmux("refresh-client", "-t", client, "-A", f"{pane}:pause")
            assert shown(lambda: "e-n-d" in tmux.rows("work"), True)
            await same_screen(conversation, tmux, "work")
            if (await conversation.status()).mode != "idle":
                await conversation.ctrl_c()
                await conversation.wait_for({"token": "PROMPT"}, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)
            after = await conversation.run("echo on; (exit 5)", timeout_ms=TIMEOUT_MS)
            assert (after.output, after.block.exit_status, after.block.degraded) == ("on\n", 5, None)
        assert "paused" in await seams(conversation)
        assert (await conversation.status()).integrity == "ok"
        assert (await conversation.verify()).clean


@async_test
async def test_a_detached_client_and_a_dead_server_are_lost_connections(tmux: TmuxServer, home: Path) -> None:
    started(tmux, "work", "bash --norc")
    async with blockpty.Engine(home) as engine:
        conversation = await opened(engine, tmux, "work")
        await conversation.send("echo before\r")
        await conversation.wait_for({"regex": "^before$"}, from_cursor=0, timeout_ms=TIMEOUT_MS)
        (client,) = tmux.control_clients()
        tmux("detach-client", "-t", client)
        await conversation.wait_for(END, timeout_ms=TIMEOUT_MS)
        lost = {"status": None, "signal": None, "reason": "connection_lost"}
        assert (await conversation.status()).exit == lost
        with pytest.raises(blockpty.ConnectionLost):
            await conversation.send("x")
        # The pane has gone on, and the next attachment shows it.
        tmux("send-keys", "-t", "work", "echo between", "Enter")
        again = await conversation.reset()
        assert again.cursor > 0
        await same_screen(conversation, tmux, "work")
        cursor = conversation.cursor
        os.kill(int(tmux.value("work", "pid")), signal.SIGKILL)
        await conversation.wait_for(END, from_cursor=cursor, timeout_ms=TIMEOUT_MS)
        assert (await conversation.status()).exit == lost
        assert [block.state for block in (await conversation.blocks()).blocks] == ["connection_lost"] * 2
        with pytest.raises(blockpty.SpawnFailed, match="tmux has no pane"):
            await conversation.reset()
        assert (await conversation.verify()).clean


@async_test
async def test_close_leaves_the_pane_and_another_engine_takes_it_up(tmux: TmuxServer, home: Path) -> None:
    started(tmux, "work", "bash --norc")
    async with blockpty.Engine(home) as engine:
        await engine.open("c1", source="tmux:work", env=tmux.environment, persist=True)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        tmux("resize-window", "-t", "work", "-x", "70", "-y", "20")
        await same_screen(conversation, tmux, "work")
        await conversation.close()
        ended = (await conversation.status()).exit
        assert ended is not None and "reason" not in ended
        assert tmux.value("work", "pane_dead") == "0" and shown(tmux.control_clients, [])
        assert (await conversation.verify()).clean


@async_test
async def test_what_is_no_pane(tmux: TmuxServer, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        for target in ("nosuch", "kept:7", "%99"):
            with pytest.raises(blockpty.SpawnFailed, match="tmux has no pane"):
                await opened(engine, tmux, target)
        for target in ("-f", "a\nb"):
            with pytest.raises(blockpty.BadRequest):
                await opened(engine, tmux, target)
        with pytest.raises(blockpty.SpawnFailed):
            await engine.open("c1", source="tmux:kept", env={"TMUX_TMPDIR": str(home)})
        assert (await engine.list()).conversations == []


@async_test
async def test_a_client_opens_one_too(tmux: TmuxServer, home: Path) -> None:
    # It gives its own directory to shells of this machine; a pane has one already.
    started(tmux, "w", "cat")
    async with blockpty.Client(home) as client:
        async with client.open("c1", source="tmux:w", env=tmux.environment) as conversation:
            found = await conversation.send_line("from here", match="from here", timeout_ms=TIMEOUT_MS)
            assert found.matched and (await conversation.status()).source == "tmux:w"
        async with client.open("c2", source="exec:pwd") as conversation:
            await conversation.wait_for(END, timeout_ms=TIMEOUT_MS)
            assert (await conversation.read(block_id="b1")).data == f"{os.getcwd()}\n"


@pytest.mark.parametrize(("asked_at", "sizes"), [(90, [(120, 39)]), (100, [(120, 39), (60, 20)])])
@async_test
async def test_only_a_size_that_was_asked_for_behind_the_mark_comes_again(
    asked_at: int, sizes: list[tuple[int, int]]
) -> None:
    state = SimpleNamespace(shell=ShellState.IDLE, seam={"number": 3, "cols": 120, "rows": 39}, classified=100)
    state.size = (60, 20)
    given = []

    async def resize(name: str, cols: int, rows: int, **more: Any) -> None:
        state.size = cols, rows
        given.append(state.size)

    async def changed() -> None:
        state.shell = ShellState.EXITED

    live = SimpleNamespace(state=state, subscribers=SimpleNamespace(changed=changed), pump=lambda: False)
    host = SimpleNamespace(resize=resize)
    channel = SimpleNamespace(id="c1", epoch=1, live=live, host=host, requested_size=((60, 20), asked_at))
    await follow_size(cast("Any", channel))
    assert given == sizes
