"""`blockpty view` on a terminal of its own: how soon it is there, how soon a key is seen, what it costs to watch."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Any, Final

from bench.report import Row, Run, median, percentile
from blockpty import Client

TOP: Final = Path(__file__).resolve().parents[2]
NOTE = (
    "viewer, view: from the start of the process to its first screen with the live terminal in it; a key from its"
    " write into the terminal to its echo in what the program draws; in a conversation whose `cat` echoes"
)


class _Terminal:
    """The program, and the end of its terminal at which a person would sit."""

    def __init__(self, home: Path, conversation_id: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(TOP)}
            words = [sys.executable, "-m", "blockpty", "--home", str(home), "view", conversation_id]
            os.execve(sys.executable, words, environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 190, 0, 0))
        os.set_blocking(self.fd, False)
        self.shown = b""

    async def until(self, text: bytes, seconds: float = 60) -> float:
        """Return when a text has been drawn, in the time of perf_counter."""
        deadline = time.perf_counter() + seconds
        while text not in self.shown:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{text!r} is not drawn: {self.shown[-500:]!r}")
            try:
                self.shown += os.read(self.fd, 65536)
            except BlockingIOError:
                await asyncio.sleep(0.001)
        return time.perf_counter()

    def type(self, keys: bytes) -> float:
        """Type, and forget what was shown; returns when."""
        self.shown = b""
        os.write(self.fd, keys)
        return time.perf_counter()

    async def end(self) -> None:
        """Take the terminal away, as closing a window does."""
        os.kill(self.pid, 15)
        ended = asyncio.ensure_future(asyncio.to_thread(os.waitpid, self.pid, 0))
        while not ended.done():
            try:
                os.read(self.fd, 65536)
            except OSError:
                await asyncio.sleep(0.01)
        os.close(self.fd)

    def cpu_seconds(self) -> float:
        """Return how long the program has run on a processor."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure_program(run: Run, home: Path) -> list[Row]:
    """Start it several times, type into it, and let it watch."""
    async with Client(home, start=False) as client:
        opened = await client.open("seen", shell="bash")
        await opened.run("echo seen-$((40 + 2))")
        starts = []
        for number in range(run.pairs(7) + 1):
            begun = time.perf_counter()
            terminal = _Terminal(home, "seen")
            ready = await terminal.until(b"seen-42")
            if number:  # the first one compiles what is imported
                starts.append((ready - begun) * 1000)
            await terminal.end()
        await opened.exec_interactive("cat")
        terminal = _Terminal(home, "seen")
        await terminal.until(b"seen-42")
        terminal.type(b"t")
        await terminal.until(b"you type")
        times = []
        for number in range(run.count(200, 8)):
            # Each of its own, which nothing else on the screen can be taken for.
            key = chr(0x4E00 + number).encode()
            typed = terminal.type(key if number % 20 else b"\r" + key)
            times.append((await terminal.until(key) - typed) * 1000)
            await asyncio.sleep(0.05)
        terminal.type(b"\x1d")
        await terminal.until(b"agent types")
        interrupted = await opened.ctrl_c()
        await opened.wait_for({"token": "PROMPT"}, from_cursor=interrupted.cursor)
        busy = await _busy(run, opened, terminal)
        await terminal.end()
        await opened.close()
    start, key = median(starts), median(times)
    return [
        Row("viewer", "blockpty view, start", start, "ms", aim="<= 800 ms", met=start <= 800, low=min(starts),
            high=max(starts), note=NOTE),
        Row("viewer", "blockpty view, key to screen, p50", key, "ms", aim="<= 30 ms", met=key <= 30, low=min(times),
            high=percentile(times, 95), note=f"{NOTE}; the range ends at the 95th percentile"),
        Row("viewer", "blockpty view of 10 lines/s, of one core", busy, "%", aim="< 10 %", met=busy < 10, note=NOTE),
    ]  # fmt: skip


async def _busy(run: Run, opened: Any, terminal: _Terminal) -> float:
    seconds = run.count(15, 1)
    begin = await opened.exec_block(f"for ((i = 0; i < {seconds + 2} * 10; i++)); do echo line $i; sleep 0.1; done")
    await terminal.until(b"line 5")
    before, began = terminal.cpu_seconds(), time.perf_counter()
    deadline = began + seconds
    while time.perf_counter() < deadline:
        try:
            os.read(terminal.fd, 65536)
        except BlockingIOError:
            await asyncio.sleep(0.02)
    used = (terminal.cpu_seconds() - before) / (time.perf_counter() - began) * 100
    await opened.wait_for({"token": "PROMPT"}, from_cursor=begin.cursor, timeout_ms=60_000)
    return used
