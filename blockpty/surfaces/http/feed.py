"""WebSocket of a home: the list of conversations, then what changes of it, and pictures of screens.

    WS /v1/ws

To the client, text frames with JSON: `hello` {"version"}, then one `conversation` {"conversation", "approvals"} for
each conversation, its fields being those of `list`; then `listed`; then a `conversation` whenever one changes, and
`gone` {"conversation_id"} when one was deleted. A conversation that only prints more of the same is no change.

From the client: {"type": "screens", "ids": [...], "fps": 2} asks for pictures of these screens instead of those before,
at most 24, 0.2 to 10 a second. Each comes as `picture` {"conversation_id", "cols", "rows", "cursor", "lines": {row:
[run, ...]}}, with the rows that have changed since the last one; `cursor` and the runs are those of `screen` as json. A
screen that has not changed sends nothing.

Nothing is queued: what a slow client has not taken is one line for each conversation, as it is when it is taken.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from blockpty import __version__
from blockpty.errors import BadRequest, BlockptyError, Unauthorized
from blockpty.ops.requests import ConversationId
from blockpty.ops.table import find
from blockpty.surfaces.access import Caller, check
from blockpty.surfaces.http.calls import defect
from blockpty.surfaces.http.frames import Frames, accept, object_of
from blockpty.surfaces.http.guard import Receive, Scope, Send, refuse
from blockpty.surfaces.http.metrics import Metrics

MOST_SCREENS: Final = 24


class _ScreensAsked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    ids: list[ConversationId] = Field(max_length=MOST_SCREENS)
    fps: float = Field(default=2.0, ge=0.2, le=10)


class FeedEndpoint:
    """The WebSocket of a home."""

    def __init__(self, engine: Any, metrics: Metrics) -> None:
        self._engine = engine
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = Caller(self._engine, scope["state"]["principal"])
        try:
            check(caller.principal, find("list"), None)
        except BlockptyError as error:
            await refuse(scope, receive, send, error)
            return
        if (await receive())["type"] != "websocket.connect":
            return
        await accept(scope, send)
        with self._metrics.stream("websocket"):
            frames = Frames(receive, send, scope["state"]["renew"])
            await _Connection(self._engine, caller, frames).serve()


class _Connection:
    """One open socket."""

    def __init__(self, engine: Any, caller: Caller, frames: Frames) -> None:
        self._engine = engine
        self._caller = caller
        self._frames = frames
        self._pictures: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        await self._frames.tell({"type": "hello", "version": __version__})
        feeding = asyncio.ensure_future(self._feed())
        reading = asyncio.ensure_future(self._frames.read(self._take))
        code = 1000
        try:
            await asyncio.wait((feeding, reading), return_when=asyncio.FIRST_COMPLETED)
            problem = feeding.exception() if feeding.done() else reading.exception()
            if isinstance(problem, Unauthorized):
                code = 4401
            elif isinstance(problem, (TimeoutError, OSError)):
                code = 4008
            elif isinstance(problem, Exception):
                await self._frames.tell_error(problem if isinstance(problem, BlockptyError) else defect(problem))
        finally:
            tasks = [feeding, reading, *([self._pictures] if self._pictures is not None else [])]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if feeding.done():
            await self._frames.close(code)

    async def _feed(self) -> None:
        seen = self._caller.principal.conversations
        changes = self._engine.home_feed.changes(lambda name: seen is None or name in seen)
        listed = False
        async with aclosing(cast("AsyncGenerator[Any, None]", changes)):
            async for changed in changes:
                for change in changed:
                    if change.info is None:
                        await self._frames.tell({"type": "gone", "conversation_id": change.conversation_id})
                        continue
                    info = change.info.to_dict()
                    info.pop("ok")
                    await self._frames.tell(
                        {"type": "conversation", "conversation": info, "approvals": change.approvals}
                    )
                if not listed:
                    listed = True
                    await self._frames.tell({"type": "listed"})

    async def _take(self, message: Mapping[str, Any]) -> None:
        content = object_of(message) or {}
        if content.pop("type", None) != "screens":
            raise BadRequest('a text frame must be {"type": "screens", "ids": [...], "fps": 2}')
        try:
            asked = _ScreensAsked.model_validate(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise BadRequest(f"screens: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        for name in asked.ids:
            check(self._caller.principal, find("screen"), name)
        if self._pictures is not None:
            self._pictures.cancel()
            await asyncio.wait((self._pictures,))
        self._pictures = asyncio.ensure_future(self._show(asked)) if asked.ids else None

    async def _show(self, asked: _ScreensAsked) -> None:
        """Send pictures until this is cancelled, or the socket is gone."""
        shown: dict[str, tuple[int, int]] = {}
        while True:
            for name in asked.ids:
                known = self._engine.taken_up(name)
                # One that has ended is drawn once; what is not taken up has not changed.
                if known is not None and name in shown and shown[name][0] == known.cursor:
                    continue
                with suppress(BlockptyError):
                    cursor = known.cursor if known is not None else 0
                    shown[name] = cursor, await self._picture(name, shown.get(name, (0, None))[1])
            await asyncio.sleep(1 / asked.fps)

    async def _picture(self, name: str, since: int | None) -> int:
        params = {"conversation_id": name, "format": "json", **({} if since is None else {"since": since})}
        found = json.loads((await self._caller.call("screen", params)).to_dict()["content"])
        changed = found["changed"] if since is not None else range(len(found["lines"]))
        lines = {str(row): found["lines"][row]["runs"] for row in changed if row < len(found["lines"])}
        if lines or since is None:
            await self._frames.tell(
                {
                    "type": "picture", "conversation_id": name, "cols": found["cols"], "rows": found["rows"],
                    "cursor": found["cursor"], "lines": lines,
                }
            )  # fmt: skip
        return int(found["seqno"])
