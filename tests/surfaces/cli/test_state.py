"""Checks of a home: what its host, its locks, its server and its policy are like, and what killed ones left."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import blockpty
from blockpty.surfaces.cli import state
from blockpty.surfaces.cli.checks import Finding
from tests.support.left_files import left_socket


@pytest.mark.linux
def test_a_process_that_does_not_listen(home: Path) -> None:
    left_socket(home / "host" / "host.sock")
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()  # blockpty"], stdin=-1, stdout=-1
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdout.readline()
        (home / "host" / "pid").write_text(json.dumps({"keeper": other.pid, "recorder": None}))
        finding = state.check_host(home)
        other.stdin.close()
    assert finding.status == "failed" and f"kill {other.pid}" in finding.remedy
    (home / "host" / "pid").unlink()


@pytest.mark.linux
def test_who_holds_the_lock(home: Path) -> None:
    path = home / "host" / "start.lock"
    path.parent.mkdir(mode=0o700)
    with path.open("w") as file:
        assert state.holder_of(path) is None
        fcntl.flock(file, fcntl.LOCK_EX)
        assert state.holder_of(path) == os.getpid()
        finding = state.check_host(home)
        assert finding.status == "warning" and str(os.getpid()) in finding.message
    assert state.holder_of(path) is None
    assert state.check_host(home).status == "ok"


def test_port(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr(state, "PORT", port)
        assert state.check_port(home).status == "warning"
        # A server that was killed has left its file; one that runs has a process behind its socket.
        left_socket(home / "server" / "socket")
        (home / "server" / "server.json").write_text(json.dumps({"url": f"http://127.0.0.1:{port}"}))
        assert state.check_port(home).status == "warning"
        (home / "server" / "socket").unlink()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(home / "server" / "socket"))
            server.listen()
            finding = state.check_port(home)
            assert finding.status == "ok" and "server of this home" in finding.message
            (home / "server" / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:1"}))
            assert state.check_port(home).status == "warning"
        shutil.rmtree(home / "server")
    assert state.check_port(home).status == "ok"


def test_what_agents_may_do(home: Path) -> None:
    assert "none" in state.check_policy(home).message
    (home / "policy.toml").write_text('[[rule]]\nname = "echo"\naction = "ask"\ncommands = ["echo"]\n')
    finding = state.check_policy(home)
    assert finding.status == "ok" and finding.message.endswith("policy.toml holds, with 1 rule")
    assert state.check_agents(home).status == "ok"

    async def waiting() -> Finding:
        async with blockpty.Client(home) as owner, blockpty.Client(home, agent="mcp") as client:
            conversation = await owner.open("c1", shell="bash")
            call = asyncio.create_task((await client.conversation("c1")).run("echo one"))
            while not (await owner.approvals()).approvals:  # noqa: ASYNC110  (what waits can only be asked for)
                await asyncio.sleep(0.01)
            finding = await asyncio.to_thread(state.check_agents, home)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await conversation.close()
            await owner.halt()
            return finding

    finding = asyncio.run(waiting())
    assert (finding.status, finding.message) == ("warning", "1 approval is pending")
    finding = state.check_agents(home)
    assert finding.status == "warning" and "owner has halted agents" in finding.message
    (home / "policy.toml").write_text("nonsense")
    assert state.check_policy(home).status == "failed"
