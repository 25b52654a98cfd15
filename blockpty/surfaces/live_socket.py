"""The WebSocket of one conversation, joined at its screen, and opened again when it is lost.

Rules of this file: frames in their order and no picture of them; no clock, but for the pauses between two attempts.
What is sent while there is no connection is dropped: later it would mean something else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from blockpty.errors import BlockptyError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

WINDOW_BYTES: Final = 256 * 1024
"""How much output the server sends beyond what was acknowledged."""
JOIN: Final = f"join=screen&scrollback=0&window={WINDOW_BYTES}&max_lag=1048576&data=false&watchers=true"
SIGNED_OUT: Final = 4401
_FIRST_SECONDS, _LONGEST_SECONDS = 0.25, 5.0


class ConnectionChange(Struct, frozen=True):
    """The connection was lost, or is there again.

    Attributes:
        live: whether there is one.
        problem: why the last attempt failed.
    """

    live: bool
    problem: str = ""


Frame = bytes | Mapping[str, Any] | ConnectionChange


def growing() -> Iterator[float]:
    """Yield the seconds between attempts: twice as long each time, up to five."""
    pause = _FIRST_SECONDS
    while True:
        yield pause
        pause = min(_LONGEST_SECONDS, 2 * pause)


class LiveSocket:
    """A WebSocket of the server that is opened again when it closes.

    Args:
        client: a client of the server.
        target: returns path and query of the next connection.
        pauses: returns the seconds between attempts.
    """

    def __init__(
        self, client: Any, target: Callable[[], str], pauses: Callable[[], Iterator[float]] = growing
    ) -> None:  # fmt: skip
        self._client = client
        self._target = target
        self._pauses = pauses
        self._socket: ClientConnection | None = None
        self._again = asyncio.Event()

    @property
    def live(self) -> bool:
        """Whether there is a connection."""
        return self._socket is not None

    async def open(self) -> None:
        """Connect; raises what the server answers instead."""
        self._socket = await self._client.websocket(self._target())

    async def frames(self) -> AsyncIterator[Frame]:
        """Yield what the server sends, until it closes the connection for good; text frames as objects."""
        from websockets.exceptions import ConnectionClosed

        assert self._socket is not None
        while True:
            try:
                frame = await self._socket.recv()
            except ConnectionClosed as closed:
                code = closed.rcvd.code if closed.rcvd is not None else None
                if code in (1000, SIGNED_OUT):
                    return
                self._socket = None
                async for change in self._reconnect():
                    yield change
                assert self._socket is not None
            else:
                yield frame if isinstance(frame, bytes) else json.loads(frame)

    async def _reconnect(self) -> AsyncIterator[ConnectionChange]:
        pauses = self._pauses()
        yield ConnectionChange(False)
        while True:
            try:
                self._socket = await self._client.websocket(self._target())
            except BlockptyError as problem:
                yield ConnectionChange(False, str(problem))
                self._again.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._again.wait(), next(pauses))
            else:
                yield ConnectionChange(True)
                return

    def now(self) -> None:
        """Try again at once, where an attempt has failed."""
        self._again.set()

    async def send(self, frame: bytes | Mapping[str, Any]) -> bool:
        """Send a frame; return whether there was a connection to send it on."""
        from websockets.exceptions import ConnectionClosed

        if self._socket is None:
            return False
        try:
            await self._socket.send(frame if isinstance(frame, bytes) else json.dumps(frame))
        except ConnectionClosed:
            return False
        return True

    async def acknowledge(self, cursor: int) -> None:
        """Say up to where output was taken, so that more is sent."""
        await self.send({"type": "ack", "cursor": cursor})

    async def close(self) -> None:
        """Close the connection; `frames` ends."""
        if self._socket is not None:
            await self._socket.close()


def conversation_target(conversation_id: str, from_seq: int | None = None) -> str:
    """Return the target of a conversation's socket, joined at the screen; events begin at `from_seq`, or are new."""
    since = "" if from_seq is None else f"from_seq={from_seq}&"
    return f"/v1/conversations/{conversation_id}/ws?{since}{JOIN}"
