"""The real server of a home for tests: in this process, on a free port, and gone at the end with all its shells.

    async with serving(home) as server:
        answer = await server.ask("GET", "/v1/conversations")
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blockpty.errors import BlockptyError
from blockpty.surfaces.client import Client
from blockpty.surfaces.http.server import serve
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.settings import Settings

ERROR_KEYS = {"code", "message", "hint", "details"}
JSON_TYPE = ("Content-Type", "application/json")


@dataclass(frozen=True)
class Answer:
    """What came back for one request; `content` is the JSON of the body, None when there is none."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    content: Any

    @property
    def code(self) -> str:
        """The code of the error; a body in another shape than the one of all errors fails the test here."""
        assert isinstance(self.content, dict), self
        assert set(self.content) == {"ok", "error"} and self.content["ok"] is False, self
        assert set(self.content["error"]) == ERROR_KEYS, self
        assert b"Traceback" not in self.body and b'.py"' not in self.body, self
        return str(self.content["error"]["code"])


@dataclass
class Server:
    """One that runs."""

    home: Path
    state: dict[str, Any]
    token: str
    task: asyncio.Task[None]
    given: list[Client] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.state["url"].rpartition(":")[2])

    @property
    def host(self) -> str:
        """The Host header that is right."""
        return f"127.0.0.1:{self.port}"

    def client(self, token: str | None = None) -> Client:
        """A client over TCP; closed at the end."""
        self.given.append(Client(self.home, url=self.state["url"], token=token or self.token))
        return self.given[-1]

    async def ask(
        self, method: str, path: str, content: Any = None, *, token: str | None = "", **named: Any
    ) -> Answer:
        """Send a request as a well-behaved client does; `token`: None for none, "" for the owner's.

        `content`: bytes as they are, anything else as JSON; `headers`: further ones, which come last.
        """
        headers: list[tuple[str, str]] = [("Host", self.host)]
        if token is not None:
            headers.append(("Authorization", f"Bearer {token or self.token}"))
        body = b"" if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
        if method == "POST" and not any(name.lower() == "content-type" for name, _ in named.get("headers", ())):
            headers.append(JSON_TYPE)
        return await self.raw(method, path, [*headers, *named.get("headers", ())], body)

    async def raw(self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> Answer:
        """Send exactly this request, on a connection of its own, and return the answer."""
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "Connection: close"]
        if body and not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in headers):
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        return await self.exchange(head + body)

    async def exchange(self, data: bytes) -> Answer:
        """Write bytes to a connection of its own, and read the answer to its end."""
        async with self.connected() as (reader, writer):
            writer.write(data)
            return await read_answer(reader)

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A bare TCP connection to the server."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def operations(self) -> str:
        """What `/metrics` says of operations that were asked for: nothing, if none came through the gate."""
        text = (await self.ask("GET", "/metrics")).body.decode()
        return "\n".join(line for line in text.splitlines() if line.startswith("blockpty_operations_total{"))


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read one answer with a length, in chunks, or until the end of the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    elif headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
    else:
        body = await reader.read()
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    return Answer(int(first.split()[1]), headers, body, content)


@contextlib.asynccontextmanager
async def serving(home: Path, **settings: Any) -> AsyncIterator[Server]:
    """Run the server of a home; its conversations are closed at the end."""
    ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(serve(home, Settings(**{"port": 0, **settings}), ready.set_result))
    await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
    if not ready.done():
        ready.cancel()
        await task  # raises why
    server = Server(home, ready.result(), owner_token(home), task)
    try:
        yield server
    finally:
        for client in server.given:
            await client.close()
        async with Client(home, start=False) as client:
            await _close_all(client)
            await client.post("/admin/stop")
        await task
        await _end_watcher()


async def _end_watcher() -> None:
    """End what the MCP SDK's library for events leaves behind: one task that ends with the process's loop."""
    for task in asyncio.all_tasks():
        if getattr(task.get_coro(), "__name__", "") == "_shutdown_watcher":
            task.cancel()
            await asyncio.wait((task,))


async def _close_all(client: Client) -> None:
    for one in (await client.list()).conversations:
        if one.live:
            # A test may have ended it in this moment.
            with contextlib.suppress(BlockptyError):
                await client.call("close", {"conversation_id": one.conversation_id})
