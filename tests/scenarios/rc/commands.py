"""The commands that every set-up runs, and what they must leave behind under none.

Rules of this file: it checks nothing. What differs between two runs of the same command for reasons that do not matter
(pids, the name of the staged file, the wording of a syntax error) is taken out here, and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tests.scenarios.stage import GRACE_MS, PROMPT, TIMEOUT_MS, Stage

# Tells on a pipe in $HOME that it runs, because under some set-ups nothing it prints can be seen before its end.
INTERRUPTED = "sh -c 'echo go >~/gate; exec sleep 1000'"
SYNTAX_ERROR = "echo )"
LARGE = 100_000


class Seen(NamedTuple):
    """What is compared of a block."""

    cmd: str
    exit_status: int | None
    state: str
    cwd: str
    output: bytes


_PIPESTATUS = {
    "bash": 'false | (exit 3) | true; echo "${PIPESTATUS[@]}"',
    "zsh": 'false | (exit 3) | true; echo "${pipestatus[@]}"',
}


def shown(output: bytes) -> bytes:
    """Name a long output by its digest: to explain how two of them differ would take minutes."""
    return output if len(output) <= 4096 else b"%d bytes, sha256 " % len(output) + sha256(output).hexdigest().encode()


def whole(seen: Seen) -> bytes:
    """Return what was printed, of which `seen` may hold the digest only."""
    return b"x" * LARGE if seen.cmd.startswith("head ") else seen.output


_STATES: Mapping[str, str] = {INTERRUPTED: "interrupted", SYNTAX_ERROR: "rejected"}


def _expected(shell: str) -> list[Seen]:
    syntax = {"bash": 2, "zsh": 1}[shell]
    rows = [
        ("true", 0, b""),
        ("false", 1, b""),
        ("printf x", 0, b"x"),
        ("echo one\necho two\n", 0, b"one\ntwo\n"),
        (_PIPESTATUS[shell], 0, b"1 3 0\n"),
        ("cd /", 0, b""),
        (SYNTAX_ERROR, syntax, b"<syntax error>\n"),
        ("(echo sub; exit 7)", 7, b"sub\n"),
        (': & wait "$!"; echo waited', 0, b"waited\n"),
        ('greet() { echo "hello $1"; }\ngreet you', 0, b"hello you\n"),
        (f"head -c {LARGE} /dev/zero | tr '\\0' x", 0, shown(b"x" * LARGE)),
        (INTERRUPTED, 130, b"\n"),
        ("echo end", 0, b"end\n"),
    ]
    return [
        Seen(cmd, status, _STATES.get(cmd, "ended"), "work" if at <= 5 else "/", output)
        for at, (cmd, status, output) in enumerate(rows)
    ]


EXPECTED: Mapping[str, list[Seen]] = {shell: _expected(shell) for shell in ("bash", "zsh")}

_SYNTAX = re.compile(rb"[^\n]*(?:syntax|parse) error[^\n]*\n(?:[^\n]*: line 1: `[^\n]*\n)?")
# A job's number and pid as it starts, and the news of its end: where they stand is the shell's own affair.
_NOTICE = re.compile(rb"^\[\d+\] *(?:\d+|[ +-]*[Dd]one[^\n]*)\n", re.MULTILINE)


async def play(stage: Stage, noise: re.Pattern[bytes] | None = None) -> list[Seen]:
    """Run the commands, as long as there is a shell, and return the whole block list; `noise` is left out."""
    for expected in EXPECTED[stage.shell]:
        if expected.cmd == INTERRUPTED:
            await _interrupt(stage)
        else:
            result = await stage.run(expected.cmd)
            if result.reason == "eof":
                break
    seen = []
    for block in await stage.blocks():
        output = _NOTICE.sub(b"", stage.outcome(block).output)
        if noise is not None:
            output = noise.sub(b"", output)
        if block.cmd == SYNTAX_ERROR:
            output = _SYNTAX.sub(b"<syntax error>\n", output)
        cwd = "work" if block.cwd == str(stage.folder) else str(block.cwd)
        seen.append(Seen(block.cmd, block.exit_status, block.state, cwd, shown(output)))
    return seen


async def _interrupt(stage: Stage) -> None:
    gate = Path(os.environ["HOME"], "gate")
    os.mkfifo(gate, 0o600)
    descriptor = os.open(gate, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    loop, runs = asyncio.get_running_loop(), asyncio.Event()

    def opened() -> None:
        # It stays readable, and the loop would do nothing else while the call below returns.
        loop.remove_reader(descriptor)
        runs.set()

    loop.add_reader(descriptor, opened)
    try:
        begun = await stage.conversation.exec_block(INTERRUPTED)
        async with asyncio.timeout(TIMEOUT_MS / 1000):
            await runs.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    done = await stage.conversation.interrupt(grace_ms=GRACE_MS)
    assert done.how == "SIGINT", done
    await stage.wait(PROMPT, begun.cursor)
