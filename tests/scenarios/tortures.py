"""The same thing very often, at once, or very large: played short in the suite and long on request.

Rules of this file: the counts are parameters; what must come out is the same for every count.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blockpty import Engine
from tests.scenarios.stage import TIMEOUT_MS, Done, Stage

# No single quote: bash takes ten times as long to put together a word of many pieces.
HARD_TEXT = "0123456789 $HOME `id` \"double\" \\ \t!! ü🙂 "


async def last_words(stage: Stage, rounds: int) -> Any:
    """Print, then end the shell at once; returns the rounds in which something was lost, and the number of blocks."""
    lost: list[tuple[int, Done]] = []
    for number in range(rounds):
        done = await stage.done("echo bye; exit")
        # As behind a typed line, bash says that it exits.
        if done != (0, "shell_exited", b"bye\nexit\n" if stage.shell == "bash" else b"bye\n"):
            lost.append((number, done))
        await stage.conversation.reset()
    return lost, len(await stage.blocks())


async def parallel(home: Path, shells: Sequence[str], conversations: int, commands: int) -> dict[str, Any]:
    """Run commands in many conversations at once; returns what was wrong, and what was left behind.

    The shells take turns. Every output names its conversation and its number; every status is another one.
    """
    wrong: list[Any] = []

    async def one(engine: Engine, number: int) -> None:
        shell = shells[number % len(shells)]
        conversation = await engine.open(f"n{number}", shell=shell, cwd="/", timeout_ms=10 * TIMEOUT_MS)
        for count in range(commands):
            text, status = f"conversation {number} command {count}", (number + count) % 100
            result = await conversation.run(f"echo '{text}'; sh -c 'exit {status}'", timeout_ms=10 * TIMEOUT_MS)
            actual = (result.output, result.block.exit_status, result.block.state, result.block.seq)
            if actual != (f"{text}\n", status, "ended", count + 1):
                wrong.append((number, count, actual))
        if not (await conversation.verify()).clean:
            wrong.append((number, "verify"))
        await conversation.close()

    async with Engine(home, session_limit=conversations + 2) as watcher:
        # One conversation stays open, so that it is the same host before and after.
        stays = await watcher.open("stays", shell=shells[0], cwd="/")
        before = await _left_open(watcher, home, {})
        async with Engine(home, session_limit=conversations + 2) as engine:
            await asyncio.gather(*(one(engine, number) for number in range(conversations)))
        after = await _left_open(watcher, home, before)
        live = [info.conversation_id for info in (await watcher.list()).conversations if info.live]
        await stays.close()
    grown = {name: (before[name], count) for name, count in after.items() if count > before[name]}
    return {"wrong": wrong, "live": live, "grown": grown}


async def _left_open(watcher: Engine, home: Path, base: dict[str, int]) -> dict[str, int]:
    """Count the descriptors and the children of this process, the keeper and the recorder.

    The keeper releases what has ended a moment after it has said so; opening and closing once more comes after that.
    """
    counts: dict[str, int] = {}
    for _ in range(100):
        last = await watcher.open("last", shell="bash", cwd="/")
        await last.close()
        counts = _count(home)
        if all(counts[name] <= base.get(name, counts[name]) for name in counts):
            break
    return counts


def _count(home: Path) -> dict[str, int]:
    counts = {"own descriptors": len(os.listdir("/dev/fd"))}
    if sys.platform != "linux":
        return counts
    host = json.loads((home / "host" / "pid").read_bytes())
    parents = [int(stat.rpartition(")")[2].split()[1]) for stat in process_stats()]
    for role in ("keeper", "recorder"):
        counts[f"{role}'s descriptors"] = len(os.listdir(f"/proc/{host[role]}/fd"))
        counts[f"{role}'s children"] = parents.count(host[role])
    return counts


def process_stats() -> list[str]:
    """Return the `stat` lines of all processes; Linux."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended in this moment
            found.append(path.read_text())
    return found


async def long_commands(stage: Stage, sizes: Sequence[int]) -> list[Any]:
    """Run commands of these sizes in bytes, each one line; returns what went wrong."""
    wrong: list[Any] = []
    for size in sizes:
        text = (HARD_TEXT * (size // len(HARD_TEXT.encode()) + 1)).encode()[:size].decode(errors="ignore")
        done = await stage.done(f"printf %s {shlex.quote(text)} >copy; sh -c 'exit 3'")
        if done != (3, "ended", b"") or (stage.folder / "copy").read_bytes() != text.encode():
            wrong.append((size, done))
    return wrong
