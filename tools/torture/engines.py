"""kill -9 of the engine at random points, while a shell prints what is known beforehand.

Each life of the engine is a forked process that attaches, submits a command of its own if the shell is
at a prompt, and follows what comes until it is killed. After some lives an engine that is not killed looks at
everything: each command is one block, its output is exactly what it must have printed, and `verify` finds nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

import blockpty
from tests.support.processes import directory_of_homes
from tools.torture.report import Row

LIVES = 20
# Every second kill comes early: while the engine attaches to the conversation, and while it submits.
LONGEST_SECONDS = (0.4, 0.06)
LINES = 300_000
LINES_PER_STEP = 1300
LOADS = ("idle", "1 MB/s", "flood")
PACED = (
    "import sys,time\n"
    "for n in range(int(sys.argv[1]),int(sys.argv[2])+1):\n"
    f"    print(n)\n    if n%{LINES_PER_STEP}==0: sys.stdout.flush(); time.sleep(.01)\n"
)


def command(load: str, number: int, paced: Path) -> tuple[str | None, range]:
    """Return what a life runs, and the numbers that this prints."""
    first = (number + 1) * 1_000_000
    if load == "idle":
        return None, range(0)
    lines = range(first, first + (LINES if load == "flood" else LINES // 6))
    program = "seq" if load == "flood" else f"python3 {paced}"
    return f"{program} {lines[0]} {lines[-1]}", lines


async def live(home: Path, name: str, text: str | None, said: int) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation(name)
        os.write(said, b"a")
        if text is not None:
            with contextlib.suppress(blockpty.Busy):
                await conversation.exec_block(text)
        os.write(said, b"s")
        while True:
            await conversation.wait_for({"token": "EOF"}, timeout_ms=50)


def life_and_death(home: Path, name: str, text: str | None) -> bytes:
    """Fork an engine and kill it; return how far it had said to be: b"", b"a" (attached) or b"as" (submitted)."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        try:
            asyncio.run(live(home, name, text, theirs))
        except BaseException as problem:  # noqa: BLE001 - the parent is notified
            os.write(theirs, f"!{problem!r}".encode())
        os._exit(1)
    os.close(theirs)
    time.sleep(random.uniform(0, random.choice(LONGEST_SECONDS)))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    said = os.read(ours, 4096)
    os.close(ours)
    return said


async def begin(home: Path, name: str) -> int:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(name, shell="bash", persist=True)
        return (await conversation.host.inspect(name)).pid


async def _look(home: Path, name: str, pid: int, printed: dict[str, range], row: Row) -> tuple[int, int]:
    """Check everything, with an engine that is left alive; return lines lost and lines that are there too often."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation(name)
        await conversation.exec_block("echo sound", queue=True)
        await conversation.wait_for({"token": "PROMPT"}, timeout_ms=60_000)
        if (await conversation.host.inspect(name)).pid != pid:
            row.wrong.append(f"{name}: another shell")
        verified = await conversation.verify()
        if not verified.clean:
            row.wrong.append(f"{name}: verify: {verified.differences[0]}")
        blocks = [orjson.loads(line) for line in conversation.layout.blocks.read_bytes().splitlines()]
        directory = conversation.layout.directory
        lost, twice, seen = 0, 0, set()
        for block in blocks:
            shown = (directory / block["out_path"]).read_bytes()
            text = block["cmd"]
            wanted = printed.get(text, range(0))
            whole = b"".join(b"%d\n" % number for number in wanted) if text != "echo sound" else b"sound\n"
            if text in seen or (shown and text not in printed and text != "echo sound"):
                row.wrong.append(f"{name}: unexpected block {text!r}: {shown[:60]!r}")
            seen.add(text)
            if shown != whole or block["state"] != "ended" or block["exit_status"] != 0:
                lines = shown.splitlines()
                lost += len({b"%d" % number for number in wanted} - {*lines})
                twice += len(lines) - len({*lines})
                row.wrong.append(f"{name}: {text!r}: {len(shown)} of {len(whole)} bytes, {block['state']}")
        if "echo sound" not in seen:
            row.wrong.append(f"{name}: the shell does not answer any more")
        await conversation.close()
    return lost, twice


def kill_engines(tries: int) -> Iterator[Row]:
    """Kill `tries` engines under each load."""
    for load in LOADS:
        row = Row(f"kill -9 of the engine, {load}")
        lost = twice = early = under_way = size = 0
        with directory_of_homes("torture") as place:
            paced = place / "paced.py"
            paced.write_text(PACED)
            home = place / "home"
            while row.tries < tries:
                name = f"c{row.tries}"
                pid = asyncio.run(begin(home, name))
                printed = {}
                for _ in range(min(LIVES, tries - row.tries)):
                    text, numbers = command(load, row.tries, paced)
                    if text is not None:
                        printed[text] = numbers
                    said = life_and_death(home, name, text)
                    if b"!" in said:
                        row.wrong.append(f"{name}: an engine could not begin: {said!r}")
                    early += said == b""
                    under_way += said == b"a"
                    row.tries += 1
                    try:
                        os.kill(pid, 0)
                    except ProcessLookupError:
                        row.wrong.append(f"{name}: the shell is dead")
                more_lost, more_twice = asyncio.run(_look(home, name, pid, printed, row))
                lost, twice = lost + more_lost, twice + more_twice
                size += sum(path.stat().st_size for path in (home / "conversations" / name / "stream").iterdir())
        row.found = {
            "lines lost": str(lost), "twice": str(twice), "killed while recovering": str(early),
            "while submitting": str(under_way), "stream": f"{size / 1e6:.1f} MB",
        }  # fmt: skip
        yield row
