"""Screens: drawing what was printed, looking at it, and what a screen costs in memory; beside stock pyte and tmux."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyte

from bench.report import Row, Run, median, skipped
from bench.streams import log
from bench.terminals import on_terminal, read_some
from blockpty import Conversation, Engine
from blockpty.screen import Emulator, LazyScreen, fastforward, snapshot

AIM_CATCH_UP = 300.0
AIM_FULL = 8.0
AIM_SNAPSHOT_MS = 1.0
AIM_MB = 2.0
CHUNK = 64 * 1024
PYTE = "stock pyte"
NOTE = (
    "screen: a lazy screen of 80x24 that is looked at once, after all of it; beside: stock pyte drawing the first part"
    " in pieces of 4 KiB, exceptions swallowed; MB per second of processor time, since nothing here waits"
)
NOTE_DRAWN = "screen, every byte drawn: the emulator without fast-forward, in pieces of 64 KiB"
NOTE_TMUX = (
    "screen, tmux: `cat` of the same bytes in a pane, so the kernel's terminal is part of its time; by the clock"
)
NOTE_FULL = "screen, full-screen programs: recorded from a terminal just now and repeated, in pieces of 64 KiB"
NOTE_SNAPSHOT = "screen, snapshot: of the recorded vim, no row known from before; beside: pyte's `display`, text alone"
NOTE_POLLED = "screen, polled: `cat` of a log, to the answer of run; the looking is a task of the same engine; in pairs"
NOTE_MEMORY = "screen, memory: by tracemalloc, after a coloured log, with 100 rows of history; pyte without history"


def measure(run: Run) -> list[Row]:
    """Measure each in turn with what it stands beside."""
    size = run.count(24, 1) * 1024 * 1024
    logs = {
        "numbered lines": b"".join(b"%d\r\n" % number for number in range(size // 9)),
        "a plain log": log(size, coloured=False).replace(b"\n", b"\r\n"),
        "a coloured log": log(size, coloured=True).replace(b"\n", b"\r\n"),
    }
    rows = []
    for name, data in logs.items():
        rows.append(_beside_pyte(run, f"catch-up, {name}", data, _catch_up, NOTE, AIM_CATCH_UP))
        rows.append(_beside_pyte(run, f"every byte drawn, {name}", data[: len(data) // 8], _draw, NOTE_DRAWN, None))
        rows.append(_beside_tmux(run, name, data))
    for program in ("vim", "less", "top"):
        rows.append(_full(run, program))
    rows += _snapshots(run)
    rows.append(asyncio.run(_polled(run)))
    return [*rows, _memory(run)]


def _rate(
    run: Run, data: bytes, draw: Callable[[bytes], object], clock: Callable[[], float] = time.process_time
) -> list[float]:
    rates = []
    for _ in range(run.pairs(5)):
        begin = clock()
        draw(data)
        rates.append(len(data) / (clock() - begin) / 1e6)
    return rates


def _catch_up(data: bytes) -> None:
    screen = LazyScreen(lambda begin, end: data[begin:end])
    screen.advance(len(data))
    screen.snapshot()


def _draw(data: bytes) -> Emulator:
    emulator = Emulator()
    for at in range(0, len(data), CHUNK):
        emulator.feed(data[at : at + CHUNK])
    return emulator


def _stock(data: bytes) -> pyte.Screen:
    screen = pyte.Screen(80, 24)
    stream = pyte.ByteStream(screen)
    for at in range(0, len(data), 4096):
        try:
            stream.feed(data[at : at + 4096])
        except Exception:  # noqa: BLE001 - it raises on ordinary output; the rest of the piece is lost
            continue
    return screen


def _beside_pyte(
    run: Run, what: str, data: bytes, draw: Callable[[bytes], object], note: str, aim: float | None
) -> Row:
    rates = _rate(run, data, draw)
    stock = median(_rate(run, data[: run.count(400, 20) * 1000], _stock))
    value = median(rates)
    return Row(
        "screen", what, value, "MB/s", PYTE, stock, value / stock, "value / beside",
        None if aim is None else f">= {aim:.0f} MB/s", None if aim is None else value >= aim, min(rates), max(rates),
        note,
    )  # fmt: skip


def _beside_tmux(run: Run, name: str, data: bytes) -> Row:
    what = f"catch-up beside tmux, {name}"
    if shutil.which("tmux") is None:
        return skipped("screen", what, "tmux is not installed")
    file, socket = run.place / "printed", run.place / "tmux"
    file.write_bytes(data)
    rates, others = [], []
    for _ in range(run.pairs(3)):
        rates += _rate(Run(run.place, True), data, _catch_up, time.perf_counter)
        others.append(len(data) / _tmux(file, socket) / 1e6)
    value, other = median(rates), median(others)
    return Row(
        "screen", what, value, "MB/s", "tmux", other, value / other, "value / beside",
        low=min(rates), high=max(rates), note=NOTE_TMUX,
    )  # fmt: skip


def _tmux(file: Path, socket: Path) -> float:
    tmux = ["tmux", "-S", str(socket), "-f", os.devnull]
    command = f"cat {file}; tmux -S {socket} wait-for -S done; exec sleep 1000"
    begin = time.perf_counter()
    subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", command], check=True, timeout=60)
    subprocess.run([*tmux, "wait-for", "done"], check=True, timeout=60)
    taken = time.perf_counter() - begin
    subprocess.run([*tmux, "kill-server"], check=True, timeout=60)
    return taken


_KEYS = {
    "vim": [b"\x04"] * 8 + [b"j"] * 40 + [b"\x15"] * 8 + [b"ihello\x1b"] * 6 + [b"dd"] * 6,
    "less": [b"j"] * 40 + [b" "] * 8 + [b"b"] * 8 + [b"k"] * 20,
    "top": [b"c", b"1"] * 6,
}


def _recorded(run: Run, program: str) -> bytes:
    """Return what a program prints while keys are typed."""
    file = str(Path(snapshot.__file__).with_name("emulator.py"))
    argv = {
        "vim": ["vim", "-u", "NONE", "-c", "syntax on", "-c", "set number", file],
        "less": ["less", file],
        "top": ["top", "-d", "0.2"],
    }
    data = b""
    with on_terminal(argv[program], TERM="xterm-256color") as master:
        for key in [b"", *_KEYS[program][:: run.count(1, 6)]]:
            os.write(master, key)
            while select.select([master], [], [], 0.05)[0]:
                data += read_some(master, data)
    return data


def _full(run: Run, program: str) -> Row:
    what = f"full screen, {program}"
    if shutil.which(program) is None:
        return skipped("screen", what, f"{program} is not installed")
    data = _recorded(run, program)
    data *= max(1, run.count(2_000_000, 50_000) // len(data))
    return _beside_pyte(run, what, data, _draw, NOTE_FULL, AIM_FULL)


def _snapshots(run: Run) -> list[Row]:
    if shutil.which("vim") is None:
        return [skipped("screen", "snapshot", "vim is not installed")]
    data = _recorded(run, "vim")
    stock = _stock(data)
    screen = LazyScreen(lambda begin, end: data[begin:end])
    screen.advance(len(data))
    screen.catch_up()
    rows = []
    for style in snapshot.FORMATS:

        def look(style: str = style) -> None:
            screen.catch_up().shown = {}
            snapshot.render(screen.snapshot(), style)

        times = [_milliseconds(look) for _ in range(run.count(50, 5))]
        beside = median([_milliseconds(lambda: stock.display) for _ in range(run.count(50, 5))])
        value = median(times)
        rows.append(
            Row(
                "screen", f"snapshot, {style}", value, "ms", PYTE, beside, value / beside, "value / beside",
                f"< {AIM_SNAPSHOT_MS:g} ms", value < AIM_SNAPSHOT_MS, min(times), max(times), NOTE_SNAPSHOT,
            )
        )  # fmt: skip
    return rows


async def _polled(run: Run) -> Row:
    """Put a long log through a conversation, with and without a client that looks ten times a second."""
    file = run.place / "long.log"
    with file.open("wb") as out:
        piece = log(run.count(10_000_000, 1_000_000), coloured=False)
        for _ in range(run.count(100, 2)):
            out.write(piece)
    ratios, looked, alone = [], [], []
    async with Engine(run.place / "home") as engine:
        conversation = await engine.open("polled", shell="bash")
        for number in range(run.pairs(3)):
            taken = {}
            for polling in (number % 2 == 0, number % 2 == 1):
                task = asyncio.ensure_future(_poll(conversation)) if polling else None
                begin = time.perf_counter()
                await conversation.run(f"cat {file}", timeout_ms=600_000)
                taken[polling] = time.perf_counter() - begin
                if task is not None:
                    task.cancel()
            looked.append(taken[True])
            alone.append(taken[False])
            ratios.append(taken[True] / taken[False])
        await conversation.close()
    file.unlink()
    return Row(
        "screen", "1 GB through a conversation, looked at ten times a second", median(looked), "s", "no client looks",
        median(alone), median(ratios), "median of value / beside", "ratio < 1.2", median(ratios) < 1.2,
        min(ratios), max(ratios), NOTE_POLLED,
    )  # fmt: skip


async def _poll(conversation: Conversation) -> None:
    while True:
        await conversation.screen()
        await asyncio.sleep(0.1)


def _milliseconds(look: Callable[[], object]) -> float:
    begin = time.perf_counter()
    look()
    return (time.perf_counter() - begin) * 1000


def _memory(run: Run) -> Row:
    data = log(run.count(1_000_000, 50_000), coloured=True).replace(b"\n", b"\r\n")
    screens: list[Emulator] = []

    def ours() -> None:
        emulator = Emulator()
        fastforward.feed(emulator, data)
        emulator.frame()
        screens.append(emulator)

    value = _allocated(ours, 5)
    stock: list[pyte.Screen] = []
    beside = _allocated(lambda: stock.append(_stock(data[:50_000])), 5)
    return Row(
        "screen", "memory of a screen", value, "MB", PYTE, beside, value / beside, "value / beside",
        f"< {AIM_MB:g} MB", value < AIM_MB, note=NOTE_MEMORY,
    )  # fmt: skip


def _allocated(make: Callable[[], object], count: int) -> float:
    make()
    tracemalloc.start()
    begin = tracemalloc.get_traced_memory()[0]
    for _ in range(count):
        make()
    grown = tracemalloc.get_traced_memory()[0] - begin
    tracemalloc.stop()
    return grown / count / 1e6
