"""Where a scenario is played: one conversation in a throw-away home, verified when the scenario is over.

Rules of this file: nothing here sleeps or looks at a clock. A scenario that has to say "not before" holds a program at
a `Gate`; everything else is a wait of the API with a bounded time. What a wait finds is returned, never retried.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from blockpty import BlockptyError, Conversation, Engine
from blockpty.model.block import Block
from blockpty.model.events import Event
from blockpty.model.results import RunResult, WaitResult
from blockpty.spool.stream import StreamReader
from tests.support.ssh_server import ssh_server
from tests.support.versions import startup

# For what must come: the bound of the test itself ends it sooner.
TIMEOUT_MS = 100_000
# The longest that `interrupt` may be given for a step.
GRACE_MS = 60_000
# For a wait that must not succeed: what could end it wrongly is in the record before the wait begins.
SHORT_MS = 100
SHELLS = ("bash", "zsh")
PROMPT = {"token": "PROMPT"}
EOF = {"token": "EOF"}


def in_every_shell() -> pytest.MarkDecorator:
    """Run a test in bash and in zsh."""
    return pytest.mark.parametrize("shell", [pytest.param(shell, marks=pytest.mark.needs(shell)) for shell in SHELLS])


class Done(NamedTuple):
    """What a finished block left behind; compares with a plain tuple."""

    exit_status: int | None
    state: str
    output: bytes


class Gate:
    """A place where a program waits until the test says go, once for every `release`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path, 0o600)
        # Open for both, so that neither side ever waits for the other to open it.
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    @property
    def child(self) -> str:
        """Shell text that waits in a child process, which Ctrl-C kills."""
        return f"head -n 1 '{self.path}' >/dev/null"

    @property
    def builtin(self) -> str:
        """Shell text that waits in the shell itself."""
        return f"read -r _ <'{self.path}'"

    def release(self) -> None:
        """Let the process that waits, or comes next, go on."""
        os.write(self._descriptor, b"go\n")

    def close(self) -> None:
        os.close(self._descriptor)


