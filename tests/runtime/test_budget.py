"""What a command costs, counted and not timed: a count does not depend on the machine, and may not grow unseen.

Of many runs the smallest count is held against its line: on a busy machine output comes in more pieces, and each of
them costs something of its own. Where a change makes the work less, its line is to be lowered with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import blockpty
from tests.support.async_tests import async_test

RUNS: Final = 100
# The lines: a tenth above what was counted last, and more for what depends on how many pieces the output comes in.
RUN: Final = {"python calls": 480, "turns of the loop": 3, "timeline bytes": 400, "typed bytes": 7}
WAIT: Final = {"python calls": 950, "turns of the loop": 3, "timeline bytes": 1200, "typed bytes": 7}
SYSTEM_CALLS: Final = {
    'run("true")': {"of the recorder": 22, "of the engine": 48, "syncs of the engine": 0},
    "exec_block and wait_for": {"of the recorder": 36, "of the engine": 68, "syncs of the engine": 0},
}
# strace slows what it follows: a few commands at a time, so that one of the rounds is not disturbed.
ROUNDS: Final = 40
RUNS_IN_ROUND: Final = 4


class Counted:
    """Counts what this process does for one command."""

    def __init__(self) -> None:
        self.calls = 0
        self.turns = 0

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        self.calls += event == "call"


async def counts_of(command: Callable[[], Awaitable[Any]], conversation: blockpty.Conversation) -> dict[str, int]:
    """Return the smallest counts of this process over some runs of a command, and what a run adds to the record."""
    timeline = conversation.directory / "timeline.jsonl"
    loop = asyncio.get_running_loop()
    once = loop._run_once  # type: ignore[attr-defined]
    counted = Counted()
    calls: list[int] = []
    turns: list[int] = []
    written: list[int] = []

    def turn() -> None:
        counted.turns += 1
        once()

    for _ in range(3):  # what is done once is done by then
        await command()
    loop._run_once = turn  # type: ignore[attr-defined]
    try:
        for _ in range(RUNS):
            counted.calls, counted.turns = 0, 0
            size = timeline.stat().st_size
            sys.setprofile(counted.profile)
            try:
                await command()
            finally:
                sys.setprofile(None)
            calls.append(counted.calls)
            turns.append(counted.turns)
            written.append(timeline.stat().st_size - size)
    finally:
        loop._run_once = once  # type: ignore[attr-defined]
    typed = re.findall(rb'"kind":"input".*?"bytes":(\d+)', timeline.read_bytes())
    return {
        "python calls": min(calls), "turns of the loop": min(turns),
        "timeline bytes": min(written), "typed bytes": max(int(one) for one in typed),
    }  # fmt: skip


def check(title: str, counts: dict[str, int], lines: dict[str, int]) -> None:
    """Print the counts, and fail where one is over its line."""
    print(f"\n{title}")
    for name, count in counts.items():
        print(f"  {name:<24} {count:>6}   line {lines[name]:>6}")
    over = [f"{name}: {count}, the line is {lines[name]}" for name, count in counts.items() if count > lines[name]]
    assert not over, f"{title}: {'; '.join(over)}"


@pytest.mark.linux
@async_test(timeout_seconds=60)
async def test_what_run_costs(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd="/")
        check('run("true")', await counts_of(lambda: conversation.run("true"), conversation), RUN)


async def start_and_wait(conversation: blockpty.Conversation) -> None:
    begun = await conversation.exec_block("true")
    await conversation.wait_for({"token": "PROMPT"}, from_cursor=begun.cursor)


@pytest.mark.linux
@async_test(timeout_seconds=60)
async def test_what_exec_block_and_a_wait_cost(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd="/")
        counts = await counts_of(lambda: start_and_wait(conversation), conversation)
        check("exec_block and wait_for", counts, WAIT)


def counting(pid: int, output: Path) -> subprocess.Popen[bytes]:
    """Begin to count the system calls of a process and its threads."""
    return subprocess.Popen(
        ["strace", "-f", "-c", "-o", str(output), "-p", str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


async def system_calls(pid: int, output: Path, command: Callable[[], Awaitable[Any]], line: int) -> tuple[int, int]:
    """Return the smallest numbers of system calls, and of syncs, of a process and its threads for a command.

    After a few rounds the first count that is not over its line will do.
    """
    counts: list[int] = []
    syncs: list[int] = []
    while len(counts) < ROUNDS and (len(counts) < 6 or min(counts) > line or min(syncs)):
        tracer = counting(pid, output)
        assert tracer.stderr is not None
        await asyncio.to_thread(tracer.stderr.readline)  # "attached"
        for _ in range(RUNS_IN_ROUND):
            await command()
        tracer.send_signal(signal.SIGINT)
        await asyncio.to_thread(tracer.communicate)
        table = output.read_text()
        by_name = {name: int(count) for count, name in re.findall(r"(\d+)(?: +\d+)? (\w+)$", table, re.MULTILINE)}
        counts.append(round(by_name.pop("total") / RUNS_IN_ROUND))
        syncs.append(sum(count for name, count in by_name.items() if name in ("fsync", "fdatasync")))
    return min(counts), min(syncs)


@pytest.mark.linux
@pytest.mark.needs("strace")
@pytest.mark.parametrize("title", SYSTEM_CALLS)
@async_test(timeout_seconds=120)
async def test_the_system_calls_of_a_command(home: Path, tmp_path: Path, title: str) -> None:
    """Together with those for what is checked in the meantime, divided by the runs."""
    lines = SYSTEM_CALLS[title]
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd="/")

        def command() -> Awaitable[Any]:
            return conversation.run("true") if title.startswith("run") else start_and_wait(conversation)

        for _ in range(3):
            await command()
        recorder = json.loads((home / "host" / "pid").read_bytes())["recorder"]
        counts, _ = await system_calls(recorder, tmp_path / "recorder", command, lines["of the recorder"])
        ours, syncs = await system_calls(os.getpid(), tmp_path / "engine", command, lines["of the engine"])
        found = {"of the recorder": counts, "of the engine": ours, "syncs of the engine": syncs}
        check(f"system calls of {title}", found, lines)
