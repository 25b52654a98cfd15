"""The engine that a soak kills: conversations that work all the time, and what they know for certain, on disk.

A fact is a command whose end was reported: its block, and what it must have printed. It is written before the next
command begins, so that the next worker can look it up after a kill. Orders come in by lines, answers go out by lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import blockpty
from blockpty.errors import (
    BadCursor,
    BlockptyError,
    Busy,
    Exited,
    InteractiveSessionActive,
    NoPrompt,
    NotFound,
    StorageFull,
)
from blockpty.spool.log_start import load_log_start

SECRET = "s0ak-Pa55w0rd-never-on-disk"
PROMPT = {"token": "PROMPT"}
# An act may take as long as the longest fault lasts, and the machine is busy.
ACT_SECONDS = 90
LOOKED_UP = 150
# What a conversation may keep. A night prints much more: retention is at work all the time.
KEEP_MIB = 24
# How long derived files may wait for room when nothing fills the disk any more.
ROOM_SECONDS = 30.0


def say(**fields: Any) -> None:
    """Answer."""
    print(json.dumps(fields), flush=True)


class Talk:
    """One conversation that works."""

    def __init__(self, engine: blockpty.Engine, home: Path, name: str, chance: random.Random) -> None:
        self.engine, self.home, self.name, self.chance = engine, home, name, chance
        self.free = asyncio.Event()
        self.free.set()
        self.resting = asyncio.Event()
        self.facts = home / f"{name}.facts"
        # What commands have said themselves, on a disk that is never full: nothing may have run twice.
        self.ran = home / f"{name}.ran"
        self.acts = 0
        self._conversation: Any = None

    async def go_on(self) -> None:
        """Work until cancelled; rest while not `free`."""
        acts: tuple[Callable[[], Awaitable[None]], ...] = (
            self._echo, self._echo, self._lines, self._flood, self._session, self._password, self._sizes, self._look,
        )  # fmt: skip
        while True:
            if not self.free.is_set():
                self.resting.set()
                await self.free.wait()
                self.resting.clear()
            try:
                await self._ready()
                async with asyncio.timeout(ACT_SECONDS):
                    await self.chance.choice(acts)()
                self.acts += 1
            except StorageFull:
                await asyncio.sleep(0.1)
            except (Exited, NotFound):
                self._conversation = None
            except (Busy, NoPrompt, InteractiveSessionActive):
                await self._clear()
            except TimeoutError:
                say(wrong=f"{self.name}: an act took over {ACT_SECONDS} s")
                await self._clear()
            except BlockptyError as problem:
                if problem.code == "internal":
                    await asyncio.sleep(0.05)  # the host is being replaced
                else:
                    say(wrong=f"{self.name}: {problem.code}: {problem.message}")

    async def _ready(self) -> None:
        if self._conversation is None:
            with contextlib.suppress(NotFound):
                self._conversation = await self.engine.conversation(self.name)
        if self._conversation is None or self._conversation.mode == "exited":
            try:
                self._conversation = await self.engine.open(self.name, shell="bash", persist=True)
            except Busy:
                self._conversation = await self.engine.conversation(self.name)

    async def _clear(self) -> None:
        """Have a prompt again, whatever was left behind."""
        with contextlib.suppress(BlockptyError, TimeoutError):
            async with asyncio.timeout(10):
                await self._conversation.interrupt(grace_ms=300, up_to="KILL")
                await self._conversation.wait_for(PROMPT, timeout_ms=3000)

    async def _run(self, command: str, printed: bytes) -> None:
        result = await self._conversation.run(command, timeout_ms=60_000, max_bytes=2000)
        block = result.block
        if result.timed_out or block.state != "ended":
            return
        fact = {"block_id": block.block_id, "seq": block.seq, "cmd": command, "size": len(printed)}
        if block.exit_status != 0 or result.output_bytes != len(printed):
            say(wrong=f"{self.name}: {command!r}: {block.exit_status}, {result.output_bytes} of {len(printed)} bytes")
        with self.facts.open("a") as file:
            file.write(json.dumps({**fact, "crc": zlib.crc32(printed)}) + "\n")

    async def _echo(self) -> None:
        word = f"w{self.chance.getrandbits(60)}"
        await self._run(f"echo {word} | tee -a '{self.ran}'", f"{word}\n".encode())

    async def _lines(self, most: int = 3000) -> None:
        first = self.chance.randrange(10**6)
        last = first + self.chance.randrange(1, most)
        await self._run(f"seq {first} {last}", b"".join(b"%d\n" % number for number in range(first, last + 1)))

    async def _flood(self) -> None:
        await self._lines(60_000)

    async def _session(self) -> None:
        session = await self._conversation.exec_interactive("cat")
        word = f"w{self.chance.getrandbits(60)}"
        await self._conversation.send(f"{word}\r", session_id=session.session_id)
        found = await self._conversation.wait_for(word, timeout_ms=30_000)
        if not found.matched and found.reason == "timeout":
            say(wrong=f"{self.name}: cat did not answer")
        await self._conversation.ctrl_d()
        await self._conversation.wait_for(PROMPT, timeout_ms=30_000)

    async def _password(self) -> None:
        await self._conversation.exec_interactive("read -rs x; echo ${#x} characters")
        found = await self._conversation.wait_for(PROMPT, timeout_ms=30_000)
        if found.reason == "password":
            await self._conversation.send(f"{SECRET}\r")
            await self._conversation.wait_for(PROMPT, timeout_ms=30_000)
        else:
            await self._clear()

    async def _sizes(self) -> None:
        for _ in range(30):
            await self._conversation.resize(self.chance.randrange(2, 200), self.chance.randrange(2, 60))

    async def _look(self) -> None:
        conversation = self._conversation
        await conversation.screen(format=self.chance.choice(["text", "json", "ansi"]))
        await conversation.read(self.chance.randrange(conversation.cursor + 1), max_bytes=5000)
        await conversation.blocks(page=0, page_size=5)

    async def look_up(self) -> tuple[int, list[str]]:
        """Check what is known for certain, and everything that `verify` checks."""
        wrong: list[str] = []
        lines = self.facts.read_bytes().splitlines() if self.facts.exists() else []
        facts = [json.loads(line) for line in lines[-LOOKED_UP:]]
        conversation = self._conversation or await self.engine.conversation(self.name)
        kept = load_log_start(conversation.directory)
        facts = [fact for fact in facts if kept is None or fact["seq"] >= kept.first_block()]
        for fact in facts:
            try:
                block = (await conversation.block(fact["block_id"])).block
                if kept is not None and block.span[0] < kept.readable:
                    continue  # of its output only the end is kept
                printed = (conversation.directory / str(block.out_path)).read_bytes()
            except (BlockptyError, OSError) as problem:
                wrong.append(f"{self.name}: {fact['cmd']!r} is gone: {problem}")
                continue
            if (block.seq, block.cmd, zlib.crc32(printed)) != (fact["seq"], fact["cmd"], fact["crc"]):
                there = f"{block.cmd!r} with {len(printed)} bytes"
                wrong.append(f"{self.name}: {fact['cmd']!r}, {fact['size']} bytes, is {there}")
        wrong += self._run_twice()
        found = await self._verified(conversation)
        wrong += [f"{self.name}: {one['invariant']} {one['where']}: {one['message']}" for one in found.differences]
        return len(facts), wrong

    def _run_twice(self) -> list[str]:
        said = Counter(self.ran.read_text().split()) if self.ran.exists() else Counter()
        return [f"{self.name}: `echo {word}` has run {count} times" for word, count in said.items() if count > 1]

    async def _verified(self, conversation: Any) -> Any:
        """Verify; again where derived files wait for room, or the record was cut meanwhile. Raises what stays so."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ROOM_SECONDS
        while True:
            try:
                return await conversation.verify()
            except (StorageFull, BadCursor):
                if loop.time() > deadline:
                    raise
                await asyncio.sleep(0.1)


