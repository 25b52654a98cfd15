"""The machine on recorded streams, in the pieces in which an engine reads them; and whether its memory stays flat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.report import Row, Run, median, skipped
from bench.streams import long_block, short_blocks
from blockpty.engine.machine import Machine
from blockpty.engine.marks import INTRODUCER
from blockpty.engine.waiter import Waiter
from blockpty.model.conditions import Match, parse_conditions
from blockpty.model.entries import Entry

TOP = Path(__file__).resolve().parents[2]
AIMS = {"plain": 200.0, "coloured": 100.0}
# What an allocator may keep without anything having leaked.
FLAT_MB = 2.0
BARE = "bytes.find only"
WAITS: dict[str, Match] = {"a substring": "never printed", "a regex": {"regex": r"never (\w+) printed"}}
NOTE = (
    "feed: Machine.feed and .apply over one long block in 64 KiB pieces with a tick every 128 KiB, events and signals"
    " made; beside: one find of the mark's introducer in each piece"
)
NOTE_WAIT = "feed, with a wait: the same, and a wait on the text view that does not match looks at everything"
NOTE_FLAT = "feed, memory: growth of the resident set of a process of its own between 64 MB and the end"

Steps = Sequence["bytes | Entry"]


def measure(run: Run) -> list[Row]:
    """Feed both kinds of log in turn, with and without a wait."""
    size = run.count(64, 4) * 1024 * 1024
    streams = {kind: long_block(size, coloured=kind == "coloured") for kind in AIMS}
    samples: dict[tuple[str, str], list[float]] = {}
    for number in range(run.pairs(7) + 1):
        for kind, steps in streams.items():
            taken = {"machine": _feed(steps), BARE: _find(steps)}
            for wait, match in WAITS.items():
                taken[wait] = _feed(steps, match)
            for name, seconds in taken.items():
                if number:  # the first round warms up
                    samples.setdefault((kind, name), []).append(size / seconds / 1e6)
    rows = [_row(kind, name, samples) for kind in AIMS for name in ("machine", *WAITS)]
    rows.append(_blocks(run))
    return [*rows, *_flat(run)]


def _row(kind: str, name: str, samples: dict[tuple[str, str], list[float]]) -> Row:
    rates, bare = samples[kind, name], median(samples[kind, BARE])
    machine = name == "machine"
    value = median(rates)
    return Row(
        "feed", f"{kind} log" if machine else f"{kind} log, with a wait for {name}", value, "MB/s", BARE, bare,
        value / bare, "value / beside", f">= {AIMS[kind]:.0f} MB/s" if machine else None,
        value >= AIMS[kind] if machine else None, min(rates), max(rates), NOTE if machine else NOTE_WAIT,
    )  # fmt: skip


def _feed(steps: Steps, match: Match | None = None) -> float:
    machine = Machine()
    waiter = None
    if match is not None:
        waiter = Waiter(parse_conditions(match), cursor=0)
        waiter.attach(machine.state)
    begin = time.perf_counter()
    for step in steps:
        _, signals = machine.feed(step) if isinstance(step, bytes) else machine.apply(step)
        if waiter is not None:
            data = step if isinstance(step, bytes) else b""
            assert waiter.advance(data, signals, machine.classified) is None
    return time.perf_counter() - begin


def _find(steps: Steps) -> float:
    begin = time.perf_counter()
    for step in steps:
        if isinstance(step, bytes):
            step.find(INTRODUCER)
    return time.perf_counter() - begin


def _blocks(run: Run) -> Row:
    count = run.count(5000, 200)
    steps = short_blocks(count)
    times = [_feed(steps) for _ in range(run.pairs(7))]
    rates = [count / seconds for seconds in times]
    return Row(
        "feed", "blocks of one line each", median(rates), "/s", low=min(rates), high=max(rates),
        note="feed, blocks: submission, marks, output, silence of each; no aim, it bounds a catch-up after a restart",
    )  # fmt: skip


def _flat(run: Run) -> list[Row]:
    if sys.platform != "linux":
        return [skipped("feed", "memory", "needs /proc")]
    size = run.count(1024, 96) * 1024 * 1024
    rows = []
    for name, match in (("machine", None), *WAITS.items()):
        code = f"from bench.feed import grown; grown({size}, {match!r})"
        environment = {**os.environ, "PYTHONPATH": f"{TOP}{os.pathsep}{TOP / 'tools'}"}
        output = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        begin, end = json.loads(output.stdout)
        what = "machine" if match is None else f"with a wait for {name}"
        rows.append(
            Row(
                "feed", f"memory over {size / 2**30:.3g} GB, {what}", (end - begin) / 1e6, "MB", "after 64 MB",
                begin / 1e6, end / begin, "end / after 64 MB", f"< {FLAT_MB:g} MB more", end - begin < FLAT_MB * 1e6,
                note=NOTE_FLAT,
            )
        )  # fmt: skip
    return rows


def grown(size: int, match: Match | None) -> None:
    """Feed coloured logs and print the resident set after 64 MB and at the end, in bytes."""
    steps = long_block(size, coloured=True)
    machine = Machine()
    waiter = None
    if match is not None:
        waiter = Waiter(parse_conditions(match), cursor=0)
        waiter.attach(machine.state)
    begin, taken = 0, 0
    for step in steps:
        data = step if isinstance(step, bytes) else b""
        _, signals = machine.feed(step) if isinstance(step, bytes) else machine.apply(step)
        if waiter is not None:
            waiter.advance(data, signals, machine.classified)
        taken += len(data)
        if not begin and taken >= 64 * 1024 * 1024:
            begin = _resident()
    print(json.dumps([begin, _resident()]))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
