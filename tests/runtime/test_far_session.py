"""Shells behind ssh that survive their connection: cut at any moment, the stream is that of the far side."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import blockpty
from blockpty.host.client import HostClient
from tests.support.async_tests import async_test
from tests.support.delayed_link import FAR, delayed_link
from tests.support.far_sessions import SOURCE, TIMEOUT_MS, connection, record_of, run
from tests.support.profile import LONG
from tests.support.ssh_server import RUNS_COMMANDS, SshServer, install, ssh_server

# 200 by hand: BLOCKPTY_CUTS=200.
CUTS = int(os.environ.get("BLOCKPTY_CUTS", "24" if LONG else "8"))
# Of more than one byte, and in colour, so that many cuts are within a character or a sequence.
PRINTS = r"""for i in $(seq 1 1500); do printf '\e[3%dmä€😀 %d\e[0m\n' $((i%8)) $i; done; (exit 7)"""
PRINTED = "".join(f"ä€😀 {number}\n" for number in range(1, 1501))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    with ssh_server(tmp_path, ("env", f"PATH={tmp_path}/bin:/usr/bin:/bin", *RUNS_COMMANDS)) as made:
        yield made


@asynccontextmanager
async def far_side(server: SshServer) -> AsyncIterator[Path]:
    """Install blockpty there, and leave nothing running; the value is the directory of the conversations there."""
    conversations = install(server)
    try:
        yield conversations
    finally:
        home = conversations.parent
        if home.exists():
            host = await HostClient.connect(home)
            for one in await host.list():
                await host.close(one.conversation)
            host.leave()


async def live(there: Path) -> int:
    """Return how many shells run on the far side."""
    host = await HostClient.connect(there.parent)
    try:
        return len(await host.list())
    finally:
        host.leave()


@pytest.mark.parametrize("cuts", [4, pytest.param(CUTS, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
@async_test(timeout_seconds=890)
async def test_a_cut_connection_neither_loses_nor_doubles_a_byte(cuts: int, server: SshServer, home: Path) -> None:
    random.seed(cuts)
    async with far_side(server) as there, blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, resume="always", env=server.environment)
        assert (await conversation.status()).integrity == "ok"
        await run(conversation, "cd /usr; pwd; false", 1, "/usr\n")
        for number in range(1, cuts + 1):
            running = asyncio.ensure_future(run(conversation, PRINTS, 7, PRINTED))
            if number % 3 == 0:
                # Also while the input is under way, or the prompt is drawn.
                for _ in range(random.randrange(100)):
                    await asyncio.sleep(0)
            else:
                begin = conversation.cursor
                end = begin + random.randrange(200, 3000)
                await conversation.wait_for({"idle_ms": 60_000}, from_cursor=begin, max_bytes=end - begin)
            server.cut()
            await connection(conversation, "up", number + 1)
            await running
        await run(conversation, "pwd; (exit 9)", 9, "/usr\n")
        (far,) = there.iterdir()
        near, said = record_of(conversation.directory), record_of(far)
        # What ssh has said before it was connected stands in front.
        assert near.endswith(said) and near[: -len(said)].count(b"\n") <= 1
        assert (await conversation.verify()).clean
        assert {block.state for block in (await conversation.blocks()).blocks} == {"ended"}
        await conversation.close()
        assert "connection_lost" not in str((await conversation.status()).exit)


@async_test(timeout_seconds=100)
async def test_what_is_typed_while_there_is_no_connection_arrives_once(server: SshServer, home: Path) -> None:
    async with far_side(server) as there, blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, resume="auto", env=server.environment)
        started = await conversation.exec_block("echo be''gun; cat")
        assert (await conversation.wait_for("begun", from_cursor=started.cursor, timeout_ms=TIMEOUT_MS)).matched
        with server.unreachable():
            await connection(conversation, "lost")
            status = await conversation.status()
            assert (status.mode, status.exit) == ("block_running", None)
            assert status.connection is not None and status.connection["reason"]
            for word in ("one", "two", "three"):
                await conversation.send(f"{word}\r")
            with server.no_client():
                while "cannot be started" not in str((await conversation.status()).connection):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await conversation.resize(101, 31)
            await conversation.ctrl_d()
        await connection(conversation, "up", 2)
        await conversation.wait_for({"token": "PROMPT"}, from_cursor=started.cursor, timeout_ms=TIMEOUT_MS)
        block = (await conversation.block(started.block_id)).block
        assert (block.state, block.exit_status, block.degraded) == ("ended", 0, None)
        text = (await conversation.read(block_id=started.block_id, view="text")).data
        assert [text.count(word) for word in ("one", "two", "three")] == [2, 2, 2]
        await run(conversation, "stty size", 0, "31 101\n")
        # Another shell there takes the place of the first one.
        await conversation.reset()
        await run(conversation, "echo one; false", 1, "one\n")
        assert await live(there) == 1
        # A clean end is the end of the far shell, and is no lost connection.
        await conversation.exec_block("exit 5")
        await conversation.wait_for({"token": "EOF"}, timeout_ms=TIMEOUT_MS)
        assert (await conversation.status()).exit == {"status": 5, "signal": None}
        assert (await conversation.verify()).clean
        assert await live(there) == 0


@async_test(timeout_seconds=100)
async def test_the_next_engine_and_the_next_host_go_on(server: SshServer, home: Path) -> None:
    async with far_side(server) as there:
        async with blockpty.Engine(home) as engine:
            conversation = await engine.open("c1", source=SOURCE, resume="always", env=server.environment, persist=True)
            await conversation.exec_block("sleep 0.2; seq 1 2000; sleep 0.2; (exit 4)")
        server.cut()
        async with blockpty.Engine(home) as engine:
            conversation = await engine.conversation("c1")
            last = await conversation.wait_for({"regex": "^2000$"}, from_cursor=0, timeout_ms=TIMEOUT_MS)
            await conversation.wait_for({"token": "PROMPT"}, from_cursor=last.cursor, timeout_ms=TIMEOUT_MS)
            block = (await conversation.blocks()).blocks[-1]
            assert (block.exit_status, block.degraded) == (4, None)
            assert json.loads(conversation.layout.meta.read_bytes())["open"]["resume"] == "always"
            await connection(conversation, "up", 2)
            await conversation.close()
            assert await live(there) == 0


@pytest.mark.slow
@async_test(timeout_seconds=110)
async def test_a_link_that_is_slow_loses_packets_and_is_cut_and_restored(tmp_path: Path, home: Path) -> None:
    """Two hosts in network namespaces, 20 ms apart either way; of 100 packets two are lost."""
    with delayed_link(delay_ms=20, loss=0.02) as link:
        names = (link.near, link.far)
        with ssh_server(tmp_path, RUNS_COMMANDS, address=FAR, namespaces=names) as server:
            async with far_side(server) as there, blockpty.Engine(home) as engine:
                env = {**server.environment, "BLOCKPTY_SSH_SILENCE": "3"}
                conversation = await engine.open("c1", source=f"ssh:{FAR}", resume="always", env=env)
                await run(conversation, PRINTS, 7, PRINTED)
                for number in (1, 2):
                    running = asyncio.ensure_future(run(conversation, f"sleep 0.5; {PRINTS}", 7, PRINTED))
                    begin = conversation.cursor
                    await conversation.wait_for({"idle_ms": 60_000}, from_cursor=begin, max_bytes=200 * number)
                    link.cut()
                    await connection(conversation, "lost", number)
                    link.restore()
                    await connection(conversation, "up", number + 1)
                    await running
                await run(conversation, "echo one; false", 1, "one\n")
                (far,) = there.iterdir()
                assert record_of(conversation.directory).endswith(record_of(far))
                assert (await conversation.verify()).clean
                await conversation.close()


@async_test
async def test_without_blockpty_there_it_is_an_ssh_as_any(server: SshServer, home: Path) -> None:
    # And with no tmux that could keep the shell in its place (test_far_tmux.py).
    old = server.directory / "bin" / "tmux"
    old.write_text("#!/bin/sh\necho tmux 3.1c\n")
    old.chmod(0o755)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=SOURCE, resume="auto", env=server.environment)
        await run(conversation, "echo one; false", 1, "one\n")
        found = (await conversation.status()).connection
        assert found is not None and (found["state"], found["reason"]) == ("plain", "blockpty is not installed there")
        server.cut()
        await conversation.wait_for({"token": "EOF"}, timeout_ms=TIMEOUT_MS)
        assert ((await conversation.status()).exit or {})["reason"] == "connection_lost"
        with pytest.raises(blockpty.SpawnFailed) as failed:
            await engine.open("c2", source=SOURCE, resume="always", env=server.environment)
        assert "not installed there" in failed.value.details["printed"]
        for source in ("exec:true", None):
            with pytest.raises(blockpty.BadRequest, match="resume is"):
                await engine.open("c3", source=source, resume="auto")
