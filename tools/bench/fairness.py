"""How long others wait while one operation goes over many bytes: the longest echo in another conversation."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.report import Row, Run
from blockpty import Engine
from blockpty.runtime.conversation import Conversation

AIM_MS = 50.0
AIM_TURN_MS = 10.0
# For each operation, where echoes take so long that there are not enough of them.
MOST_SECONDS = 8.0
_WORDS = b"session token refresh key expired pass auth failed secret store lookup cache user request".split()
NOTE = "fairness: wall time of a line typed into cat until its echo, in the same engine; beside: nothing else"
NOTE_TURN = (
    "fairness: processor time that the loop's thread takes for one turn of the loop, whatever else the machine does;"
    " beside: nothing else"
)


def measure(run: Run) -> list[Row]:
    """Measure every operation on a log whose lines are full of words that name secrets."""
    return asyncio.run(_measure(run.place, (run.megabytes or run.count(16, 1)) * 1024 * 1024, run.count(200, 10)))


def log(size: int) -> bytes:
    """Return a log of about so many bytes, each line with several words that need a second look."""
    chosen, lines, length = random.Random(16), [], 0
    while length < size:
        words = b" ".join(chosen.choice(_WORDS) for _ in range(12))
        lines.append(b"2026-11-22 17:00:01 svc[%d] %s token=ok key: %d auth=basic\n" % (len(lines), words, length))
        length += len(lines[-1])
    return b"".join(lines)


async def _measure(place: Path, size: int, least: int) -> list[Row]:
    path = place / "it.log"
    path.write_bytes(log(size))
    async with Engine(place / "home") as engine:
        big, other = await engine.open("big", shell="bash"), await engine.open("other", shell="bash")
        block_id = (await big.run(f"cat {path}", timeout_ms=120_000, max_bytes=1)).block.block_id
        await other.exec_interactive("cat")
        counter = itertools.count()
        bare = await _beside(other, counter, lambda: asyncio.sleep(0.2), least)
        rows: list[Row] = []
        for what, operation in _operations(engine, big, block_id, path):
            rows += _rows(what, await _beside(other, counter, operation, least), bare)
        return sorted(rows, key=lambda row: row.note != NOTE)


def _operations(
    engine: Engine, big: Conversation, block_id: str, path: Path
) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
    whole = 64 * 1024 * 1024
    found: list[tuple[str, Callable[[], Awaitable[object]]]] = [
        (f"read {view}", lambda view=view: big.read(block_id=block_id, max_bytes=whole, view=view))  # type: ignore[misc]
        for view in ("text", "raw", "rendered")
    ]
    found += [
        (f"export {style}", lambda style=style: big.export(style))  # type: ignore[misc]
        for style in ("cast", "text", "html", "jsonl")
    ]
    found += [
        ("run", lambda: big.run(f"cat {path}", max_bytes=whole, timeout_ms=120_000)),
        ("search", lambda: engine.search(r"no \w+ such \d{9}", mode="regex", timeout_ms=10_000)),
        ("verify", big.verify),
        ("wait", lambda: big.wait_for({"regex": r"no \w+ such \d{9}"}, from_cursor=0, timeout_ms=0)),
        ("replay", lambda: _replayed(big)),
        ("screen at", lambda: big.screen(at=big.cursor - 1000)),
        ("diff", lambda: big.diff(block_id, block_id)),
    ]
    return found


async def _replayed(conversation: Conversation) -> None:
    async for _ in conversation.replay(speed=0):
        pass


async def _beside(
    other: Conversation, counter: itertools.count[int], operation: Callable[[], Awaitable[object]], least: int
) -> tuple[list[float], list[float]]:
    """Return how long each echo took while an operation went on, and each turn of the loop that was looked at."""
    turns: list[float] = []
    looking = asyncio.ensure_future(_look_at_turns(turns))
    try:
        return await _echoes(other, counter, operation, least), turns
    finally:
        looking.cancel()
        turns.sort()


async def _look_at_turns(turns: list[float]) -> None:
    while True:
        begin = time.thread_time()
        await asyncio.sleep(0)
        turns.append((time.thread_time() - begin) * 1000)
        await asyncio.sleep(0.001)


async def _echoes(
    other: Conversation, counter: itertools.count[int], operation: Callable[[], Awaitable[object]], least: int
) -> list[float]:
    """Return how long each echo took, in ms, while an operation went on, again until there are enough."""
    taken: list[float] = []
    ends_by = time.monotonic() + MOST_SECONDS
    while not taken or (len(taken) < least and time.monotonic() < ends_by):
        task = asyncio.ensure_future(operation())
        await asyncio.sleep(0)
        while True:
            text = f"line {next(counter)} end"
            begin = time.perf_counter()
            cursor = (await other.send(f"{text}\n")).cursor
            await other.wait_for(text, from_cursor=cursor, timeout_ms=60_000)
            taken.append((time.perf_counter() - begin) * 1000)
            if task.done():
                break
            await asyncio.sleep(0.001)
        await task
    return sorted(taken)


def _rows(
    what: str, taken: tuple[list[float], list[float]], bare: tuple[list[float], list[float]]
) -> tuple[Row, Row]:
    return (
        _row(f"echo beside {what}, p99", taken[0], bare[0], AIM_MS, NOTE),
        _row(f"turn of the loop beside {what}, p99", taken[1], bare[1], AIM_TURN_MS, NOTE_TURN),
    )


def _row(what: str, taken: list[float], bare: list[float], aim_ms: float, note: str) -> Row:
    late, usual = taken[int(len(taken) * 0.99)], bare[int(len(bare) * 0.99)]
    return Row(
        "fairness", what, late, "ms", "alone", usual, late / usual, "value / beside",
        f"< {aim_ms:.0f} ms", late < aim_ms, taken[0], taken[-1], note,
    )  # fmt: skip
