"""A network between a browser and a server that can be cut and restored, and can put a path before the server's."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TcpProxy:
    """Passes connections on to a port of this machine, from a thread of its own; not thread safe but for its methods.

    Cut, it breaks every connection and refuses new ones; stalled, it keeps them and passes nothing on. With `below`,
    the server is found below this path, such as `/tools/blockpty`, and nowhere else.
    """

    def __init__(self, target: int, below: str = "") -> None:
        self.port = 0
        self._target = target
        self._below = below.encode()
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._cut = False
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Break what is open and refuse what comes."""
        self._do(cut=True, stalled=False)

    def stall(self) -> None:
        """Pass nothing on, and close nothing: a cable that was pulled."""
        self._do(cut=False, stalled=True)

    def restore(self) -> None:
        """Work again."""
        self._do(cut=False, stalled=False)

    def _do(self, **how: bool) -> None:
        done = threading.Event()

        def run() -> None:
            self._set(**how)
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait()

    def _set(self, *, cut: bool, stalled: bool) -> None:
        self._cut = cut
        (self._open.clear if stalled else self._open.set)()
        if cut:
            for writer in self._writers:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        ends = {writer, back}
        self._writers |= ends
        try:
            if self._below:
                await self._pass_request(reader, back)
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        finally:
            self._writers -= ends
            for one in ends:
                one.close()

    async def _pass_request(self, reader: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Pass the head of a connection's only request on, without the path before the server's."""
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, rest = head.split(b" ", 2)
        # What is not below the path is not there either: the server knows no such operation.
        path = path.removeprefix(self._below) if path.startswith(self._below + b"/") else b"/v1/nowhere"
        back.write(b" ".join((method, path, re.sub(rb"(?i)(\r\nconnection:) keep-alive", rb"\1 close", rest))))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._open.set()
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()


@contextmanager
def between(target: int, below: str = "") -> Iterator[TcpProxy]:
    """Run a proxy in front of a port."""
    proxy = TcpProxy(target, below)
    ready = threading.Event()
    thread = threading.Thread(target=proxy._run, args=(ready,))
    thread.start()
    ready.wait()
    try:
        yield proxy
    finally:
        proxy._loop.call_soon_threadsafe(proxy._loop.stop)
        thread.join()
