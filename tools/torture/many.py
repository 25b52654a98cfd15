"""Many conversations: thousands that are idle, thousands that are short, and one that forks without end."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import blockpty
from blockpty.host import cgroup, spawn
from tests.support.host_driver import BASH, Host, running_host
from tests.support.processes import directory_of_homes
from tools.torture.report import Row, percentile

LAG_SECONDS = 0.010
ECHO_SECONDS = 0.050
GONE_SECONDS = 2.0
# How many shells are started at a time: more only wait for each other.
TOGETHER = 8
# How long the keeper may take to close the files of what has ended; what is left open stays for good.
CLOSED_SECONDS = 5.0
TICK_SECONDS = 0.005
MEASURED_SECONDS = 10.0
# The same sleeps in a process that does nothing else: how late a process wakes on this machine now.
BARE = """
import json, sys, time
lags, end = [], time.monotonic() + float(sys.argv[1])
while (now := time.monotonic()) < end:
    time.sleep(float(sys.argv[2]))
    lags.append(time.monotonic() - now - float(sys.argv[2]))
print(json.dumps(lags))
"""
PROCESSES = 500


def zombies(parent: int) -> int:
    """Return how many children of a process are dead and not collected."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            facts = spawn.process_facts(name)
            if facts is not None and facts[0] == "Z":
                try:
                    stat = Path(f"/proc/{name}/stat").read_text()
                except OSError:
                    continue
                count += int(stat.rpartition(")")[2].split()[1]) == parent
    return count


def descriptors(process: int) -> int:
    """Return how many descriptors a process has open."""
    return len(os.listdir(f"/proc/{process}/fd"))


# -- short --------------------------------------------------------------------------------------------------------


async def _short(home: Path, tries: int, row: Row) -> None:
    async with running_host(home) as host:
        hello = await host.client.hello()
        processes = (os.getpid(), hello.recorder, hello.keeper)
        for _ in range(TOGETHER):
            await _one_short(host, f"first{_}", row)
        base = [descriptors(process) for process in processes]
        numbers = itertools.count(1)
        begin = time.monotonic()

        async def some() -> None:
            while (number := next(numbers)) <= tries:
                await _one_short(host, f"c{number}", row)
                row.tries += 1

        await asyncio.gather(*(some() for _ in range(TOGETHER)))
        seconds = time.monotonic() - begin
        until = time.monotonic() + CLOSED_SECONDS
        # The keeper closes the last ones when the recorder has notified it.
        while _more(base, after := [*map(descriptors, processes)]) and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        # The keeper collects a child when it is notified; that has happened for all, so a look is enough.
        dead = zombies(hello.keeper) + zombies(hello.recorder)
    row.found |= {
        "zombies": str(dead), "descriptors before and after": f"{base} {after}",
        "each": f"{seconds / max(1, tries) * 1000:.1f} ms",
    }  # fmt: skip
    if dead:
        row.wrong.append(f"{dead} zombies")
    if _more(base, after):
        row.wrong.append("descriptors are left open")


def _more(before: list[int], after: list[int]) -> bool:
    return any(now > then + 2 for then, now in zip(before, after, strict=True))


async def _one_short(host: Host, name: str, row: Row) -> None:
    one = await host.spoken(name)
    await one.sh("exit 3")
    if await one.ended() != (3, None):
        row.wrong.append(f"{name}: {one.entries('exit')}")
    await host.client.unsubscribe(name)


def short(tries: int) -> Iterator[Row]:
    """Yield the row of conversations that end at once."""
    with directory_of_homes("torture") as folder:
        row = Row("short conversations, one after the other, eight at a time")
        asyncio.run(_short(folder / "home", tries, row))
        yield row


# -- idle ---------------------------------------------------------------------------------------------------------


class TimedLoop(asyncio.SelectorEventLoop):
    """Notes the processor time of each of its turns, in `turns`, while that is a list."""

    turns: list[float] | None = None

    def _run_once(self) -> None:
        begin = time.thread_time()
        super()._run_once()  # type: ignore[misc]
        if self.turns is not None:
            self.turns.append(time.thread_time() - begin)


async def _lags(loop: TimedLoop, seconds: float) -> tuple[list[float], list[float], list[float]]:
    """Return how late the loop comes around, how late a bare process does meanwhile, and what the turns took."""
    bare = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BARE, str(seconds), str(TICK_SECONDS), stdout=subprocess.PIPE
    )
    lags: list[float] = []
    loop.turns = turns = []
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        await asyncio.sleep(TICK_SECONDS)
        lags.append(time.monotonic() - now - TICK_SECONDS)
    loop.turns = None
    printed, _ = await bare.communicate()
    return lags, json.loads(printed), turns


# What the busy ones do, until there is a file: a build starts programs that print a little, and 20 of them fill both
# cores of a small machine whichever process follows; a log is one program that prints 1 MB/s.
BUSY = {
    "builds": "while [ ! -e {stop} ]; do seq 1 200; sleep 0.05; done",
    "logs": "x=$(seq 1 4000); while [ ! -e {stop} ]; do printf '%s\\n' \"$x\"; read -rt 0.02 <&9; done 9<>{pipe}",
}