class Stage:
    """One conversation under test.

    Attributes:
        shell: "bash" or "zsh".
        folder: an empty directory, where the shell starts.
    """

    def __init__(self, engine: Engine, conversation: Conversation, shell: str, folder: Path) -> None:
        self.engine = engine
        self.conversation = conversation
        self.shell = shell
        self.folder = folder
        self._gates: list[Gate] = []

    def gate(self) -> Gate:
        """Return a new gate."""
        gate = Gate(self.folder.parent / f"gate{len(self._gates)}")
        self._gates.append(gate)
        return gate

    def close(self) -> None:
        for gate in self._gates:
            gate.close()

    # Commands

    async def run(self, command: str, **options: Any) -> RunResult:
        """Run a command that must come to its end."""
        result = await self.conversation.run(command, timeout_ms=TIMEOUT_MS, **options)
        assert result.reason in ("prompt", "eof") and result.block.state != "running", result
        return result

    async def done(self, command: str, **options: Any) -> Done:
        """Run a command and return how it ended and its `.out` file."""
        return self.outcome((await self.run(command, **options)).block)

    def outcome(self, block: Block) -> Done:
        """Return how a finished block ended and its `.out` file, whose size must be what the block says."""
        assert block.out_path is not None, block
        output = (self.conversation.directory / block.out_path).read_bytes()
        assert len(output) == block.out_bytes, block
        return Done(block.exit_status, block.state, output)

    async def block(self, block_id: str) -> Block:
        return (await self.conversation.block(block_id)).block

    async def blocks(self) -> list[Block]:
        """All finished blocks."""
        found: list[Block] = []
        page: int | None = 0
        while page is not None:
            result = await self.conversation.blocks(page=page)
            found += result.blocks
            page = result.next_page
        return found

    # Typing and waiting

    async def type(self, data: bytes) -> int:
        """Type as a person does, whatever the shell is doing; returns the cursor from which the answer comes.

        `send` is for programs and refuses a terminal in which nothing runs.
        """
        conversation = self.conversation
        typed = await conversation.host.input(conversation.id, data, author="user", epoch=conversation.epoch)
        conversation.live.pump()
        return typed.offset

    async def type_line(self, line: str) -> Block | None:
        """Type a line at the prompt, wait for the next prompt; return the block it made, if it made one."""
        before = len(await self.blocks())
        cursor = await self.type(line.encode() + b"\r")
        await self.wait(PROMPT, cursor)
        blocks = await self.blocks()
        assert len(blocks) - before <= 1, blocks
        return blocks[-1] if len(blocks) > before else None

    def typed_outcome(self, block: Block) -> Done:
        """Return the same for a typed line, without the title and the colours that fish writes before its output."""
        done = self.outcome(block)
        return done._replace(output=done.output.rpartition(b"\r")[2]) if self.shell == "fish" else done

    async def wait(self, match: Any, cursor: int | None = None, **options: Any) -> WaitResult:
        """Wait for something that must come."""
        result = await self.conversation.wait_for(match, from_cursor=cursor, timeout_ms=TIMEOUT_MS, **options)
        assert result.matched, result
        return result

    async def absent(self, match: Any, cursor: int) -> str:
        """Look for something that must not have come; return the reason why it was not found."""
        result = await self.conversation.wait_for(match, from_cursor=cursor, timeout_ms=SHORT_MS)
        assert not result.matched, result
        return result.reason

    async def refusal(self, call: Awaitable[Any]) -> str:
        """Return the stable code with which a call is refused, or "accepted"."""
        try:
            await call
        except BlockptyError as error:
            return error.code
        return "accepted"

    # The record

    async def events(self, *types: str) -> list[Event]:
        """All events so far, or those of some types."""
        return [event async for event in self.conversation.events(follow=False) if not types or event.type in types]

    async def event(self, kind: str, from_seq: int = 0) -> Event:
        """Wait for the next event of a type."""
        following = cast("AsyncGenerator[Event, None]", self.conversation.events(from_seq))
        async with asyncio.timeout(TIMEOUT_MS / 1000), contextlib.aclosing(following) as events:
            async for event in events:
                if event.type == kind:
                    return event
        raise AssertionError(f"the events ended without {kind}")

    async def doubts(self) -> list[tuple[str, Any]]:
        """Marks that were refused and everything else that the machine found strange."""
        found = await self.events("spoofed_mark", "anomaly")
        return [(event.type, event.fields.get("reason")) for event in found]

    async def raw(self, begin: int = 0, end: int | None = None) -> bytes:
        """Return stream bytes through the API, exactly, but for covered nonces and secrets."""
        if end is None:
            end = (await self.conversation.status()).cursor
        pieces = []
        while begin < end:
            piece = await self.conversation.read(begin, max_bytes=min(end - begin, 1 << 20), view="raw")
            data = base64.b64decode(piece.data_b64 or "")
            assert data, (begin, end)
            pieces.append(data)
            begin = piece.cursor
        return b"".join(pieces)

    def stream(self) -> bytes:
        """Return the stream as it is in the files, nonce and all."""
        reader = StreamReader(self.conversation.directory / "stream")
        try:
            return reader.read(0, reader.size())
        finally:
            reader.close()

    def timeline(self) -> list[dict[str, Any]]:
        """Return the timeline's entries."""
        return [json.loads(line) for line in (self.conversation.directory / "timeline.jsonl").read_bytes().splitlines()]

    @property
    def nonce(self) -> str:
        """What authenticates the current shell's marks."""
        given = [entry if entry["kind"] == "spawn" else entry.get("note", {}) for entry in self.timeline()]
        return str([one["nonce"] for one in given if "nonce" in one][-1])

    def host_pids(self) -> list[int]:
        """Return the processes of the PTY host."""
        host = json.loads((Path(self.engine.home) / "host" / "pid").read_bytes())
        return [host["keeper"], host["recorder"]]

    async def verified(self) -> None:
        """Everything derived is what the record gives, recorded waits included."""
        result = await self.conversation.verify()
        assert result.clean, result.differences

    def diagnosis(self) -> str:
        """What it takes to find out why a scenario failed."""
        directory = self.conversation.directory
        with contextlib.suppress(OSError):
            lines = {
                name: "\n  ".join((directory / f"{name}.jsonl").read_text(errors="replace").splitlines()[-40:])
                for name in ("timeline", "events", "blocks")
            }
            text = "\n".join(f"{name}, last lines:\n  {shown[-8000:]}" for name, shown in lines.items())
            return f"stream, last bytes: {self.stream()[-3000:]!r}\n{text}"
        return "no record"


@contextlib.asynccontextmanager
async def open_stage(home: Path, shell: str, **options: Any) -> AsyncIterator[Stage]:
    """Open a conversation, let the caller play, then verify, close, and verify again what closing added.

    `home` is the fixture's: $HOME is an empty directory beside it, so no rc file of a person is read.
    """
    folder = home.parent / "work"
    folder.mkdir()
    if "source" not in options:
        options = {"shell": shell, "cwd": str(folder), **options}
    async with Engine(home) as engine:
        conversation = await engine.open(**options)
        stage = Stage(engine, conversation, shell, folder)
        with _explained(stage), contextlib.closing(stage):
            yield stage
            await stage.verified()
            await stage.conversation.close()
            await stage.verified()
    # Some scenarios leave gigabytes; what failed stays for inspection, and all lines for the check of their schema.
    for bulky in ("stream", "blocks"):
        shutil.rmtree(conversation.directory / bulky)


@contextlib.asynccontextmanager
async def open_stage_over_ssh(home: Path, shell: str, program: str = "") -> AsyncIterator[Stage]:
    """Open the same in a shell, or this program of it, behind an sshd on loopback, in the same directory."""
    place = home.parent / "far"
    place.mkdir()
    with ssh_server(place, (program or shell, "-i"), start=home.parent / "work") as server:
        if (file := startup(shell, Path(program))) is not None:
            (place / "home" / file[0]).write_text(file[1])
        async with open_stage(home, shell, source="ssh:127.0.0.1", env=server.environment) as stage:
            yield stage


@contextlib.contextmanager
def _explained(stage: Stage) -> Iterator[None]:
    try:
        yield
    except BaseException as problem:
        problem.add_note(stage.diagnosis())
        raise
