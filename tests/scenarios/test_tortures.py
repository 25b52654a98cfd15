"""The big tortures: short in every run, long with BLOCKPTY_TORTURE=long (docs/how-to/torture.md)."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from blockpty.engine.machine import Machine
from blockpty.engine.states import ShellState
from blockpty.model.events import Event
from blockpty.testing import FakePty
from tests.scenarios import tortures
from tests.scenarios.output import MARK
from tests.scenarios.stage import SHELLS, Stage, in_every_shell, open_stage
from tests.support.async_tests import async_test
from tests.support.profile import LONG

ROUNDS = 500 if LONG else 20
CONVERSATIONS, COMMANDS = (100, 50) if LONG else (10, 10)
SIZES = (200_000, 1_000_000)
NEAR_MISSES = 1_000_000 if LONG else 20_000


@in_every_shell()
@pytest.mark.timeout(1200)
@async_test(timeout_seconds=1200)
async def test_last_words(shell: str, home: Path) -> None:
    """What is printed just before the shell ends is never lost, and its status is right."""
    async with open_stage(home, shell) as stage:
        assert await tortures.last_words(stage, ROUNDS) == ([], ROUNDS)


@pytest.mark.needs(*SHELLS)
@pytest.mark.slow
@pytest.mark.timeout(1200)
@async_test(timeout_seconds=1200)
async def test_many_conversations(home: Path) -> None:
    """No cross-talk, and afterwards as many descriptors and children as before."""
    result = await tortures.parallel(home, SHELLS, CONVERSATIONS, COMMANDS)
    assert result == {"wrong": [], "live": ["stays"], "grown": {}}


@in_every_shell()
@async_test
async def test_long_commands(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        assert await tortures.long_commands(stage, SIZES) == []


def derived(stage: Stage) -> list[str]:
    """Return the derived files that hold the nonce; the stream, the timeline and the shell's own files may."""
    nonce = stage.nonce.encode()
    directory = stage.conversation.directory
    files = [*(directory / "blocks").iterdir(), *(directory / f"{name}.jsonl" for name in ("events", "blocks"))]
    return [path.name for path in files if nonce in path.read_bytes()]


SHOWN = {
    "bash": ("declare -f", "declare -p", "set", "env", "set -x; true; set +x", "set -v; true; set +v", "trap -p"),
    "zsh": ("typeset -f", "typeset", "set", "env", "set -x; true; set +x", "set -v; true; set +v", "which -a precmd"),
}


@in_every_shell()
@async_test
async def test_the_shell_shows_itself(shell: str, home: Path) -> None:
    """Three times its own stream, and everything a shell can show of its hooks: the list of blocks is what was run."""
    async with open_stage(home, shell) as stage:
        commands = ["echo one", "false"]
        for command in commands:
            await stage.run(command)
        spoofed: list[Event] = []
        for _ in range(3):
            stream = min((stage.conversation.directory / "stream").iterdir())
            size, marks = stream.stat().st_size, len(MARK.findall(stage.stream()))
            # Not a plain cat: it would follow its own output for ever.
            commands.append(f"head -c {size} '{stream}'; (exit 3)")
            done = await stage.done(commands[-1])
            assert (done.exit_status, done.state) == (3, "ended")
            assert stage.nonce.encode() not in done.output
            before, spoofed = len(spoofed), await stage.events("spoofed_mark")
            assert len(spoofed) - before == marks
        assert {event.fields["reason"] for event in spoofed} == {"sequence"}
        for command in SHOWN[shell]:
            commands.append(command)
            result = await stage.run(command, max_bytes=1 << 20)
            assert stage.nonce not in result.output
        blocks = await stage.blocks()
        assert [block.cmd for block in blocks] == commands
        assert {block.state for block in blocks} == {"ended"}
        assert [block.degraded for block in blocks if block.degraded] == []
        assert derived(stage) == []
        assert await stage.done("echo next; (exit 4)") == (4, "ended", b"next\n")
        events = json.dumps([event.fields for event in await stage.events()])
        assert stage.nonce not in events


def near_miss(rng: random.Random, own: bytes) -> bytes:
    """Return a mark with one or two things wrong: a byte changed, lost, doubled or moved, or the end cut off."""
    made = bytearray(own)
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(made))
        act = rng.randrange(5)
        if act == 0:
            made[place] = rng.choice(b"0123456789;=_-.AZaz\x1b\x07\x00\xff ")
        elif act == 1:
            del made[place]
        elif act == 2:
            made[place:place] = made[place : place + rng.randrange(1, 9)]
        elif act == 3:
            made[place:] = made[:place]
        else:
            del made[place:]
        if not made:
            return b"\x1b]7717;"
    return bytes(made)


@pytest.mark.timeout(1200)
def test_near_misses() -> None:
    """Marks that are nearly right, in the middle of a block: the block stays open, and ends with its own status."""
    rng = random.Random(7717)
    pty = FakePty()
    pty.spawn()
    pty.prompt()
    pty.submit("./noise")
    pty.begin()
    machine = Machine()
    for step in pty.recording.steps():
        machine.feed(step) if isinstance(step, bytes) else machine.apply(step)
    begun = len(pty.recording.stream)
    kinds = ("BEGIN", "END", "PROMPT", "OUT_END", "CWD", "PS2", "HELLO")
    # Two changed bytes must not make it right: who knows nonce, process and numbers can write a mark.
    wrong: list[dict[str, Any]] = [{"n": "B" * 22}, {"n": "ABCDE" + FakePty.NONCE[5:]}, {"n": "AAA"}, {"i": 999999}]
    marks = []
    for kind in kinds:
        for fields in wrong:
            numbers: dict[str, Any] = {"s": pty.seq + 1, "c": pty.count, "p": pty.prompts + 1, "x": 0, "d": "/wrong"}
            marks.append(pty.mark(kind, **{**numbers, **fields}))
    seen: dict[str, int] = {}
    for _ in range(NEAR_MISSES // 1000):
        events, _signals = machine.feed(b"".join(near_miss(rng, rng.choice(marks)) for _ in range(1000)))
        for event in events:
            seen[event.type] = seen.get(event.type, 0) + 1
    state = machine.state
    assert set(seen) <= {"spoofed_mark", "agent_block_delta", "anomaly", "hint"}, seen
    assert seen["spoofed_mark"] > NEAR_MISSES // 10
    assert state.block is not None and (state.block.begin, state.shell) == (begun, ShellState.RUNNING)
    assert state.current.cwd != "/wrong"
    pty.recording.stream = b""
    pty.output(b"\x07")
    pty.end(5)
    pty.prompt(5)
    events, _signals = machine.feed(pty.recording.stream)
    ends = [event.fields["block"] for event in events if event.type == "agent_block_end"]
    assert [(block["exit_status"], block["state"], block["parts"]) for block in ends] == [(5, "ended", 1)]
