"""The server's surfaces: what each adds to a call in process, and what many waits and subscribers cost the server.

The server is a process of its own, with a home and a host of its own; the engine that is compared with lives in this
process, as a library user has it. Subscribers are read here with as little as possible, so that they do not take the
cores that the server needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report import Row, Run, median, percentile, skipped
from blockpty import Client, Engine
from blockpty.surfaces import launching
from blockpty.surfaces.private_files import owner_token

TOP = Path(__file__).resolve().parents[2]
WARM_UP = 20
HTTP_ADDS_MS = 2.0
WAITS, WAITS_CPU_PERCENT = 200, 5.0
SUBSCRIBERS, EVENTS_PER_SECOND = 50, 100
GROWTH_MB = 1.0
STATUS_MS = 250.0

PYTHON = 'run("true") in process'
SOCKET = 'run("true") over the unix socket'
HTTP = 'run("true") over HTTP keep-alive'
MCP = 'run("true") over MCP stdio'
CLI = "blockpty status, a server runs"
PASS = "python -c pass"
IMPORT = "python -c 'import blockpty'"

NOTE_RUN = (
    "surfaces: from the call to its result in the caller; the four in turn in one run, the first 20 not counted; the"
    " server, and `blockpty mcp` in front of it, are processes of their own; range of the rounds' medians"
)
NOTE_ADDS = "surfaces, added: difference of the two medians of all samples; range of the differences round by round"
NOTE_WAITS = (
    "surfaces, waits: processor time of the server process (user and system) by the seconds measured, with so many"
    " wait_for pending on several conversations in which nothing happens; beside it the same server without any"
)
NOTE_EVENTS = (
    "surfaces, events: input events by `send_keys`, as near to 100/s as the machine allows, to subscribers over SSE"
    " read by bare sockets; resident size of the server after the first third and at the end; range: its least and"
    " largest in between"
)
NOTE_CLI = "surfaces, command line: wall time of a whole process, in turn; python is the one that runs this"

Call = Callable[[], Awaitable[None]]


def measure(run: Run) -> list[Row]:
    """Start a server and ask it in all ways."""
    with contextlib.ExitStack() as leaving:
        home = run.place / "server"
        launching.start(home, ["--port", "0", "--session-limit", "30"])
        leaving.callback(_stop, home)
        found = launching.state(home)
        assert found is not None
        server = _Server(home, str(found["url"]), int(found["pid"]))
        rows = asyncio.run(_calls(run, server))
        if sys.platform == "linux":
            rows.append(asyncio.run(_waits(run, server)))
            rows += asyncio.run(_events(run, server))
        else:
            rows += [skipped("surfaces", "200 waits", "needs /proc"), skipped("surfaces", "events", "needs /proc")]
        return [*rows, *asyncio.run(_status(run, server))]


@dataclass(frozen=True)
class _Server:
    home: Path
    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """Return how long the process has run on a processor, in user and system mode."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        """Return the resident size."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def _stop(home: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "blockpty", "serve", "--stop", "--home", str(home)],
        env=_environment(), stdout=subprocess.DEVNULL, check=True, cwd="/",
    )  # fmt: skip


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TOP)}


# One call after another


async def _calls(run: Run, server: _Server) -> list[Row]:
    rounds: dict[str, list[list[float]]] = {}
    async with contextlib.AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine(run.place / "inside"))
        local: Any = await engine.open("bench", shell="bash")
        over_socket = await stack.enter_async_context(Client(server.home, start=False))
        over_http = await stack.enter_async_context(
            Client(url=server.url, token=owner_token(server.home), start=False)
        )
        first = await over_socket.open("socket", shell="bash")
        second = await over_http.open("http", shell="bash")
        third = await over_socket.open("mcp", shell="bash")
        agent = await stack.enter_async_context(_agent(server.home))

        async def by_agent() -> None:
            answer = await agent.call_tool("pty_run", {"conversation_id": third.id, "command": "true"})
            assert answer.structured_content["block"]["exit_status"] == 0, answer

        kinds: dict[str, Call] = {
            PYTHON: lambda: _run(local),
            SOCKET: lambda: _run(first),
            HTTP: lambda: _run(second),
            MCP: by_agent,
        }
        for _ in range(WARM_UP):
            for call in kinds.values():
                await call()
        for _ in range(run.pairs(15)):
            for name, call in kinds.items():
                rounds.setdefault(name, []).append([await _timed(call) for _ in range(run.count(40, 5))])
        for conversation in (first, second, third):
            await conversation.close()
        await local.close()
    return _call_rows(rounds)


