"""What the tests of the host share: a home with a running host, and conversations whose files are waited on.

Nothing here sleeps: a test waits for something to be in the files, woken by the notification.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from blockpty.errors import BlockptyError, InternalError
from blockpty.host.client import Hello, HostClient, Opened

BOUND_SECONDS = 60.0
ENV = {"PATH": os.environ.get("PATH", os.defpath), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
SH = shutil.which("sh") or "/bin/sh"
BASH = shutil.which("bash") or "/bin/bash"


class Spoken:
    """One conversation as a test sees it: its files, and a subscription."""

    def __init__(self, client: HostClient, name: str, directory: Path) -> None:
        self.client = client
        self.name = name
        self.directory = directory
        self._notified = asyncio.Event()
        # The whole lines of the timeline that were read so far, and where they end.
        self._entries: list[dict[str, Any]] = []
        self._read = 0

    async def subscribe(self, epoch: int = 1) -> None:
        await self.client.subscribe(self.name, epoch, self._notified.set)

    async def open(self, *argv: str, env: Mapping[str, str] = ENV, cwd: str = "/", **more: Any) -> Opened:
        return await self.client.open(self.name, self.directory, argv, env, cwd, **more)

    async def sh(self, script: str, **more: Any) -> Opened:
        return await self.open(SH, "-c", script, **more)

    async def type(self, data: bytes, **more: Any) -> Any:
        return await self.client.input(self.name, data, author="agent", **more)

    def stream(self) -> bytes:
        segments = sorted((self.directory / "stream").iterdir())
        content, at = b"", 0
        for segment in segments:
            assert int(segment.name) == at, f"segment {segment.name} begins at {at}"
            piece = segment.read_bytes()
            content, at = content + piece, at + len(piece)
        return content

    def length(self) -> int:
        """How many bytes the stream has."""
        return sum(segment.stat().st_size for segment in (self.directory / "stream").iterdir())

    def entries(self, kind: str | None = None) -> list[dict[str, Any]]:
        with (self.directory / "timeline.jsonl").open("rb") as timeline:
            timeline.seek(self._read)
            lines = timeline.read().split(b"\n")[:-1]
        # Whole lines stay; a test that waits for the thousandth reads each of them once.
        self._entries += [json.loads(line) for line in lines]
        self._read += sum(len(line) + 1 for line in lines)
        return [entry for entry in self._entries if kind is None or entry["kind"] == kind]

    async def until(self, reached: Callable[[], Any]) -> Any:
        """Wait until `reached()` is true, looking again at each ring."""
        async with asyncio.timeout(BOUND_SECONDS):
            while True:
                self._notified.clear()
                found = reached()
                if found:
                    return found
                await self._notified.wait()

    async def printed(self, text: bytes) -> None:
        await self.until(lambda: text in self.stream())

    async def entry(self, kind: str, number: int = 1) -> dict[str, Any]:
        """The `number`-th entry of a kind, when it is there."""
        found = await self.until(lambda: self.entries(kind)[number - 1 :])
        return dict(found[0])

    async def ended(self) -> tuple[int | None, str | None]:
        """Wait for the end of the first shell; return how it ended."""
        await self.has_ended(1)
        entry = self.entries("exit")[0]
        return entry["status"], entry["signal"]

    async def has_ended(self, times: int) -> None:
        """Wait until `times` shells of this conversation have ended."""
        await self.until(lambda: len(self.entries("exit")) == len(self.entries("eof")) == times)

    def check_timeline(self) -> None:
        """Offsets and times never decrease and lie in the stream."""
        entries = self.entries()
        for one, other in itertools.pairwise(entries):
            assert one["offset"] <= other["offset"]
            assert one["ts"] <= other["ts"]
            assert [*other][:3] == ["offset", "ts", "kind"]
        assert entries[-1]["offset"] <= len(self.stream())


async def death(pid: int) -> None:
    """Wait until a process has ended (not until it was collected)."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def died() -> None:
        loop.remove_reader(pidfd)  # it stays readable
        ended.set()

    loop.add_reader(pidfd, died)
    try:
        async with asyncio.timeout(BOUND_SECONDS):
            await ended.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


class Host:
    def __init__(self, home: Path, client: HostClient) -> None:
        self.home = home
        self.client = client

    def conversation(self, name: str = "c1") -> Spoken:
        directory = self.home / "conversations" / name
        directory.parent.mkdir(mode=0o700, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        return Spoken(self.client, name, directory)

    async def spoken(self, name: str = "c1") -> Spoken:
        """A conversation that is subscribed and not yet open."""
        conversation = self.conversation(name)
        await conversation.subscribe()
        return conversation


@contextlib.asynccontextmanager
async def running_host(home: Path) -> AsyncIterator[Host]:
    """A host, and at the end no conversation and no connection of it."""
    client = await HostClient.connect(home)
    try:
        yield Host(home, client)
    finally:
        with contextlib.suppress(BlockptyError):
            for one in await client.list():
                await client.close(one.conversation, grace_ms=0)
        client.leave()


async def kill_recorder(host: Host) -> None:
    """Kill the recorder and wait until another one answers."""
    old = (await host.client.hello()).recorder
    os.kill(old, signal.SIGKILL)
    await death(old)
    assert (await host.client.hello()).recorder != old


async def gone(hello: Hello, home: Path) -> None:
    """Wait until keeper and recorder have ended."""
    await death(hello.recorder)
    await death(hello.keeper)
    assert not (home / "host" / "host.sock").exists()


async def reached(one: Spoken, size: int, number: int) -> None:
    """Wait until the stream is that long, or the `number`-th shell has ended."""
    await one.until(lambda: one.length() >= size or len(one.entries("exit")) >= number)


async def typed(one: Spoken, line: bytes, requests: Iterator[int]) -> None:
    """Type a line once, whatever is killed meanwhile: again if it did not go in, and look if that is unknown."""
    while True:
        try:
            answer = await one.type(line, req=f"r{next(requests)}")
        except InternalError:
            # What is typed later is printed later: when the probe is there, the line is there or never will be.
            probe = b"probe %d" % next(requests)
            await typed(one, probe + b"\r", requests)
            await one.printed(probe + b"\r\n")
            if b"\n" + line[:-1] + b"\r\n" in one.stream():
                return
        else:
            if answer.accepted == len(line):
                return
            assert answer.accepted == 0
