"""Replay that a server plays: the methods of Replay, over its WebSocket.

Rules of this file: no rule of its own; what is asked for is sent, and what comes is given out. Moments that were on
their way when a seek was asked for are passed over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

from blockpty.errors import BadRequest, InternalError, error_from_code
from blockpty.model.replay_frames import Moment

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection


class RemoteReplay:
    """Moments of a server's conversation with their recorded times; an async iterator, as `Conversation.replay` gives.

    It is connected to the server when the first moment is asked for, and raises then what is wrong.
    """

    def __init__(
        self, connect: Callable[[str], Awaitable[ClientConnection]], conversation_id: str, params: Mapping[str, Any]
    ) -> None:
        given = {name: value for name, value in params.items() if value is not None}
        self._target = f"/v1/conversations/{conversation_id}/replay?{urlencode(given)}"
        self._connect = connect
        self._socket: ClientConnection | None = None
        self._asked: list[dict[str, Any]] = []
        self._hello: dict[str, Any] = {}
        self._speed = float(params["speed"])
        self._idle_limit: float | None = params["idle_limit"]
        self._paused = False
        # Of the last seek that was asked for, and of the last that was done.
        self._tag = self._reached = 0
        self._sender: asyncio.Task[None] | None = None
        self._last: Moment | None = None
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection."""
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    async def duration_seconds(self) -> float:
        """Return how long what is replayed took."""
        await self._connected()
        return float(self._hello["duration_seconds"])

    @property
    def speed(self) -> float:
        """How many times as fast as it was; 0 does not wait at all."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._speed = speed
        self._ask(type="speed", speed=speed)

    @property
    def idle_limit(self) -> float | None:
        """Seconds to which longer silences are shortened; None leaves them as they were."""
        return self._idle_limit

    @idle_limit.setter
    def idle_limit(self, seconds: float | None) -> None:
        self._idle_limit = seconds
        self._ask(type="idle_limit", seconds=seconds)

    @property
    def position_seconds(self) -> float:
        """The recorded time of the last moment that was given out."""
        return 0.0 if self._last is None else self._last.at_ms / 1000

    @property
    def cursor(self) -> int | None:
        """The stream offset of the last moment that was given out; None before the first."""
        return None if self._last is None else self._last.cursor

    @property
    def paused(self) -> bool:
        """Whether it was paused; a few moments may be on their way."""
        return self._paused

    def pause(self) -> None:
        """Stand still until `resume`."""
        self._paused = True
        self._ask(type="pause")

    def resume(self) -> None:
        """Go on."""
        self._paused = False
        self._ask(type="resume")

    def seek(self, seconds: float | None = None, *, cursor: int | None = None) -> None:
        """Go to a time after the begin, or to a stream offset; the next moment is the screen as it was there."""
        if (seconds is None) == (cursor is None):
            raise BadRequest("give either seconds or cursor")
        self._turn({"type": "seek", "seconds": seconds, "cursor": cursor})

    def step(self, blocks: int = 1, *, changes: int | None = None) -> None:
        """Go to where a block begins: forwards, or with a negative number back; 0 is the begin of the one that runs.

        `changes`: so many changes of what is shown on, or back, instead.
        """
        self._turn({"type": "step", "blocks": blocks, "changes": changes})

    def _turn(self, message: dict[str, Any]) -> None:
        self._tag += 1
        self._over = False
        self._ask(**message, tag=self._tag)

    def _ask(self, **message: Any) -> None:
        self._asked.append(message)
        socket = self._socket
        if socket is not None:
            self._sender = asyncio.get_running_loop().create_task(self._send(socket))

    async def _send(self, socket: ClientConnection) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            while self._asked:
                await socket.send(json.dumps(self._asked.pop(0)))
        except ConnectionClosed:
            return  # the reader of the next moment is notified

    async def _connected(self) -> ClientConnection:
        if self._socket is None:
            socket = await self._connect(self._target)
            self._hello = json.loads(await socket.recv())
            await self._send(socket)
            self._socket = socket
        return self._socket

    async def __anext__(self) -> Moment:
        from websockets.exceptions import ConnectionClosed

        socket = await self._connected()
        if self._over:
            raise StopAsyncIteration
        while True:
            try:
                content = json.loads(await socket.recv())
            except ConnectionClosed as problem:
                raise InternalError(f"the server has ended the replay: {problem}", hint="ask again") from None
            kind = content["type"]
            if kind == "turned":
                self._reached = content["tag"]
            elif kind == "error":
                error = content["error"]
                raise error_from_code(error["code"], error["message"], error["hint"], error["details"])
            elif self._reached == self._tag:
                if kind == "end":
                    self._over = True
                    raise StopAsyncIteration
                self._last = Moment.from_dict(content)
                return self._last
