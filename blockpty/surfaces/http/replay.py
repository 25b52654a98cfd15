"""Replay over a WebSocket, for viewers: moments with their recorded times out, a player's commands in.

    WS /v1/conversations/{conversation_id}/replay?speed=1&idle_limit=2&from_seconds=90&block_id=b7

To the client, all as JSON in text frames: `hello` first (`duration_seconds`, `speed`, `idle_limit`); then each moment
as `Moment.to_dict` says it, the first a `screen`; `end` when all is played, and the socket stays open for a seek;
`error`.
From the client: {"type": "pause"}, {"type": "resume"}, {"type": "seek", "seconds" | "cursor"}, {"type": "step",
"blocks" | "changes"}, {"type": "speed", "speed"}, {"type": "idle_limit", "seconds"}. A seek or step may have a `tag`;
before the screen that it leads to comes {"type": "turned", "tag"}, so that a client knows which moments are older.

Nothing is queued: the next moment is sent when the socket has taken the one before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from blockpty.errors import BadRequest, BlockptyError
from blockpty.ops.requests import ConversationId
from blockpty.ops.table import find
from blockpty.surfaces.access import PeerForwarder, check
from blockpty.surfaces.http.calls import query
from blockpty.surfaces.http.frames import Frames, accept, object_of
from blockpty.surfaces.http.guard import Receive, Scope, Send, refuse
from blockpty.surfaces.http.metrics import Metrics
from blockpty.surfaces.http.relay import query_of, refuse_or_relay


class _ReplayQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    conversation_id: ConversationId
    speed: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    idle_limit: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    from_seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    to_seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    from_cursor: int | None = Field(default=None, ge=0)
    to_cursor: int | None = Field(default=None, ge=0)
    block_id: str | None = Field(default=None, min_length=1)


class ReplayEndpoint:
    """The WebSocket of a replay."""

    def __init__(self, engine: Any, metrics: Metrics, elsewhere: PeerForwarder | None = None) -> None:
        self._engine = engine
        self._metrics = metrics
        self._elsewhere = elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = scope["state"]["principal"]
        try:
            asked = _asked(scope)
            check(principal, find("read"), asked.conversation_id)
        except BlockptyError as error:
            await refuse(scope, receive, send, error)
            return
        try:
            conversation = await self._engine.conversation(asked.conversation_id)
            replay = conversation.replay(**asked.model_dump(exclude={"conversation_id"}))
        except BlockptyError as error:
            target = f"/v1/conversations/{asked.conversation_id}/replay?{query_of(asked)}"
            # Whatever is sent there only looks.
            await refuse_or_relay(error, self._elsewhere, target, lambda _: None, self._metrics, scope, receive, send)
            return
        async with replay:
            if (await receive())["type"] != "websocket.connect":
                return
            await accept(scope, send)
            with self._metrics.stream("websocket"):
                await _Player(replay, Frames(receive, send, scope["state"]["renew"])).serve()


def _asked(scope: Scope) -> _ReplayQuery:
    try:
        return _ReplayQuery.model_validate_strings({**query(scope), **scope["path_params"]})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise BadRequest(f"replay: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


class _Player:
    """One open socket."""

    def __init__(self, replay: Any, frames: Frames) -> None:
        self._replay = replay
        self._frames = frames
        self._turned = asyncio.Event()
        self._tag: Any = None

    async def serve(self) -> None:
        await self._frames.serve(self._play(), self._take)

    async def _play(self) -> None:
        replay = self._replay
        await self._frames.tell(
            {
                "type": "hello",
                "duration_seconds": await replay.duration_seconds(),
                "speed": replay.speed,
                "idle_limit": replay.idle_limit,
            }
        )
        while True:
            self._turned.clear()
            async for moment in replay:
                if moment.type == "screen" and self._tag is not None:
                    tag, self._tag = self._tag, None
                    # It has been obeyed: the end comes once after it.
                    self._turned.clear()
                    await self._frames.tell({"type": "turned", "tag": tag})
                await self._frames.tell(moment.to_dict())
            await self._frames.tell({"type": "end"})
            await self._turned.wait()

    async def _take(self, message: Mapping[str, Any]) -> None:
        content = object_of(message) or {}
        kind = content.get("type")
        replay = self._replay
        if kind == "pause":
            replay.pause()
        elif kind == "resume":
            replay.resume()
        elif kind == "speed":
            replay.speed = content.get("speed")
        elif kind == "idle_limit":
            replay.idle_limit = content.get("seconds")
        elif kind in ("seek", "step"):
            if kind == "seek":
                replay.seek(content.get("seconds"), cursor=_whole("cursor", content.get("cursor")))
            else:
                changes = _whole("changes", content.get("changes"))
                replay.step(_whole("blocks", content.get("blocks", 1)) or 0, changes=changes)
            self._tag = content.get("tag")
            self._turned.set()
        else:
            raise BadRequest(
                "no message of a replay", hint='{"type": ...}: pause, resume, seek, step, speed or idle_limit'
            )


def _whole(name: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53):
        return value
    raise BadRequest(f"{name} must be a whole number")
