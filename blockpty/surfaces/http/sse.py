"""Server-sent events: those of a conversation, resumable by `Last-Event-ID`, and the feed of the home.

Nothing is queued for a subscriber: the next event is read from the record when the one before has been taken, so a
slow one costs no memory and misses nothing. One that takes nothing at all for `STALLED_SECONDS` is disconnected.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, cast

from blockpty.errors import BadRequest, BlockptyError, Unauthorized
from blockpty.model.events import Event
from blockpty.ops.operation import Operation
from blockpty.ops.table import find
from blockpty.surfaces.access import Caller, PeerForwarder, check
from blockpty.surfaces.http.calls import ClientGone, defect, disconnected, not_forwarded, parameters
from blockpty.surfaces.http.feed import feed_messages
from blockpty.surfaces.http.guard import Receive, Scope, Send, refuse
from blockpty.surfaces.http.metrics import Metrics

KEEP_ALIVE_SECONDS: Final = 15.0
STALLED_SECONDS: Final = 60.0
_HEADERS: Final = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]


class EventsEndpoint:
    """Endpoint of a STREAM operation."""

    def __init__(
        self, operation: Operation, engine: Any, metrics: Metrics, elsewhere: PeerForwarder | None = None
    ) -> None:
        self._operation = operation
        self._engine = engine
        self._metrics = metrics
        self._elsewhere = elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            params = await parameters(self._operation, scope, receive)
            after = last_event_id(scope)
            if after is not None:
                params["from_seq"] = after + 1
            elsewhere = not_forwarded(scope, self._elsewhere)
            caller = Caller(self._engine, scope["state"]["principal"], elsewhere)
            events = caller.stream(self._operation.name, params)
        except BlockptyError as error:
            self._metrics.calls.labels(self._operation.name, error.code).inc()
            await refuse(scope, receive, send, error)
            return
        except ClientGone:
            return
        parts = (_part(event.type, event.seq, event.to_dict(params["conversation_id"])) async for event in events)
        async with aclosing(cast("AsyncGenerator[Event, None]", events)):
            await serve_events(scope, receive, send, parts, self._metrics)


class HomeFeedEndpoint:
    """The list of conversations, and what changes of it: what the WebSocket `/v1/ws` sends, without pictures."""

    def __init__(self, engine: Any, metrics: Metrics) -> None:
        self._engine = engine
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = scope["state"]["principal"]
        try:
            check(principal, find("list"), None)
        except BlockptyError as error:
            await refuse(scope, receive, send, error)
            return
        messages = feed_messages(self._engine, principal)
        parts = (_part(message["type"], None, message) async for message in messages)
        async with aclosing(messages):
            await serve_events(scope, receive, send, parts, self._metrics)


async def serve_events(
    scope: Scope, receive: Receive, send: Send, parts: AsyncGenerator[bytes, None], metrics: Metrics
) -> None:
    """Send a stream of events until it ends, fails, its token is removed or the client goes.

    A stream that fails before its first event is answered with the error's own status.
    """
    gone = asyncio.ensure_future(disconnected(receive))
    begun = False
    with metrics.stream("sse"):
        coming = asyncio.ensure_future(anext(parts))
        try:
            while True:
                # Before the first one: long enough to learn that there is no such conversation.
                patience = KEEP_ALIVE_SECONDS if begun else 1.0
                await asyncio.wait((coming, gone), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    return
                error = _failure(coming) or _revoked(scope)
                if error is not None and not begun:
                    await refuse(scope, receive, send, error)
                    return
                if not begun:
                    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                    begun = True
                if error is not None:
                    part = _part("error", None, error.to_dict())
                elif not coming.done():
                    part = b": still here\n\n"
                elif coming.exception() is not None:
                    await send({"type": "http.response.body", "body": b"event: end\ndata: {}\n\n"})
                    return
                else:
                    part = coming.result()
                    coming = asyncio.ensure_future(anext(parts))
                try:
                    async with asyncio.timeout(STALLED_SECONDS):
                        await send({"type": "http.response.body", "body": part, "more_body": error is None})
                except TimeoutError:
                    return
                metrics.sent.labels("sse").inc(len(part))
                if error is not None:
                    return
        finally:
            coming.cancel()
            gone.cancel()
            await asyncio.wait((coming, gone))
            await parts.aclose()


def _failure(coming: asyncio.Future[bytes]) -> BlockptyError | None:
    problem = coming.exception() if coming.done() else None
    if problem is None or isinstance(problem, StopAsyncIteration):
        return None
    return problem if isinstance(problem, BlockptyError) else defect(cast("Exception", problem))


def _revoked(scope: Scope) -> Unauthorized | None:
    """Return the error for a token that was removed since the stream began."""
    try:
        scope["state"]["renew"]()
    except Unauthorized as error:
        return error
    return None


def last_event_id(scope: Scope) -> int | None:
    """Return the number of the last event that the client has had; raises BadRequest when it is none of ours."""
    for name, value in scope["headers"]:
        if name == b"last-event-id" and value:
            if not value.isdigit() or len(value) > 15:
                raise BadRequest("Last-Event-ID is not the number of an event")
            return int(value)
    return None


def _part(kind: str, seq: int | None, content: dict[str, Any]) -> bytes:
    # json.dumps writes ASCII without line breaks, so the data is one line whatever a program printed.
    number = "" if seq is None else f"id: {seq}\n"
    return f"{number}event: {kind}\ndata: {json.dumps(content)}\n\n".encode()
