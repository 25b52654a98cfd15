"""WebSocket frames, as all endpoints send and take them: one at a time, up to the end.

Rules of this file: what is sent, and what a message means, is not known here. Nothing is queued.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from blockpty.errors import BlockptyError, Unauthorized
from blockpty.surfaces.http.calls import defect
from blockpty.surfaces.http.guard import PROTOCOL, Receive, Scope, Send

STALLED_SECONDS: Final = 60.0
"""A socket that takes nothing for so long is closed."""


async def accept(scope: Scope, send: Send) -> None:
    """Answer a handshake that was good."""
    chosen = PROTOCOL if PROTOCOL in scope.get("subprotocols", ()) else None
    await send({"type": "websocket.accept", "subprotocol": chosen})


class Frames:
    """One open socket; `renew` raises Unauthorized when its token was removed."""

    def __init__(self, receive: Receive, send: Send, renew: Callable[[], object]) -> None:
        self._receive = receive
        self._raw_send = send
        self._renew = renew
        self._sending = asyncio.Lock()

    def check(self) -> None:
        """Raise Unauthorized when its token was removed."""
        self._renew()

    async def send(self, frame: Mapping[str, Any]) -> None:
        """Send `text` or `bytes`; raises TimeoutError when they are not taken, Unauthorized, OSError."""
        self._renew()
        # uvicorn's send returns when the socket's buffer has room again: that is the whole flow control.
        async with asyncio.timeout(STALLED_SECONDS), self._sending:
            await self._raw_send({"type": "websocket.send", **frame})

    async def tell(self, content: Mapping[str, Any]) -> None:
        """Send an object."""
        await self.send({"text": json.dumps(content)})

    async def tell_error(self, error: BlockptyError) -> None:
        """Send an error; the socket stays open."""
        await self.tell({"type": "error", **error.to_dict()})

    async def read(self, take: Callable[[Mapping[str, Any]], Awaitable[None]]) -> None:
        """Have each message taken, until the other side goes; an error of one is sent, and the next is read."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            self._renew()
            try:
                await take(message)
            except BlockptyError as error:
                await self.tell_error(error)

    async def serve(
        self, work: Coroutine[Any, Any, None], take: Callable[[Mapping[str, Any]], Awaitable[None]]
    ) -> None:
        """Do the work and have messages taken, until one of both ends; then close the socket, saying how it ended."""
        working, reading = asyncio.ensure_future(work), asyncio.ensure_future(self.read(take))
        code = 1000
        try:
            await asyncio.wait((working, reading), return_when=asyncio.FIRST_COMPLETED)
            problem = working.exception() if working.done() else reading.exception()
            if isinstance(problem, Unauthorized):
                code = 4401
            elif isinstance(problem, TimeoutError | OSError):
                code = 4008
            elif isinstance(problem, BlockptyError):
                await self.tell_error(problem)
            elif isinstance(problem, Exception):
                await self.tell_error(defect(problem))
        except (BlockptyError, TimeoutError, OSError):
            code = 4008
        finally:
            for task in (working, reading):
                task.cancel()
            await asyncio.wait((working, reading))
        if reading.cancelled() or reading.exception() is not None:
            await self.close(code)

    async def close(self, code: int) -> None:
        """End it, unless the other side has gone."""
        try:
            await self._raw_send({"type": "websocket.close", "code": code})
        except (OSError, RuntimeError):
            pass  # it has gone already


def object_of(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the object that a text frame holds; None for anything else."""
    try:
        content = json.loads(message.get("text") or "")
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
