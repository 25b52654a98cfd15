"""The far side of an ssh source that survives its connection: a session of this home, over standard input and output.

`blockpty proxy --session` runs this for `blockpty/host/ssh_bridge.py`, whose frames are described there. The host of
this home keeps the session when this process is gone; the next one goes on where the near side says.

Rules of this file: nothing is queued, output is read from the record when the connection takes it. The number of every
input is in the record, so one that has been typed is not typed again. Of two processes for one session the later one
is right: the connection of the other is gone, whether it has noticed or not.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from blockpty.errors import BadRequest, BlockptyError, LineTooLong, NotFound
from blockpty.host.client import HostClient
from blockpty.host.ssh_bridge import GREETING, FrameReader, framed
from blockpty.spool.layout import Layout, check_conversation_id, conversations_directory
from blockpty.spool.storage import open_file
from blockpty.spool.stream import StreamReader
from blockpty.spool.timeline import TimelineReader

STEP_BYTES: Final = 64 * 1024
LOCK_NAME: Final = "proxy.lock"
# What an input is called in the timeline, with its number behind it.
REQUEST: Final = "far."
INPUT_DEADLINE_MS: Final = 60_000
_NUMBER: Final = struct.Struct(">Q")
_SIZE: Final = struct.Struct(">HH")


async def serve_session(home: Path) -> int:
    """Serve one connection on standard input and output; return the exit status of the process.

    Raises BadRequest for a first line that asks for nothing, and what `open` raises.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    try:
        asked = json.loads(await reader.readline())
        name, begin = check_conversation_id(asked["conversation"]), int(asked["from"])
        size = int(asked["cols"]), int(asked["rows"])
    except (KeyError, TypeError, ValueError):
        raise BadRequest("this is for a blockpty on another machine, which says first what it asks for") from None
    layout = Layout(conversations_directory(home) / name)
    if not layout.meta.exists():
        if begin:
            raise NotFound(f"there is no session {name} any more")
        await _open(home, name, asked, size)
    lock = await _only_one(layout.directory)
    try:
        host = await HostClient.connect(home)
        try:
            return await _Session(host, name, layout, begin).serve(reader, size)
        finally:
            host.leave()
    finally:
        os.close(lock)


async def _open(home: Path, name: str, asked: Mapping[str, Any], size: tuple[int, int]) -> None:
    """Start the login shell of this user in a conversation that outlives this process."""
    from blockpty.runtime.engine import ConversationEngine

    shell = os.environ.get("SHELL") or "/bin/sh"
    argv = asked.get("argv") or [shell, "-l"]
    env = {key: str(value) for key, value in dict(asked.get("env") or {}).items()}
    async with ConversationEngine(home) as engine:
        # Queries of programs are answered by the near side.
        await engine.open(
            name, source=f"exec:{json.dumps(argv)}", env=env, cwd=os.path.expanduser("~"), cols=size[0], rows=size[1],
            persist=True, answers=False, pagers=True,
        )  # fmt: skip


async def _only_one(directory: Path) -> int:
    """Return a lock that no other process for this session has; one that has it is ended."""
    lock = open_file(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            other = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
            if other.isdecimal() and _is_ours(int(other)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(other), signal.SIGKILL)
            await asyncio.sleep(0.01)
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _is_ours(pid: int) -> bool:
    """Whether a process is one of these: the number may be that of one that has ended, and another's by now."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        # It has ended; where no process can be looked at, nothing tells.
        return not Path("/proc/self").exists()
    return b"proxy" in arguments and b"--session" in arguments


class _Session:
    """One connection to one session."""

    def __init__(self, host: HostClient, name: str, layout: Layout, begin: int) -> None:
        self._host = host
        self._name = name
        self._stream = StreamReader(layout.stream)
        self._timeline = TimelineReader(layout.timeline)
        self._cursor = begin
        self._grown = asyncio.Event()
        self._inputs = 0
        self._exit: dict[str, Any] | None = None
        self._over = False
        self._out: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, size: tuple[int, int]) -> int:
        loop = asyncio.get_running_loop()
        found = await self._host.subscribe(self._name, 0, self._grown.set)
        self._read_timeline()
        if not found.live:
            # Its host has gone without a word where there is no exit.
            self._exit, self._over = self._exit or {"status": None, "signal": None}, True
        else:
            with contextlib.suppress(BlockptyError):
                await self._host.resize(self._name, *size, author="user")
        protocol = asyncio.streams.FlowControlMixin(loop=loop)
        transport, _ = await loop.connect_write_pipe(lambda: protocol, sys.stdout.buffer)
        self._out = asyncio.StreamWriter(transport, protocol, None, loop)
        self._out.write(b"\n" + GREETING + json.dumps({"version": 1, "inputs": self._inputs}).encode() + b"\n")
        ways = [asyncio.ensure_future(self._send()), asyncio.ensure_future(self._receive(reader))]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for way in ways:
                way.cancel()
            await asyncio.wait(ways)
        return 0

    async def _send(self) -> None:
        """Send output from the cursor on, and how the shell ended behind the last of it."""
        out = self._out
        assert out is not None
        while True:
            self._grown.clear()
            self._read_timeline()
            while data := self._stream.read(self._cursor, STEP_BYTES):
                out.write(framed(b"O", _NUMBER.pack(self._cursor) + data))
                self._cursor += len(data)
                await out.drain()
            if self._over and self._exit is not None and self._cursor >= self._stream.size():
                out.write(framed(b"X", json.dumps(self._exit).encode()))
                await out.drain()
                # The near side closes.
                await asyncio.Event().wait()
            await self._grown.wait()

    def _read_timeline(self) -> None:
        for entry, _ in self._timeline.read_new():
            if entry.kind == "input":
                request = str(entry.fields.get("req") or "")
                if request.startswith(REQUEST) and request[len(REQUEST) :].isdecimal():
                    self._inputs = max(self._inputs, int(request[len(REQUEST) :]))
            elif entry.kind == "exit":
                self._exit = {"status": entry.fields.get("status"), "signal": entry.fields.get("signal")}
            elif entry.kind == "eof":
                self._over = True

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        frames = FrameReader()
        while data := await reader.read(STEP_BYTES):
            for kind, content in frames.feed(data):
                await self._take(kind, content)

    async def _take(self, kind: bytes, content: bytes) -> None:
        assert self._out is not None
        if kind == b"P":
            self._out.write(framed(b"P"))
        elif kind == b"R":
            with contextlib.suppress(BlockptyError):
                await self._host.resize(self._name, *_SIZE.unpack(content), author="user")
        elif kind == b"C":
            with contextlib.suppress(BlockptyError):
                await self._host.close(self._name)
        elif kind == b"I":
            await self._type(_NUMBER.unpack_from(content)[0], content[_NUMBER.size :])
            self._out.write(framed(b"A", content[: _NUMBER.size]))

    async def _type(self, number: int, data: bytes) -> None:
        """Type one input; what the terminal does not take is dropped, as a terminal does."""
        if number <= self._inputs:
            return
        with contextlib.suppress(LineTooLong, BlockptyError):
            while data:
                typed = await self._host.input(
                    self._name, data, author="user", req=f"{REQUEST}{number}", deadline_ms=INPUT_DEADLINE_MS
                )
                data = data[typed.accepted :]
        self._inputs = max(self._inputs, number)