async def _idle(home: Path, idle: int, busy: int, bound: float, seconds: float) -> Iterator[Row]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, TimedLoop)
    pipe = home.parent / "pipe"
    os.mkfifo(pipe)
    rows = []
    async with blockpty.Engine(home, session_limit=idle + busy) as engine:
        begin, worked = time.monotonic(), time.process_time()
        numbers = itertools.count(1)

        async def some() -> None:
            while (number := next(numbers)) <= idle + busy:
                await engine.open(f"c{number}", shell="bash", timeout_ms=600_000)

        await asyncio.gather(*(some() for _ in range(TOGETHER)))
        opened, opening = time.monotonic() - begin, time.process_time() - worked
        # The checkpoints of those that were opened last are written.
        await asyncio.sleep(seconds)
        worked = time.process_time()
        await asyncio.sleep(seconds)
        resting = (time.process_time() - worked) / seconds
        working = [await engine.conversation(f"c{number}") for number in range(1, busy + 1)]
        for name, script in BUSY.items():
            stop = home / f"stop {name}"
            command = script.format(stop=shlex.quote(str(stop)), pipe=shlex.quote(str(pipe)))
            begun = [await one.exec_block(command) for one in working]
            before = sum(one.cursor for one in working)
            lags, bare, turns = await _lags(loop, seconds)
            printed, load = sum(one.cursor for one in working) - before, os.getloadavg()[0]
            stop.touch()
            for one, block in zip(working, begun, strict=True):
                await one.wait_for({"token": "PROMPT"}, from_cursor=block.cursor, timeout_ms=60_000)
            row = Row(f"idle conversations beside {busy} busy ones, {name}", idle)
            row.found |= {
                "printed": f"{printed / 1e6 / seconds:.1f} MB/s",
                "loop lag p50": percentile(lags, 0.5), "p99": percentile(lags, 0.99), "longest": percentile(lags, 1),
                "a bare process at the same time p50": percentile(bare, 0.5), "its p99": percentile(bare, 0.99),
                "its longest": percentile(bare, 1), "processor time of a turn of the loop p99": percentile(turns, 0.99),
                "of the longest": percentile(turns, 1), "load": f"{load:.1f}",
            }  # fmt: skip
            if _late(lags) - _late(bare) > bound:
                row.late.append("the loop lags")
            rows.append(row)
        answered = [await _answer(engine, number) for number in range(busy + 1, min(busy + 101, busy + idle + 1))]
        closing, worked = time.monotonic(), time.process_time()
    rows[0].found |= {
        "a command in an idle one p50": percentile(answered, 0.5),
        "all idle": f"{resting * 100:.1f} % of a core",
        "opening all": f"{opened:.0f} s ({opening:.0f} s of processor time)",
        "closing all": f"{time.monotonic() - closing:.0f} s ({time.process_time() - worked:.0f} s)",
    }
    return iter(rows)


def _late(lags: list[float]) -> float:
    return sorted(lags)[int(len(lags) * 0.99)]


async def _answer(engine: blockpty.Engine, number: int) -> float:
    conversation = await engine.conversation(f"c{number}")
    begin = time.monotonic()
    done = await conversation.run("echo here", timeout_ms=60_000)
    assert done.output == "here\n", done
    return time.monotonic() - begin


def idle(
    count: int, busy: int = 20, bound: float = LAG_SECONDS, seconds: float = MEASURED_SECONDS
) -> Iterator[Row]:
    """Yield the rows of many conversations that do nothing, beside some that do.

    `bound` is for how much later than a bare process the loop comes around, in 99 of 100 times within `seconds`.
    """
    with directory_of_homes("torture") as folder, asyncio.Runner(loop_factory=TimedLoop) as runner:
        yield from runner.run(_idle(folder / "home", count, busy, bound, seconds))


# -- forks --------------------------------------------------------------------------------------------------------


async def _forks(home: Path, tries: int, row: Row) -> None:
    echoes: list[float] = []
    gone: list[float] = []
    async with running_host(home) as host:
        other = await host.spoken("other")
        await other.open("/bin/cat")
        for number in range(tries):
            bomb = await host.spoken(f"bomb{number}")
            opened = await bomb.open(BASH, "--norc", "--noprofile", process_limit=PROCESSES)
            await bomb.type(b"bomb() { bomb & bomb & wait; }; bomb\n")
            await bomb.printed(b"fork: ")
            for line in range(20):
                text = b"%d-%d" % (number, line)
                begin = time.monotonic()
                await other.type(text + b"\r")
                await other.printed(text + b"\r\n" + text + b"\r\n")
                echoes.append(time.monotonic() - begin)
            begin = time.monotonic()
            await host.client.close(bomb.name, grace_ms=0)
            gone.append(time.monotonic() - begin)
            left = len([*spawn.session_members(opened.pid)])
            if left:
                row.wrong.append(f"{left} processes are left")
            row.tries += 1
    row.found |= {
        "processes": str(PROCESSES), "bounded by": "cgroup" if cgroup.find_base() is not None else "RLIMIT_NPROC",
        "echo in another p50": percentile(echoes, 0.5), "p99": percentile(echoes, 0.99),
        "gone after p50": percentile(gone, 0.5), "longest": percentile(gone, 1), "load": f"{os.getloadavg()[0]:.1f}",
    }  # fmt: skip
    if max(gone) > GONE_SECONDS:
        row.late.append("a bomb lived on for too long")


def forks(tries: int) -> Iterator[Row]:
    """Yield the row of fork bombs."""
    with directory_of_homes("torture") as folder:
        row = Row("a fork bomb, closed")
        asyncio.run(_forks(folder / "home", tries, row))
        yield row
