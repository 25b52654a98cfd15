"""One command: from asking for it to its prompt, beside a shell without hooks and beside pexpect's REPLWrapper."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.bare_path import bare_path
from bench.report import Row, Run, percentile, skipped
from bench.terminals import PROMPT, on_terminal, read_some, read_until
from blockpty import Conversation, Engine
from blockpty.host.shells import plan

AIMS_MS = {50: 0.8, 99: 3.0}
WARM_UP = 100
# REPLWrapper waits 50 ms before each line it sends, so as it ships a few tell enough.
SLOW_SHARE = 20

EXEC = 'exec_block("true") to its PROMPT'
RUN = 'run("true")'
ALONE = "exec_block alone, until it returns"
HOOKED = "bash with our hooks, typed"
PATH = "bash with our hooks, two bare processes"
BARE = "bash --norc, typed"
SLOW = "replwrap as it ships"
FAST = "replwrap without its pause"

_OURS = (
    "exec: time in the caller's event loop from the call to the return of wait_for PROMPT, block and events on disk by"
    " then; one conversation, one command at a time, the first 100 not counted, range of the rounds' medians"
)
_REPLWRAP = (
    "replwrap: pexpect.replwrap.bash().run_command('true'), as it ships (it pauses 50 ms before each line) and with"
    " that pause off; no record, no exit status"
)
NOTES = {
    EXEC: _OURS,
    RUN: _OURS,
    ALONE: "exec_block alone: the command is typed and its entry on disk; part of the row above",
    HOOKED: "exec, hooks: `true` typed into bash with our startup file on an equal terminal, read in a blocking loop;"
    " no recorder, no engine",
    PATH: "exec, bare path: the same shell behind a process that copies what is printed into a file, and one on asyncio"
    " that has `true` typed and looks for the prompt's mark in the file; no answer, no record, no block, no event",
    BARE: "exec beside: `true` typed into `bash --norc` on an equal terminal, read in a blocking loop to its prompt",
    SLOW: _REPLWRAP,
    FAST: _REPLWRAP,
}

Cycle = Callable[[], Awaitable[None]]
Samples = dict[str, list[list[float]]]


def measure(run: Run) -> list[Row]:
    """Run the same command in all of them, some at a time in turn."""
    return asyncio.run(_measure(run))


async def _measure(run: Run) -> list[Row]:
    per_round, rounds = run.count(100, 20), run.pairs(15)
    samples: Samples = {}
    alone: list[float] = []
    async with Engine(run.place / "home") as engine, contextlib.AsyncExitStack() as stack:
        conversation = await engine.open("exec", shell="bash")
        contenders: dict[str, tuple[int, Cycle]] = {
            EXEC: (per_round, lambda: _exec_block(conversation, alone)),
            RUN: (per_round, lambda: _run(conversation)),
            HOOKED: (per_round, _hooked(stack, run.place / "hooked")),
            PATH: (per_round, _on_path(stack, run.place / "path")),
            BARE: (per_round, _bare(stack)),
            **_replwraps(stack, per_round),
        }
        for count, cycle in contenders.values():
            for _ in range(min(WARM_UP, count)):
                await cycle()
        for _ in range(rounds):
            for name, (count, cycle) in contenders.items():
                alone.clear()
                samples.setdefault(name, []).append([await _timed(cycle) for _ in range(count)])
                if alone:
                    samples.setdefault(ALONE, []).append([*alone])
    return _rows(samples)


async def _timed(cycle: Cycle) -> float:
    begin = time.perf_counter()
    await cycle()
    return (time.perf_counter() - begin) * 1000


async def _exec_block(conversation: Conversation, alone: list[float]) -> None:
    begin = time.perf_counter()
    made = await conversation.exec_block("true")
    alone.append((time.perf_counter() - begin) * 1000)
    result = await conversation.wait_for({"token": "PROMPT"}, from_cursor=made.cursor)
    assert result.reason == "prompt", result


async def _run(conversation: Conversation) -> None:
    result = await conversation.run("true")
    assert result.exit_status == 0, result


def _bare(stack: contextlib.AsyncExitStack) -> Cycle:
    master = stack.enter_context(on_terminal(["bash", "--norc", "-i"], PS1=PROMPT.decode()))
    read_until(master, PROMPT)

    async def cycle() -> None:
        os.write(master, b"true\r")
        read_until(master, PROMPT)

    return cycle


def _with_hooks(stack: contextlib.AsyncExitStack, directory: Path) -> int:
    made = plan("bash", directory=str(directory), instance=1, nonce="A" * 22, login=False, inherited=os.environ)
    for name, content in made.files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    master = stack.enter_context(on_terminal(made.argv))
    _read_prompt(master)
    return master


def _read_prompt(master: int) -> None:
    data = b""
    # The mark need not be the last: readline goes on to the next line behind a prompt that fills one.
    while b"\x07" not in data.partition(b";__PROMPT__;")[2]:
        data += read_some(master, data)


def _hooked(stack: contextlib.AsyncExitStack, directory: Path) -> Cycle:
    master = _with_hooks(stack, directory)

    async def cycle() -> None:
        os.write(master, b"true\r")
        _read_prompt(master)

    return cycle


def _on_path(stack: contextlib.AsyncExitStack, directory: Path) -> Cycle:
    path = stack.enter_context(bare_path(_with_hooks(stack, directory), directory / "stream"))

    async def cycle() -> None:
        path.type(b"true\r")
        await path.wait(b";__PROMPT__;")

    return cycle


def _replwraps(stack: contextlib.AsyncExitStack, count: int) -> dict[str, tuple[int, Cycle]]:
    try:
        from pexpect import replwrap
    except ImportError:
        return {}

    def wrapped(*, pause: bool) -> Cycle:
        shell: Any = replwrap.bash()
        stack.callback(shell.child.close, force=True)
        if not pause:
            shell.child.delaybeforesend = None

        async def cycle() -> None:
            shell.run_command("true")

        return cycle

    return {SLOW: (max(2, count // SLOW_SHARE), wrapped(pause=True)), FAST: (count, wrapped(pause=False))}


def _rows(samples: Samples) -> list[Row]:
    rows = []
    for name in (EXEC, ALONE, RUN, HOOKED, PATH, BARE, SLOW, FAST):
        for percent, aim in AIMS_MS.items() if name in samples else ():
            value, bare = (percentile(_pooled(samples[one]), percent) for one in (name, BARE))
            medians = [percentile(one, 50) for one in samples[name]]
            rows.append(
                Row(
                    "exec", f"{name}, p{percent}", value, "ms", **_beside(name, value, bare),
                    aim=f"< {aim:g} ms" if name in (EXEC, RUN) else None,
                    met=value < aim if name in (EXEC, RUN) else None,
                    low=min(medians) if percent == 50 else None, high=max(medians) if percent == 50 else None,
                    note=NOTES[name],
                )
            )  # fmt: skip
    return rows if SLOW in samples else [*rows, skipped("exec", "replwrap", "pexpect is not installed")]


def _pooled(rounds: list[list[float]]) -> list[float]:
    return [one for times in rounds for one in times]


def _beside(name: str, value: float, bare: float) -> dict[str, Any]:
    if name == BARE:
        return {}
    return {"against": BARE, "against_value": bare, "ratio": value / bare, "ratio_of": "value / beside"}
