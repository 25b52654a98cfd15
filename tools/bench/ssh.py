"""A shell behind ssh on loopback: one command beside one in a shell here, much output beside ssh on a bare terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import statistics
import subprocess
import time
import tty
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.report import Row, Run, skipped
from blockpty import Engine

if TYPE_CHECKING:
    from blockpty import Conversation

AIM_MS = 2.0
AIM_SHARE = 0.8
HOST = "127.0.0.1"
WAYS = {"ssh": "never", "ssh, resume": "always"}
NOTE_RUN = 'ssh: run("true") through an sshd on loopback, in turn with one in a shell here; medians'
NOTE_CAT = (
    "ssh: `cat` of a file in a conversation, to its prompt; beside: `ssh -tt host cat` on a bare terminal, which a loop"
    " reads and drops, from its first byte on. The last row is `ssh host cat` into a pipe, where neither side has a"
    " terminal: no shell can be run so"
)


def measure(run: Run) -> list[Row]:
    """Measure both ways of ssh."""
    import pytest

    from tests.support.ssh_server import RUNS_COMMANDS, install, ssh_server

    try:
        with ssh_server(run.place, RUNS_COMMANDS) as server:
            install(server)
            return asyncio.run(_measure(run, server.environment))
    except pytest.skip.Exception as reason:
        return [skipped("ssh", "a shell behind ssh", str(reason))]


async def _measure(run: Run, environment: Mapping[str, str]) -> list[Row]:
    rounds, megabytes = run.pairs(5), run.megabytes or run.count(30, 1)
    big = run.place / "big"
    line = b"0123456789abcdef" * 4 + b"\n"
    big.write_bytes(line * (megabytes * 1_000_000 // len(line)))
    (run.place / "empty").mkdir()
    async with Engine(run.place / "near") as engine:
        here = await engine.open("here", shell="bash", env={"HOME": str(run.place / "empty")})
        there = {
            way: await engine.open(way.replace(", ", "-"), source=f"ssh:{HOST}", env=environment, resume=resume)
            for way, resume in WAYS.items()
        }
        rows = await _commands(here, there, rounds * run.count(60, 3))
        rows += await _output(there, big, megabytes, rounds, {**os.environ, **environment})
        for conversation in (here, *there.values()):
            await conversation.close()
    return rows


async def _commands(here: Conversation, there: Mapping[str, Conversation], count: int) -> list[Row]:
    took: dict[str, list[float]] = {"here": [], **{way: [] for way in there}}
    for _ in range(count):
        for way, conversation in {"here": here, **there}.items():
            begin = time.perf_counter()
            await conversation.run("true")
            took[way].append((time.perf_counter() - begin) * 1000)
    beside = statistics.median(took["here"])
    rows = []
    for way in there:
        value = statistics.median(took[way])
        rows.append(
            Row("ssh", f'run("true"), {way}', value, "ms", "a shell here", beside, value / beside, "ours / here",
                f"at most {AIM_MS:g} ms more", value - beside <= AIM_MS, note=NOTE_RUN)
        )  # fmt: skip
    return rows


async def _output(
    there: Mapping[str, Conversation], big: Path, megabytes: int, rounds: int, environment: Mapping[str, str]
) -> list[Row]:
    bare: list[float] = []
    piped: list[float] = []
    rates: dict[str, list[float]] = {way: [] for way in there}
    for _ in range(rounds):
        bare.append(megabytes / _on_terminal(["ssh", "-tt", HOST, "cat", str(big)], environment))
        piped.append(megabytes / _into_pipe(["ssh", HOST, "cat", str(big)], environment))
        for way, conversation in there.items():
            begin = time.perf_counter()
            await conversation.run(f"cat {big}", timeout_ms=300_000, max_bytes=1000)
            rates[way].append(megabytes / (time.perf_counter() - begin))
    rows = []
    for way, rate in rates.items():
        share = [one / other for one, other in zip(rate, bare, strict=True)]
        rows.append(
            Row("ssh", f"output, {way}", statistics.median(rate), "MB/s", "ssh -tt, bare terminal",
                statistics.median(bare), statistics.median(share), "ours / bare", f"{AIM_SHARE:g} of it",
                statistics.median(share) >= AIM_SHARE, min(share), max(share), NOTE_CAT)
        )  # fmt: skip
    rows.append(
        Row("ssh", "output, ssh -tt on a bare terminal", statistics.median(bare), "MB/s", "ssh into a pipe",
            statistics.median(piped), statistics.median(bare) / statistics.median(piped), "bare / pipe", note=NOTE_CAT)
    )  # fmt: skip
    return rows


def _on_terminal(command: list[str], environment: Mapping[str, str]) -> float:
    """Return how many seconds a program prints, from its first byte on, whose terminal is read by a loop."""
    pid, master = pty.fork()
    if pid == 0:
        try:
            os.execvpe(command[0], command, dict(environment))
        finally:
            os._exit(127)
    tty.setraw(master)
    seconds = _read_all(master)
    os.waitpid(pid, 0)
    os.close(master)
    return seconds


def _into_pipe(command: list[str], environment: Mapping[str, str]) -> float:
    """Return the same of a program that prints into a pipe."""
    program = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert program.stdout is not None
    with program:
        return _read_all(program.stdout.fileno())


def _read_all(descriptor: int) -> float:
    begin = None
    try:
        while os.read(descriptor, 65536):
            begin = begin or time.perf_counter()
    except OSError:
        pass
    return time.perf_counter() - (begin or 0.0)