@contextlib.asynccontextmanager
async def _agent(home: Path) -> AsyncIterator[Any]:
    import mcp

    command = ["-m", "blockpty", "mcp", "--home", str(home)]
    server = mcp.StdioServerParameters(command=sys.executable, args=command, env=_environment())
    async with mcp.Client(server) as client:
        yield client


async def _run(conversation: Any) -> None:
    result = await conversation.run("true")
    assert result.exit_status == 0, result


async def _timed(call: Call) -> float:
    begin = time.perf_counter()
    await call()
    return (time.perf_counter() - begin) * 1000


def _call_rows(rounds: dict[str, list[list[float]]]) -> list[Row]:
    rows = []
    pooled = {name: [one for times in parts for one in times] for name, parts in rounds.items()}
    for name, parts in rounds.items():
        for percent in (50, 99):
            value, bare = (percentile(pooled[one], percent) for one in (name, PYTHON))
            beside: dict[str, Any] = {}
            if name != PYTHON:
                beside = {
                    "against": PYTHON, "against_value": bare, "ratio": value / bare, "ratio_of": "value / beside"
                }  # fmt: skip
            medians = [percentile(times, 50) for times in parts]
            if percent == 50:
                beside |= {"low": min(medians), "high": max(medians)}
            rows.append(Row("surfaces", f"{name}, p{percent}", value, "ms", **beside, note=NOTE_RUN))
    added = percentile(pooled[HTTP], 50) - percentile(pooled[PYTHON], 50)
    steps = [
        percentile(one, 50) - percentile(other, 50) for one, other in zip(rounds[HTTP], rounds[PYTHON], strict=True)
    ]
    rows.append(
        Row(
            "surfaces", "HTTP keep-alive adds, p50", added, "ms", aim=f"<= {HTTP_ADDS_MS:g} ms",
            met=added <= HTTP_ADDS_MS, low=min(steps), high=max(steps), note=NOTE_ADDS,
        )
    )  # fmt: skip
    return rows


# Many who wait


async def _waits(run: Run, server: _Server) -> Row:
    count, seconds = run.count(WAITS, 20), run.count(20, 1)
    async with Client(server.home, start=False) as client:
        places = [await client.open(shell="bash") for _ in range(run.count(10, 2))]
        without = await _cpu_percent(server, seconds)
        waits = [
            asyncio.ensure_future(places[number % len(places)].wait_for("never", timeout_ms=3_600_000))
            for number in range(count)
        ]
        # All have come to the server when each of its records says so.
        for place in places:
            begun = 0
            async for event in place.events():
                begun += event.type == "wait_begin"
                if begun == count // len(places):
                    break
        value = await _cpu_percent(server, seconds)
        assert not any(wait.done() for wait in waits)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        for place in places:
            await place.close()
    beside = "the same server, no client waits"
    return Row(
        "surfaces", f"{count} waits at once, of one core", value, "%", beside, without, value / max(without, 0.01),
        "value / beside", f"< {WAITS_CPU_PERCENT:g} %", value < WAITS_CPU_PERCENT, note=NOTE_WAITS,
    )  # fmt: skip


async def _cpu_percent(server: _Server, seconds: float) -> float:
    # What was begun before comes to rest.
    await asyncio.sleep(0.5)
    before, began = server.cpu_seconds(), time.perf_counter()
    await asyncio.sleep(seconds)
    return (server.cpu_seconds() - before) / (time.perf_counter() - began) * 100


# Many who watch


