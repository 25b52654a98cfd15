"""Sockets of c1's terminal, as its clients see them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from blockpty import Client
from blockpty.surfaces.live_socket import conversation_target
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.tokens import add_token


def joined(home: Path, url: str, query: str = "", *, token: str | None = None, **options: Any) -> connect:
    """Connect to c1's terminal."""
    address = f"{url.replace('http', 'ws')}/v1/conversations/c1/ws{query}"
    headers = {"Authorization": f"Bearer {token or owner_token(home)}"}
    return connect(address, additional_headers=headers, proxy=None, max_size=None, **options)


class Terminal:
    """What one client has seen: its bytes with the cursor that they end at, and the other messages."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.cursor = -1
        self.pieces: list[tuple[int, bytes]] = []
        self.messages: list[dict[str, Any]] = []

    async def next(self) -> None:
        message = await self._socket.recv()
        if isinstance(message, bytes):
            self.pieces.append((self.cursor, message))
            self.cursor += len(message)
            return
        content = json.loads(message)
        self.messages.append(content)
        if content["type"] in ("hello", "resync", "screen"):
            self.cursor = content["cursor"]

    async def until(self, text: bytes) -> None:
        while text not in b"".join(data for _, data in self.pieces):
            await self.next()

    async def until_message(self, kind: str) -> dict[str, Any]:
        while not any(content["type"] == kind for content in self.messages):
            await self.next()
        return next(content for content in self.messages if content["type"] == kind)

    async def answer(self, frame: str | bytes, kind: str) -> dict[str, Any]:
        """Send a frame; return the first message of this kind that comes after it."""
        self.messages.clear()
        await self._socket.send(frame)
        return await self.until_message(kind)


@asynccontextmanager
async def person(home: Path, name: str) -> AsyncIterator[Person]:
    """Give the socket of a person of this name on c1."""
    token = add_token(home, name, "write", None, 0, "user")
    async with Client(home, token=token) as client, await client.websocket(conversation_target("c1")) as socket:
        yield Person(socket)


class Person(Terminal):
    """A person's socket."""

    async def does(self, kind: str) -> None:
        self.messages.clear()
        await self._socket.send(json.dumps({"type": kind}))

    async def sees(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Return the first message of a kind with these fields since something was done last."""
        while True:
            for message in self.messages:
                if message["type"] == kind and all(message.get(name) == value for name, value in fields.items()):
                    return message
            await self.next()
