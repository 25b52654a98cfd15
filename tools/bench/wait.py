"""Waiting: from the byte being there to be read to the return of the waiter, beside a loop that reads the terminal.

The program in the terminal takes the time (the system-wide monotonic clock) just before it writes and prints it, so
the write itself is counted on both sides. It gets its order to print through a FIFO, not through the terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import sys
import time
from collections.abc import Awaitable, Callable

from bench.bare_path import BarePath, bare_path
from bench.report import Row, Run, percentile
from bench.terminals import CHUNK, on_terminal
from blockpty import Conversation, Engine
from blockpty.host.protocol import SILENCE_MS
from blockpty.model.conditions import Match

AIM_MS = 1.0
WARM_UP = 3
PATH = "two bare processes"
BARE = "add_reader on the master"
UNTERMINATED = "regex on an unterminated line"
PRINTER = r"""
import os, sys, time
gate = os.open(sys.argv[1], os.O_RDWR)
os.write(1, b"ready\n")
texts = {b"t": b"\nat %d needle\n", b"l": b"\nat %d port 8123\n", b"u": b"\nat %d port 8123"}
while (which := os.read(gate, 1)) in texts:
    os.write(1, texts[which] % time.monotonic_ns())
"""
_AT = re.compile(r"at (\d+) (?:needle|port 8123)")
NOTE = (
    "wait: from just before the program's write(2) to the return of wait_for in the caller's task; the wait began"
    " 2 to 8 ms before, gaps at random"
)
NOTE_SILENCE = f"wait, unterminated line: less the {SILENCE_MS} ms of silence after which such a line counts as settled"
NOTE_PATH = (
    "wait, bare path: the same program behind a process that copies what it prints into a file; `needle in buffer` in"
    " one on asyncio that reads the file, and nothing else"
)
NOTE_BARE = "wait beside: the same program, read with loop.add_reader on the master, `needle in buffer`, a future set"
NOTES = {UNTERMINATED: NOTE_SILENCE, PATH: NOTE_PATH, BARE: NOTE_BARE}


def measure(run: Run) -> list[Row]:
    """Let the program print, one line at a time, in turn here and there."""
    return asyncio.run(_measure(run))


async def _measure(run: Run) -> list[Row]:
    script = run.place / "printer.py"
    script.write_text(PRINTER)
    gates = [run.place / name for name in ("ours", "bare", "path")]
    for path in gates:
        os.mkfifo(path, 0o600)
    samples: dict[str, list[float]] = {}
    async with Engine(run.place / "home") as engine, contextlib.AsyncExitStack() as stack:
        conversation = await engine.open("wait", shell="bash")
        ours, bare, behind = (os.open(path, os.O_RDWR) for path in gates)
        for gate in (ours, bare, behind):
            stack.callback(os.close, gate)
        await conversation.exec_interactive(f"'{sys.executable}' -S '{script}' '{gates[0]}'")
        await conversation.wait_for("ready")
        master = stack.enter_context(on_terminal([sys.executable, "-S", str(script), str(gates[1])]))
        reader = _Reader(master)
        stack.callback(reader.close)
        await reader.wait("ready")
        master = stack.enter_context(on_terminal([sys.executable, "-S", str(script), str(gates[2])]))
        path = stack.enter_context(bare_path(master, run.place / "stream"))
        await path.wait(b"ready")
        pattern: Match = {"regex": r"port (\d+)"}
        kinds: dict[str, Callable[[], Awaitable[str]]] = {
            "substring": lambda: _ours(conversation, ours, b"t", "needle"),
            "regex on a whole line": lambda: _ours(conversation, ours, b"l", pattern),
            UNTERMINATED: lambda: _ours(conversation, ours, b"u", pattern),
            PATH: lambda: _on_path(path, behind),
            BARE: lambda: reader.line(bare),
        }
        for number in range(run.count(20, 5) * run.pairs(10) + WARM_UP):
            for name, cycle in kinds.items():
                text = await cycle()
                done = time.monotonic_ns()
                if number >= WARM_UP:
                    samples.setdefault(name, []).append((done - int(_AT.findall(text)[-1])) / 1e6)
        os.write(ours, b"q")
        await conversation.wait_for({"token": "PROMPT"})
    return _rows(samples)


async def _ours(conversation: Conversation, gate: int, which: bytes, match: Match) -> str:
    waiting = asyncio.ensure_future(conversation.wait_for(match))
    await _gap()
    os.write(gate, which)
    result = await waiting
    assert result.matched, result
    return result.text


async def _on_path(path: BarePath, gate: int) -> str:
    waiting = asyncio.ensure_future(path.wait(b"needle"))
    await _gap()
    os.write(gate, b"t")
    return await waiting


async def _gap() -> None:
    # Not to wait for anything: what comes at random times hits all phases of timers and caches alike.
    await asyncio.sleep(random.uniform(0.002, 0.008))


class _Reader:
    """The least that a program can do to wait for a text on a terminal without blocking its loop."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._buffer = b""
        self._needle = b""
        self._future: asyncio.Future[str] | None = None
        os.set_blocking(master, False)
        asyncio.get_running_loop().add_reader(master, self._readable)

    async def wait(self, needle: str) -> str:
        self._needle = needle.encode()
        self._future = asyncio.get_running_loop().create_future()
        return await self._future

    async def line(self, gate: int) -> str:
        waiting = asyncio.ensure_future(self.wait("needle"))
        await _gap()
        os.write(gate, b"t")
        return await waiting

    def _readable(self) -> None:
        self._buffer += os.read(self._master, CHUNK)
        if self._needle in self._buffer and self._future is not None and not self._future.done():
            self._future.set_result(self._buffer.decode())
            self._buffer = b""

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)


def _rows(samples: dict[str, list[float]]) -> list[Row]:
    rows = []
    for name, times in samples.items():
        compared, ours = name != BARE, name not in (PATH, BARE)
        for percent in (50, 99):
            value, bare = percentile(times, percent), percentile(samples[BARE], percent)
            if name == UNTERMINATED:
                value -= SILENCE_MS
            rows.append(
                Row(
                    "wait", f"{name}, p{percent}", value, "ms", BARE if compared else None, bare if compared else None,
                    value / bare if compared else None, "value / beside",
                    f"< {AIM_MS:g} ms" if ours and percent == 50 else None,
                    value < AIM_MS if ours and percent == 50 else None,
                    note=NOTES.get(name, NOTE),
                )
            )  # fmt: skip
    return rows
