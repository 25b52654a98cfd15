"""Taking in output: stream, timeline, events and `.out`, beside a loop that only splices the same into a file."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from bench.report import Row, Run, median, skipped
from bench.streams import log
from bench.terminals import on_terminal, read_until, splice_all
from blockpty import Conversation, Engine
from blockpty.spool.line_reader import last_line

AIM = 0.9
NOTE = (
    "ingest: MB/s of terminal bytes, from submitting the command to the return of the wait for its prompt (its end"
    " record and its .out file are on disk by then; the engine parses and writes live, in another process than the"
    " recorder)"
)
NOTE_BARE = (
    "ingest beside: the same command on an equal terminal, started by a line, epoll + splice to a pipe + splice"
    " to a file until the terminal's end, in one process; order alternates, ratio and range are of the pairs"
)


def measure(run: Run) -> list[Row]:
    """Print the same in both, in turn."""
    if not hasattr(os, "splice"):
        return [skipped("ingest", "seq and coloured logs", "needs splice")]
    return asyncio.run(_measure(run))


async def _measure(run: Run) -> list[Row]:
    last = run.count(5_000_000, 100_000)
    coloured = run.place / "coloured.log"
    coloured.write_bytes(log(run.count(40_000_000, 500_000), coloured=True))
    rows = []
    async with Engine(run.place / "home") as engine:
        for number, (what, command, size) in enumerate(
            (
                (f"seq 1 {last}", f"seq 1 {last}", _size_of_seq(last)),
                ("cat of a coloured log", f"cat {coloured}", coloured.stat().st_size),
            )
        ):
            conversation = await engine.open(f"ingest{number}", shell="bash")
            rows.append(await _compare(run, conversation, what, command, size))
            await conversation.close()
    return rows


async def _compare(run: Run, conversation: Conversation, what: str, command: str, size: int) -> Row:
    ratios, ours, bare = [], [], []
    for number in range(run.pairs(9) + 1):
        if number % 2:
            there = _bare(command, run.place / "bare")
            here = await _ours(conversation, command, size)
        else:
            here = await _ours(conversation, command, size)
            there = _bare(command, run.place / "bare")
        if number:  # the first pair warms up
            ours.append(here)
            bare.append(there)
            ratios.append(here / there)
    return Row(
        "ingest", what, median(ours), "MB/s", "splice only", median(bare), median(ratios), "median of value / beside",
        f"ratio >= {AIM}", median(ratios) >= AIM, min(ratios), max(ratios), f"{NOTE}; {NOTE_BARE}",
    )  # fmt: skip


async def _ours(conversation: Conversation, command: str, size: int) -> float:
    begin = time.perf_counter()
    made = await conversation.exec_block(command)
    result = await conversation.wait_for({"token": "PROMPT"}, from_cursor=made.cursor, timeout_ms=600_000)
    taken = time.perf_counter() - begin
    assert result.reason == "prompt", result
    record, _ = last_line(conversation.layout.blocks)
    assert record is not None and record["block_id"] == made.block_id and record["out_bytes"] == size, record
    moved = record["span"][1] - record["span"][0]
    return float(moved / taken / 1e6)


def _bare(command: str, path: Path) -> float:
    # `read` keeps the start of the shell out of the time.
    with on_terminal(["bash", "--norc", "-c", f"read -rp go -s; {command}"]) as master:
        read_until(master, b"go")
        begin = time.perf_counter()
        os.write(master, b"\r")
        moved = splice_all(master, path)
        taken = time.perf_counter() - begin
    path.unlink()
    return moved / taken / 1e6


def _size_of_seq(last: int) -> int:
    """Bytes that `seq 1 last` prints."""
    size, digits = 0, 1
    while 10 ** (digits - 1) <= last:
        size += (min(last, 10**digits - 1) - 10 ** (digits - 1) + 1) * (digits + 1)
        digits += 1
    return size
