"""Relay of a WebSocket to the host that has the conversation: frames go on both ways.

Rules of this file: who may send what is decided here, before it goes out under the token of this server; a text frame
is written anew from what was checked. Nothing is queued: the next frame is taken when the one before has gone on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from blockpty.errors import BadRequest, BlockptyError, NotFound, Unauthorized
from blockpty.surfaces.access import PeerForwarder, address_of
from blockpty.surfaces.http.calls import not_forwarded
from blockpty.surfaces.http.frames import STALLED_SECONDS, Frames, accept, object_of
from blockpty.surfaces.http.guard import Receive, Scope, Send, refuse
from blockpty.surfaces.http.metrics import Metrics

if TYPE_CHECKING:
    from pydantic import BaseModel
    from websockets.asyncio.client import ClientConnection

# How the other server ends what went well, and a client that takes nothing; all else is its, or the network's, failure.
_PASSED_ON: Final = (1000, 4008)
_BAD_GATEWAY: Final = 1014

Check = Callable[[Mapping[str, Any] | None], None]
"""Raises Forbidden for a frame that the caller may not send: the object of a text frame, None for a binary one."""


def query_of(asked: BaseModel) -> str:
    """Return the query of what was asked for, without the conversation, which stands in the path."""
    given = asked.model_dump(mode="json", exclude_unset=True, exclude={"conversation_id"})
    return urlencode({name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()})


async def refuse_or_relay(
    error: BlockptyError,
    elsewhere: PeerForwarder | None,
    target: str,
    check: Check,
    metrics: Metrics,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Answer a handshake that has failed here: with the same WebSocket of the host that the error names, or with it."""
    asked = not_forwarded(scope, elsewhere)
    if asked is None or not isinstance(error, NotFound) or address_of(error) is None:
        await refuse(scope, receive, send, error)
        return
    try:
        there = await asked.socket(error, scope["state"]["principal"], target)
    except BlockptyError as problem:
        await refuse(scope, receive, send, problem)
        return
    try:
        if (await receive())["type"] == "websocket.connect":
            await accept(scope, send)
            with metrics.stream("websocket"):
                caller = Frames(receive, send, scope["state"]["renew"])
                await _Relay(there, error, check, metrics, caller).serve()
    finally:
        await there.close()


class _Relay:
    """Two open sockets: `there` of the other server, the other that of the caller."""

    def __init__(
        self, there: ClientConnection, found: NotFound, check: Check, metrics: Metrics, caller: Frames
    ) -> None:
        self._there = there
        self._found = found
        self._check = check
        self._metrics = metrics
        self._caller = caller

    async def serve(self) -> None:
        ways = [asyncio.ensure_future(self._to_caller()), asyncio.ensure_future(self._caller.read(self._hand_on))]
        code: int | None = 1000
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            code = next(iter(done)).result()
        except Unauthorized:
            code = 4401
        except (TimeoutError, OSError):
            code = 4008
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        if code is not None:
            await self._caller.close(code)

    async def _to_caller(self) -> int:
        """Hand on until the other server ends it; return with which code."""
        from websockets.exceptions import ConnectionClosed

        while True:
            try:
                frame = await self._there.recv()
            except ConnectionClosed:
                break
            await self._caller.send({"text": frame} if isinstance(frame, str) else {"bytes": frame})
            self._metrics.sent.labels("websocket").inc(len(frame))
        code = self._there.close_code
        if code in _PASSED_ON:
            return int(code)
        reason = "that server has ended the connection"
        await self._caller.tell_error(NotFound(f"{self._found.message}; {reason}", hint=self._found.hint, details={
            **self._found.details, "reason": reason,
        }))  # fmt: skip
        return _BAD_GATEWAY

    async def _hand_on(self, message: Mapping[str, Any]) -> None:
        from websockets.exceptions import ConnectionClosed

        frame = self._checked(message)
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                await self._there.send(frame)
        except ConnectionClosed:
            await asyncio.Event().wait()  # the other way tells it

    def _checked(self, message: Mapping[str, Any]) -> str | bytes:
        if message.get("bytes") is not None:
            self._check(None)
            return bytes(message["bytes"])
        content = object_of(message)
        if content is None:
            raise BadRequest("a text frame must be a JSON object")
        self._check(content)
        return json.dumps(content)
