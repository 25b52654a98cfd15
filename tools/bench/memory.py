"""What a conversation costs in memory beside its shell: the engine, the keeper and the recorder, with few and many.

Each population lives in a process of its own, so that the interpreter that measures is not part of it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.report import Row, Run, skipped
from blockpty import Conversation, Engine

TOP = Path(__file__).resolve().parents[2]
AIM_MB = 1.0
SHELL = "its bash"
NOTE = (
    "memory: proportional set size (smaps_rollup) of engine + keeper + recorder with many conversations less that with"
    " one, divided by the difference; kernel memory of terminals and pipes is in no process"
)


def measure(run: Run) -> list[Row]:
    """Count with conversations that are fresh, and with ones that have been used."""
    if sys.platform != "linux":
        return [skipped("memory", "a conversation", "needs /proc")]
    sizes = [1, 5] if run.quick else [1, 21, 41]
    return [
        _row(run, sizes, "a conversation, one command run", 1),
        _row(run, sizes, f"a conversation, {run.count(300, 3)} commands run", run.count(300, 3)),
    ]


def _row(run: Run, sizes: Sequence[int], what: str, commands: int) -> Row:
    home = run.place / f"home{commands}"
    code = f"from bench.memory import population; population({str(home)!r}, {list(sizes)}, {commands})"
    environment = {**os.environ, "PYTHONPATH": f"{TOP}{os.pathsep}{TOP / 'tools'}"}
    output = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    found = json.loads(output.stdout)
    few, many = found[0], found[-1]
    added = many["conversations"] - few["conversations"]
    each = {name: (many[name] - few[name]) / added / 1000 for name in ("engine", "keeper", "recorder")}
    value, shell = sum(each.values()), many["shells"] / many["conversations"] / 1000
    steps = [_cost(before, after) for before, after in itertools.pairwise(found)]
    parts = ", ".join(f"{name} {size:.3f}" for name, size in each.items())
    return Row(
        "memory", what, value, "MB", SHELL, shell, value / shell, "value / beside", f"< {AIM_MB:g} MB", value < AIM_MB,
        min(steps), max(steps), f"{NOTE}. {what}: {parts} MB; with {few['conversations']} in all {_total(few):.1f} MB, "
        f"with {many['conversations']} {_total(many):.1f} MB",
    )  # fmt: skip


def _total(found: dict[str, int]) -> float:
    return (found["engine"] + found["keeper"] + found["recorder"]) / 1000


def _cost(before: dict[str, int], after: dict[str, int]) -> float:
    return (_total(after) - _total(before)) / (after["conversations"] - before["conversations"])


def population(home: str, sizes: Sequence[int], commands: int) -> None:
    """Open more and more conversations, use each, and print what everything takes at each size (in KB)."""
    print(json.dumps(asyncio.run(_population(home, sizes, commands))))


async def _population(home: str, sizes: Sequence[int], commands: int) -> list[dict[str, int]]:
    found = []
    async with Engine(home, session_limit=max(sizes)) as engine:
        opened: list[Conversation] = []
        for size in sizes:
            while len(opened) < size:
                conversation = await engine.open(shell="bash")
                for _ in range(commands):
                    await conversation.run("true")
                opened.append(conversation)
            host = await opened[0].host.hello()
            shells = [(await one.status()).pid for one in opened]
            found.append(
                {
                    "conversations": size, "engine": _pss("self"), "keeper": _pss(host.keeper),
                    "recorder": _pss(host.recorder), "shells": sum(_pss(pid) for pid in shells if pid is not None),
                }
            )  # fmt: skip
    return found


def _pss(process: int | str) -> int:
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise AssertionError("smaps_rollup has no Pss")
