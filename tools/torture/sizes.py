"""A gigabyte in one block: what the engine keeps of it in memory, and how fast it goes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import blockpty
from tests.support.processes import directory_of_homes
from tools.bench.terminals import splice_all
from tools.torture.report import Row

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
GROWTH_BYTES = 32 * 1024 * 1024
# `head -c` of an endless source: lines of 79 bytes, one line without an end, one OSC without an end.
SOURCES = {
    "lines": "yes {line} | head -c {size}",
    "one line": "yes {line} | tr -d '\\n' | head -c {size}",
    "one OSC": "printf '\\033]0;'; yes {line} | tr -d '\\n' | head -c {size}; printf '\\a'",
}
LINE = "abcdefghi-" * 7 + "abcdefgh"


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


@contextlib.asynccontextmanager
async def watched(peak: list[int]) -> AsyncIterator[None]:
    """Note the largest resident size while something runs."""

    async def watch() -> None:
        while True:
            peak[0] = max(peak[0], resident())
            await asyncio.sleep(0.02)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()


def bare(command: str, path: Path | None = None) -> float:
    """Return the seconds that the same command takes on a PTY that is only read, or moved into a file by splice."""
    begin = time.monotonic()
    pid, master = pty.fork()
    if not pid:
        os.execv(shutil.which("bash") or "/bin/bash", ["bash", "--norc", "-c", command])
    if path is not None:
        splice_all(master, path)
    else:
        with contextlib.suppress(OSError):
            while os.read(master, 65536):
                pass
    os.waitpid(pid, 0)
    os.close(master)
    return time.monotonic() - begin


def used(process: int) -> float:
    """Return the seconds of processor time that a process has spent."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


async def _one(home: Path, name: str, size: int, row: Row) -> None:
    command = SOURCES[name].format(line=LINE, size=size)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        # What is loaded with the first command and its end is no growth.
        await conversation.run(SOURCES[name].format(line=LINE, size=4 * 1024 * 1024), timeout_ms=600_000)
        before = resident()
        peak = [before]
        async with watched(peak):
            recorder = (await conversation.host.hello()).recorder
            begin, worked, moving = time.monotonic(), time.process_time(), used(recorder)
            done = await conversation.run(command, timeout_ms=3_600_000)
            seconds = time.monotonic() - begin
            worked, moving = time.process_time() - worked, used(recorder) - moving
        block = done.block
        span = (block.span[1] or 0) - block.span[0]
        if done.timed_out or span < size:
            row.wrong.append(f"{span} of {size} bytes")
        # The end can be read at once, wherever it is.
        asked = time.monotonic()
        await conversation.read(from_cursor=(block.span[1] or 0) - 4096, max_bytes=4096)
        tail = time.monotonic() - asked
        await conversation.close()
    # Measured right after, so that all had the same neighbours.
    only_read = await asyncio.to_thread(bare, command)
    bare_worked = time.process_time()
    moved = await asyncio.to_thread(bare, command, home.parent / "bare")
    bare_worked = time.process_time() - bare_worked
    (home.parent / "bare").unlink()
    grown = peak[0] - before
    row.tries = 1
    row.found |= {
        "engine grew": f"{grown / 2**20:.1f} MiB", "speed": f"{size / 1e6 / seconds:.1f} MB/s",
        "a terminal that is only read": f"{size / 1e6 / only_read:.1f} MB/s", "share": f"{only_read / seconds:.2f}",
        "one that is moved into a file, not synced": f"{size / 1e6 / moved:.1f} MB/s",
        "share of that": f"{moved / seconds:.2f}",
        "processor time": f"engine {worked:.1f} s, recorder {moving:.1f} s; what moves into a file {bare_worked:.1f} s",
        "last 4 KiB read in": f"{tail * 1000:.1f} ms", "load": f"{os.getloadavg()[0]:.1f}",
    }  # fmt: skip
    if grown > GROWTH_BYTES:
        row.wrong.append(f"memory grew by {grown} bytes")


def one_block(mebibytes: int) -> Iterator[Row]:
    """Yield a row for each source."""
    for name in SOURCES:
        row = Row(f"{mebibytes:,} MiB in one block: {name}")
        with directory_of_homes("torture") as folder:
            asyncio.run(_one(folder / "home", name, mebibytes * 1024 * 1024, row))
        yield row
