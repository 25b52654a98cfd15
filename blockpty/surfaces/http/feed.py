"""WebSocket of a home: the list of conversations, then what changes of it, and pictures of screens.

    WS /v1/ws

To the client, text frames with JSON: `hello` {"version"}, then one `conversation` {"conversation", "approvals",
"decided", "bell_ts"} for each conversation, its fields being those of `list`; then `listed`; then a `conversation`
whenever one changes, and `gone` {"conversation_id"} when one was deleted. A conversation that only prints more of the
same is no change. `decided` says what became of the last approvals, as the events `approval_decided` do, `bell_ts` when
its program rang the bell last, in ms since 1970; null where it has not since the server follows it.

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
from contextlib import aclosing
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from blockpty import __version__
from blockpty.control.principals import Principal
from blockpty.errors import BadRequest, BlockptyError
from blockpty.ops.requests import ConversationId
from blockpty.ops.table import find
from blockpty.surfaces.access import Caller, check
from blockpty.surfaces.http.frames import Frames, accept, object_of
from blockpty.surfaces.http.guard import Receive, Scope, Send, refuse
from blockpty.surfaces.http.metrics import Metrics

MOST_SCREENS: Final = 24


class _ScreensAsked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    ids: list[ConversationId] = Field(max_length=MOST_SCREENS)
    fps: float = Field(default=2.0, ge=0.2, le=10)


async def feed_messages(engine: Any, principal: Principal) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the messages of a home for who may see it: `conversation` for each, `listed`, then what changes."""
    seen = principal.conversations
    changes = engine.home_feed.changes(lambda name: seen is None or name in seen)
    listed = False
    async with aclosing(cast("AsyncGenerator[Any, None]", changes)):
        async for changed in changes:
            for change in changed:
                if change.info is None:
                    yield {"type": "gone", "conversation_id": change.conversation_id}
                    continue
                info = change.info.to_dict()
                info.pop("ok")
                yield {
                    "type": "conversation", "conversation": info, "approvals": change.approvals,
                    "decided": change.decided, "bell_ts": change.bell_ts,
                }  # fmt: skip
            if not listed:
                listed = True
                yield {"type": "listed"}


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
            await _FeedSocket(self._engine, caller, frames).serve()


class _FeedSocket:
    """One open socket."""

    def __init__(self, engine: Any, caller: Caller, frames: Frames) -> None:
        self._engine = engine
        self._caller = caller
        self._frames = frames
        self._asked = _ScreensAsked(ids=[])
        self._asks = asyncio.Event()

    async def serve(self) -> None:
        await self._frames.tell({"type": "hello", "version": __version__})
        await self._frames.serve(self._send(), self._take)

    async def _send(self) -> None:
        """Send lines and pictures, until one of both fails."""
        tasks = asyncio.ensure_future(self._feed()), asyncio.ensure_future(self._show())
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _feed(self) -> None:
        async with aclosing(feed_messages(self._engine, self._caller.principal)) as messages:
            async for message in messages:
                await self._frames.tell(message)

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
        self._asked = asked
        self._asks.set()

    async def _show(self) -> None:
        """Send pictures of the screens that were asked for last."""
        while True:
            await self._asks.wait()
            self._asks.clear()
            asked = self._asked
            shown: dict[str, tuple[int, int]] = {}
            while asked.ids and not self._asks.is_set():
                for name in asked.ids:
                    known = self._engine.attached(name)
                    cursor = known.cursor if known is not None else 0
                    # One that has ended is drawn once; what is not attached has not changed.
                    if name in shown and (known is None or shown[name][0] == cursor):
                        continue
                    found = await self._screen(name, shown[name][1] if name in shown else None)
                    if found is not None:
                        await self._tell_picture(name, found, since=name in shown)
                        shown[name] = cursor, found["seqno"]
                await asyncio.sleep(1 / asked.fps)

    async def _screen(self, name: str, since: int | None) -> dict[str, Any] | None:
        """Return a screen as json; None for one that cannot be had now, such as a deleted one."""
        params = {"conversation_id": name, "format": "json", **({} if since is None else {"since": since})}
        try:
            found: dict[str, Any] = json.loads((await self._caller.call("screen", params)).to_dict()["content"])
        except BlockptyError:
            return None
        return found

    async def _tell_picture(self, name: str, found: Mapping[str, Any], *, since: bool) -> None:
        changed = found["changed"] if since else range(len(found["lines"]))
        lines = {str(row): found["lines"][row]["runs"] for row in changed if row < len(found["lines"])}
        if lines or not since:
            await self._frames.tell(
                {
                    "type": "picture", "conversation_id": name, "cols": found["cols"], "rows": found["rows"],
                    "cursor": found["cursor"], "lines": lines,
                }
            )  # fmt: skip