async def work(home: Path, names: list[str], seed: str) -> None:
    """Work until the order to stop, or a kill."""
    async with blockpty.Engine(home / "home", persist=True, session_limit=100, keep_conversation_mb=KEEP_MIB) as engine:
        talks = [Talk(engine, home, name, random.Random(f"{seed} {name}")) for name in names]
        tasks = [asyncio.create_task(talk.go_on()) for talk in talks]
        say(ready=True)
        while order := (await asyncio.to_thread(sys.stdin.readline)).strip():
            failed = [task for task in tasks if task.done()]
            if failed:
                say(wrong=f"a talk ended: {[repr(task.exception()) for task in failed]}")
                break
            if order == "check":
                await _check(talks)
            elif order == "shells":
                say(shells=[talk._conversation.pid for talk in talks if talk._conversation is not None])
            elif order == "stop":
                break
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    say(stopped=True)


async def _check(talks: list[Talk]) -> None:
    for talk in talks:
        talk.free.clear()
    facts, wrong = 0, []
    for talk in talks:
        try:
            async with asyncio.timeout(ACT_SECONDS * 2):
                await talk.resting.wait()
            known, found = await talk.look_up()
        except (BlockptyError, TimeoutError) as problem:
            known, found = 0, [f"{talk.name}: cannot be looked at: {problem!r}"]
        facts, wrong = facts + known, wrong + found
    say(checked=facts, acts=sum(talk.acts for talk in talks), wrong_all=wrong)
    for talk in talks:
        talk.acts = 0
        talk.free.set()
