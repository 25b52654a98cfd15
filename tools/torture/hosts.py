"""kill -9 of the recorder, the keeper, and everything at once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import blockpty
from blockpty.host import spawn
from tests.support.host_driver import BASH, Host, death, running_host
from tests.support.processes import directory_of_homes
from tools.torture import engines
from tools.torture.report import Row, percentile

NUMBERS = 300_000
# The keeper starts at most 10 recorders in 10 seconds without a pause.
PACE_SECONDS = 1.1
PROMISED_SECONDS = 1.0


async def kill_recorder(host: Host) -> float:
    """Kill the recorder; return how long it took until another one answered."""
    old = (await host.client.hello()).recorder
    begin = time.monotonic()
    os.kill(old, signal.SIGKILL)
    while (await host.client.hello()).recorder == old:
        pass
    return time.monotonic() - begin


async def _flood(home: Path, tries: int, row: Row) -> None:
    lines = b"".join(b"%d\n" % number for number in range(1, NUMBERS + 1))
    expected = {True: lines, False: lines.replace(b"\n", b"\r\n")}
    wrong = size = shells = 0
    async with running_host(home) as host:
        row.found["transport"] = (await host.client.hello()).transport
        while row.tries < tries:
            shells += 1
            one = await host.spoken(f"c{shells}")
            # Every other one writes into a pipe, as ssh does.
            is_piped = shells % 2 == 0
            await one.sh(f"seq 1 {NUMBERS}; exit 9", is_piped=is_piped)
            while row.tries < tries and not one.entries("exit"):
                await asyncio.sleep(random.uniform(0, 0.05))
                await kill_recorder(host)
                row.tries += 1
            if await one.ended() != (9, None):
                row.wrong.append(f"{one.name}: {one.entries('exit')}")
            found = one.stream()
            size += len(found)
            if found != expected[is_piped]:
                wrong += 1
                row.wrong.append(f"{one.name}: {len(found)} of {len(expected[is_piped])} bytes")
            one.check_timeline()
    row.found |= {"streams not exact": str(wrong), "streams": str(shells), "moved": f"{size / 1e6:.1f} MB"}


def kill_recorders(tries: int) -> Iterator[Row]:
    """Kill recorders in a flood."""
    row = Row("kill -9 of the recorder, flood")
    with directory_of_homes("torture") as home:
        asyncio.run(_flood(home, tries, row))
    yield row


async def _takeovers(home: Path, tries: int, row: Row) -> None:
    times = []
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open("/bin/cat")
        for number in range(tries):
            await asyncio.sleep(PACE_SECONDS if tries > 8 else 0)
            times.append(await kill_recorder(host))
            await one.type(b"%d\r" % number)
            await one.printed(b"%d\r\n%d\r\n" % (number, number))
            row.tries += 1
    row.found = {"p50": percentile(times, 0.5), "p99": percentile(times, 0.99), "longest": percentile(times, 1)}


def time_takeovers(tries: int) -> Iterator[Row]:
    """Measure from the kill to the first answer of the next recorder."""
    row = Row("takeover by the next recorder, as a client sees it")
    with directory_of_homes("torture") as home:
        asyncio.run(_takeovers(home, tries, row))
    yield row


async def _keepers(home: Path, tries: int, row: Row) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        opened = await one.open(BASH, "-c", "while read x; do echo got $x; done")
        for number in range(tries):
            old = (await host.client.hello()).keeper
            await asyncio.sleep(random.uniform(0, 0.05))
            os.kill(old, signal.SIGKILL)
            await one.type(b"%d\r" % number)
            await one.printed(b"got %d\r\n" % number)
            await death(old)
            while (await host.client.hello()).keeper == old:
                pass
            row.tries += 1
        answered = [line for line in one.stream().split(b"\r\n") if line.startswith(b"got ")]
        if answered != [b"got %d" % number for number in range(tries)]:
            row.wrong.append("the answers are not one for each line")
        same = (await host.client.inspect("c1")).pid == opened.pid
        row.found = {"lines answered once": str(len(answered)), "shell": "the same" if same else "another"}
        if not same:
            row.wrong.append("the shell has changed")


def kill_keepers(tries: int) -> Iterator[Row]:
    """Kill keepers while a shell is talked to."""
    row = Row("kill -9 of the keeper, while typing")
    with directory_of_homes("torture") as home:
        asyncio.run(_keepers(home, tries, row))
    yield row


async def _after_all(home: Path, name: str, shell: int, printed: bytes, row: Row) -> tuple[float, int]:
    """Be the next engine; return after how long it said that the shell is gone, and bytes that were not recorded."""
    begin = time.monotonic()
    async with blockpty.Engine(home) as engine:
        (info,) = (await engine.list(name)).conversations
        took = time.monotonic() - begin
        if info.live:
            row.wrong.append(f"{name}: it is still live after {took:.2f} s")
        if took > PROMISED_SECONDS:
            row.late.append(f"{name}: said to be gone after {took:.2f} s")
        left = [*spawn.session_members(shell)]
        if left:
            row.wrong.append(f"{name}: processes are left: {left}")
        conversation = await engine.open(name, shell="bash")
        block = (await conversation.blocks()).blocks[0]
        shown = (conversation.layout.directory / str(block.out_path)).read_bytes()
        # The end of the stream may lie between the CR and the LF that the terminal makes of a line end.
        if block.state != "lost" or not printed.startswith(shown.removesuffix(b"\r")):
            row.wrong.append(f"{name}: the block is {block.state} and ends with {shown[-40:]!r}")
        if not (verified := await conversation.verify()).clean:
            row.wrong.append(f"{name}: verify: {verified.differences[0]}")
        await conversation.close()
    return took, len(shown)


async def _host(home: Path, name: str) -> tuple[int, int]:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation(name)
        hello = await conversation.host.hello()
        return hello.keeper, hello.recorder


def kill_all(tries: int) -> Iterator[Row]:
    """Kill engine, recorder and keeper at once, in the middle of a flood."""
    row = Row("kill -9 of engine, recorder and keeper at once, flood")
    times, kept = [], 0
    text, numbers = f"seq 1 {NUMBERS}", range(1, NUMBERS + 1)
    printed = b"".join(b"%d\n" % number for number in numbers)
    with directory_of_homes("torture") as place:
        home = place / "home"
        while row.tries < tries:
            name = f"c{row.tries}"
            shell = asyncio.run(engines.begin(home, name))
            victims = asyncio.run(_host(home, name))
            ours, theirs = os.pipe()
            child = os.fork()
            if child == 0:
                asyncio.run(engines.live(home, name, f"{text}; sleep 1000", theirs))
            os.close(theirs)
            said = b""
            while b"s" not in said:
                said += os.read(ours, 1)
            os.close(ours)
            time.sleep(random.uniform(0, 0.05))
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in (*victims, child):
                    os.kill(pid, number)
            os.waitpid(child, 0)
            took, size = asyncio.run(_after_all(home, name, shell, printed, row))
            times.append(took)
            kept += size
            row.tries += 1
    row.found = {
        "said to be gone after p50": percentile(times, 0.5), "longest": percentile(times, 1),
        "output kept": f"{kept / 1e6:.1f} MB, always a prefix",
    }  # fmt: skip
    yield row
