"""The way that bytes take here, with nothing done on it: what is left when a recorder and an engine cost nothing.

One process has the terminal: it takes what is to be typed from a socket, copies what is printed into a file, and rings
a bell. The other one, on asyncio, reads the file and looks for a text. Both are as short as they can be in Python:
no request is answered, nothing is checked, no mark is understood, and neither block nor event is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from bench.terminals import CHUNK


class BarePath:
    """The second process: it sends what is to be typed, and waits for a text in the file."""

    def __init__(self, file: int, bell: int, sock: socket.socket) -> None:
        self._file = file
        self._bell = bell
        self._sock = sock
        self._offset = 0
        self._buffer = b""
        self._needle = b""
        self._future: asyncio.Future[str] | None = None
        asyncio.get_running_loop().add_reader(bell, self._woken)

    def type(self, data: bytes) -> None:
        """Have something typed."""
        self._sock.send(data)

    async def wait(self, needle: bytes) -> str:
        """Return what is printed from now on, up to a text and what came with it."""
        self._needle = needle
        self._future = asyncio.get_running_loop().create_future()
        return await self._future

    def _woken(self) -> None:
        os.read(self._bell, CHUNK)
        data = os.pread(self._file, CHUNK, self._offset)
        self._offset += len(data)
        self._buffer += data
        if self._needle in self._buffer and self._future is not None and not self._future.done():
            self._future.set_result(self._buffer.decode(errors="replace"))
            self._buffer = b""


@contextlib.contextmanager
def bare_path(master: int, path: Path) -> Iterator[BarePath]:
    """Have a terminal read by a process of its own, into a file."""
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    bell, rope = os.pipe()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            _copy(master, file, rope, theirs)
        finally:
            os._exit(0)
    theirs.close()
    made = BarePath(file, bell, ours)
    try:
        yield made
    finally:
        asyncio.get_running_loop().remove_reader(bell)
        ours.close()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(file)
        os.close(bell)
        os.close(rope)


def _copy(master: int, file: int, rope: int, sock: socket.socket) -> None:
    """The first process: type what comes, write what is printed."""
    while True:
        for ready in select.select((master, sock), (), ())[0]:
            if ready is sock:
                typed = sock.recv(CHUNK)
                if not typed:
                    return
                os.write(master, typed)
                continue
            try:
                data = os.read(master, CHUNK)
            except OSError:
                return
            os.write(file, data)
            os.write(rope, b"!")
