"""The way to the server of a home on another machine, through ssh: `ssh:[user@]host[:port]` in the place of a URL.

    <a private directory>/socket    ours; each connection to it is one ssh that runs `blockpty proxy` over there

Rules of this file: nothing is asked of a person (a key or an agent lets us in). Who may be asked over there is decided
by sshd, so the far side gives us its owner's token, over the same way; it is kept in memory alone. A connection that is
lost is an error of what was asked over it; the next one is a new ssh.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from blockpty.errors import BlockptyError, NotFound
from blockpty.host.sources import parse_source
from blockpty.host.ssh_bridge import GREETING

SCHEME: Final = "ssh:"
GREET_SECONDS: Final = 40.0
_ALIVE: Final = ("-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3")
_COMMAND: Final = "exec sh -c 'PATH=\"$PATH:$HOME/.local/bin\"; exec blockpty proxy{}'"


def is_way(address: str) -> bool:
    """Whether an address is one of ssh."""
    if not address.startswith(SCHEME):
        return False
    try:
        return parse_source(address) is not None
    except BlockptyError:
        return False


class SshWay:
    """Connections to one far home; `close` it."""

    def __init__(self, address: str) -> None:
        source = parse_source(address)
        assert source is not None and source.kind == "ssh"  # `is_way` was asked
        program, *rest = source.argv
        self._argv = [program, *_ALIVE, *("-T" if one == "-tt" else one for one in rest)]
        self._address = address
        self._opening = asyncio.Lock()
        self._directory: str | None = None
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._children: list[subprocess.Popen[bytes]] = []
        self.token = ""

    async def open(self) -> str:
        """Return the path of our socket, and have a token; raises NotFound with what ssh says."""
        async with self._opening:
            if self._directory is None:
                self.token = await self._greeted()
                self._directory = tempfile.mkdtemp(prefix="bpw")
                self._listener = socket.socket(socket.AF_UNIX)
                self._listener.bind(self._path())
                self._listener.listen(64)
                self._listener.setblocking(False)
                self._accepting = asyncio.get_running_loop().create_task(self._accept(self._listener))
            return self._path()

    def _path(self) -> str:
        return str(Path(str(self._directory)) / "socket")

    async def _greeted(self) -> str:
        process = await asyncio.create_subprocess_exec(
            *self._argv, _COMMAND.format(" --greet"), stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(GREET_SECONDS):
                said, refused = await process.communicate()
        except TimeoutError:
            said, refused = b"", b"it does not answer"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        line = said.partition(GREETING)[2].partition(b"\n")[0]
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return str(json.loads(line)["token"])
        reason = refused.decode("utf-8", "replace").strip().rpartition("\n")[2][-200:]
        if process.returncode == 127:
            reason = "blockpty is not installed there"
        raise NotFound(
            f"no server answers at {self._address}: {reason or 'no answer'}",
            hint="`ssh HOST blockpty proxy --greet` says more",
            details={"server": self._address},
        )

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listener)
            self._children = [child for child in self._children if child.poll() is None]
            connection.setblocking(True)
            with connection, contextlib.suppress(OSError):
                self._start(connection)

    def _start(self, connection: socket.socket) -> None:
        """Have an ssh read and write a connection itself: no byte of it passes through here."""
        argv, end = [*self._argv, _COMMAND.format("")], connection.fileno()
        self._children.append(
            subprocess.Popen(argv, stdin=end, stdout=end, stderr=subprocess.DEVNULL, start_new_session=True)
        )

    async def close(self) -> None:
        """End all connections."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait({self._accepting})
        if self._listener is not None:
            self._listener.close()
        for child in self._children:
            child.kill()
            child.wait()
        self._children.clear()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._directory = self._listener = self._accepting = None