async def _events(run: Run, server: _Server) -> list[Row]:
    count, seconds = run.count(SUBSCRIBERS, 5), run.count(30, 1)
    async with Client(server.home, start=False) as client:
        watched = await client.open(shell="bash")
        # Not echoed and not printed: what is typed gives one event each, and nothing else.
        await watched.exec_interactive("stty -echo; echo ready; cat >/dev/null")
        await watched.wait_for("ready")
        seen = [event.seq async for event in watched.events(follow=False)]
        watchers = [_Watcher() for _ in range(count)]
        reading = [asyncio.ensure_future(one.read(server, watched.id, seen[-1] + 1)) for one in watchers]
        for one in watchers:
            await one.begun.wait()
        sizes: list[float] = []
        sent = 0
        before, began = server.cpu_seconds(), time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            await watched.send_keys("x")
            sent += 1
            if sent % EVENTS_PER_SECOND == 0 and passed > seconds / 3:
                sizes.append(server.resident_mb())
            await asyncio.sleep(max(0.0, began + sent / EVENTS_PER_SECOND - time.perf_counter()))
        taken = time.perf_counter() - began
        busy = (server.cpu_seconds() - before) / taken * 100
        for one in watchers:
            await one.has(sent)
        sizes.append(server.resident_mb())
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        await watched.ctrl_c()
        await watched.wait_for({"token": "PROMPT"})
        await watched.close()
    counts = [one.inputs for one in watchers]
    assert min(counts) == max(counts) == sent, (min(counts), max(counts), sent)
    growth = sizes[-1] - sizes[0]
    note = f"{NOTE_EVENTS}. {sent} events in {taken:.1f} s, {sum(counts)} delivered, none lost or twice"
    what = f"{count} subscribers"
    return [
        Row(
            "surfaces", f"{what}, growth of the server", growth, "MB", "its size after the first third", sizes[0],
            sizes[-1] / sizes[0], "at the end / beside", f"< {GROWTH_MB:g} MB", growth < GROWTH_MB,
            min(sizes), max(sizes), note,
        ),
        Row("surfaces", f"{what}, delivered to each", min(counts) / taken, "events/s", "sent", sent / taken,
            min(counts) / sent, "value / beside", note=note),
        Row("surfaces", f"{what}, of one core", busy, "%", note=note),
    ]  # fmt: skip


class _Watcher:
    """One subscriber that does nothing but count the events it was sent."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.inputs = 0
        self._more = asyncio.Event()

    async def read(self, server: _Server, conversation_id: str, from_seq: int) -> None:
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            f"GET /v1/conversations/{conversation_id}/events?from_seq={from_seq} HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Authorization: Bearer {owner_token(server.home)}\r\n\r\n".encode()
        )
        try:
            assert b" 200 " in await reader.readline()
            rest = b""
            while piece := await reader.read(1 << 16):
                self.begun.set()
                lines = (rest + piece).split(b"\n")
                rest = lines.pop()
                self.inputs += sum(line == b"event: input" for line in lines)
                self._more.set()
        finally:
            writer.close()

    async def has(self, number: int) -> None:
        """Return when so many have come."""
        while self.inputs < number:
            self._more.clear()
            await self._more.wait()


# A command of the command line


async def _status(run: Run, server: _Server) -> list[Row]:
    async with Client(server.home, start=False) as client:
        conversation = await client.open(shell="bash")
        commands = {
            PASS: ["-c", "pass"],
            IMPORT: ["-c", "import blockpty"],
            CLI: ["-m", "blockpty", "status", conversation.id, "--home", str(server.home)],
        }
        samples: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(run.count(25, 2) + 1):
            for name, arguments in commands.items():
                taken = await asyncio.to_thread(_process_ms, arguments)
                if number:
                    samples[name].append(taken)
        await conversation.close()
    rows = []
    for name in (CLI, IMPORT):
        value, bare = median(samples[name]), median(samples[PASS])
        rows.append(
            Row(
                "surfaces", f"{name}, p50", value, "ms", PASS, bare, value / bare, "value / beside",
                f"< {STATUS_MS:g} ms" if name == CLI else None, value < STATUS_MS if name == CLI else None,
                min(samples[name]), max(samples[name]), NOTE_CLI,
            )
        )  # fmt: skip
    return rows


def _process_ms(arguments: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=_environment(), stdout=subprocess.DEVNULL, check=True, cwd="/")
    return (time.perf_counter() - begin) * 1000
