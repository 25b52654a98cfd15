"""WebSocket of a conversation: the terminal's bytes and events out, input and sizes in.

    WS /v1/conversations/{conversation_id}/ws?from_cursor=N&from_seq=N&events=true
    WS /v1/conversations/{conversation_id}/ws?join=screen&scrollback=1000&window=262144&max_lag=1048576&data=false

To the client: text frames with JSON (`hello` first, then `event`, `resize`, `restart`, `resync`, `error`, `end`), and
binary frames with the terminal's bytes, the first of which is at the cursor of `hello` or of the last `resync`.
With `join` or `window`, `resize` {"cursor", "cols", "rows", "fresh"} and `restart` {"cursor", "data"} stand between
the bytes that they belong between; the first `resize` tells the size there is. `fresh`: a shell began; `restart`:
output that is not in the stream and makes the terminal ready for that shell.

With `join=screen`, `hello` is followed by {"type": "screen", "cursor", "seq", "cols", "rows", "data"}, and the first
binary frame is at its cursor. `data` is text: output that makes a new terminal of this size what ours is there, with
`scrollback` rows above it, 0 to 1000. With `window`, no more than so many bytes are sent beyond the last
{"type": "ack", "cursor"} of the client, and who is further behind than `max_lag` gets a `screen` with `skipped_bytes`.
Until such a client has caught up, it gets a `screen` at most five times a second, each when it has acknowledged the
last one, and no bytes in between. Only the last of those, when the client has caught up, has rows above the screen.
With `redraw=true`, another `screen` follows each `resize` as soon as there is one, and shows all bytes up to its
cursor: for a terminal that reflows long lines in another way than ours.

With `data=false`, events of output have its span and not its text, which the binary frames have already, and there are
no more than four of them in a second: the span of one is that of all it stands for, its `seq` that of the last. With
`types=agent_block_begin,agent_block_end` only events of these types are sent.

With `watchers=true`, {"type": "watchers", "count", "names", "asking"} says how many sockets are open on the
conversation at this server, whose they are, and who asks for control, at first and whenever that changes.

From the client: binary frames are input, text frames JSON: {"type": "input", "data" | "data_b64"}, {"type": "paste",
"text"}, {"type": "resize", "cols", "rows"}, {"type": "take_control", "who"?, "shared"?} or {"type": "release_control"}.
What `paste` does with a text, the operation of that name says. Who has taken control over
a socket keeps it while the socket is open and for 30 seconds after that. It is answered by {"type": "control", "seq",
...}; an event with a number below `seq` that comes later was before it.

{"type": "ask_control"} takes control where no other person has it. Else the socket asks for it, which is answered by
{"type": "asking", "state": "waits", "who"}, and gets it, with a `control`, as soon as it is handed back; of several who
ask, the first. {"type": "keep_control"}, from who has it, refuses all who ask, and {"type": "stop_asking"} ends it on
one's own side: `asking` then has the state `kept` or `ended`, and of `kept` "who" says who keeps it. Asking ends with
its socket, and is not recorded.

Nothing is queued: both streams are read from the record when the socket takes them. Without a window, who
falls back by more than `LIMIT_BYTES` is sent on with a `resync` that names the cursor; what lies between can be read at
leisure. A socket that takes nothing for `STALLED_SECONDS` is closed with 4008, one whose token was removed with 4401.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from blockpty.api.limits import SCROLLBACK
from blockpty.errors import BadRequest, BlockptyError, Unauthorized
from blockpty.model.events import EVENT_TYPES, Event
from blockpty.ops.requests import ConversationId
from blockpty.ops.table import find
from blockpty.runtime.event_feed import follow_events
from blockpty.runtime.watching import FlowWindow, Joined, Restarted, SizeChange, TerminalWatch
from blockpty.surfaces.access import Caller, PeerForwarder, check
from blockpty.surfaces.http.calls import defect, query
from blockpty.surfaces.http.control_frames import CONTROL_FRAMES, SocketControl
from blockpty.surfaces.http.frames import Frames, accept, object_of
from blockpty.surfaces.http.guard import Receive, Scope, Send, refuse
from blockpty.surfaces.http.metrics import Metrics
from blockpty.surfaces.http.presence import Presence
from blockpty.surfaces.http.relay import query_of, refuse_or_relay

LIMIT_BYTES: Final = 8 * 1024 * 1024
MAX_LAG: Final = 1024 * 1024


class _SocketQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    conversation_id: ConversationId
    from_cursor: int | None = Field(default=None, ge=0)
    from_seq: int | None = Field(default=None, ge=0)
    events: bool = True
    data: bool = True
    types: str | None = Field(default=None, max_length=1000)
    watchers: bool = False
    join: Literal["screen"] | None = None
    scrollback: int | None = Field(default=None, ge=0, le=SCROLLBACK)
    window: int | None = Field(default=None, ge=4096, le=16 * 1024 * 1024)
    max_lag: int | None = Field(default=None, ge=4096, le=1024 * 1024 * 1024)
    redraw: bool = False

    @model_validator(mode="after")
    def _fit_together(self) -> _SocketQuery:
        if self.join is not None and self.from_cursor is not None:
            raise ValueError("give either join or from_cursor")
        if self.max_lag is not None and self.window is None:
            raise ValueError("max_lag needs window")
        if self.redraw and self.join is None:
            raise ValueError("redraw needs join")
        for name in self.types.split(",") if self.types is not None else ():
            if name not in EVENT_TYPES:
                raise ValueError(f"types: {name[:40]!r} is not an event type")
        return self

    @property
    def wanted(self) -> frozenset[str] | None:
        """Which types of events were asked for; None for all."""
        return frozenset(self.types.split(",")) if self.types is not None else None

    @property
    def flow(self) -> FlowWindow | None:
        """What was asked for of flow control."""
        return None if self.window is None else FlowWindow(self.window, self.max_lag or MAX_LAG)


class SocketEndpoint:
    """The WebSocket of a conversation."""

    def __init__(self, engine: Any, metrics: Metrics, elsewhere: PeerForwarder | None = None) -> None:
        self._engine = engine
        self._metrics = metrics
        self._elsewhere = elsewhere
        self._presence = Presence()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = Caller(self._engine, scope["state"]["principal"])
        try:
            asked = _asked(scope)
            check(caller.principal, find("events"), asked.conversation_id)
        except BlockptyError as error:
            await refuse(scope, receive, send, error)
            return

        def check_frame(frame: Mapping[str, Any] | None) -> None:
            kind = frame.get("type") if frame is not None else None
            if kind == "ack":
                return
            name = str(kind) if kind in ("paste", "resize", "take_control", "release_control") else "send"
            check(caller.principal, find(name), asked.conversation_id)

        try:
            conversation = await self._engine.conversation(asked.conversation_id)
            hello = await self._hello(caller, conversation, asked)
        except BlockptyError as error:
            target = f"/v1/conversations/{asked.conversation_id}/ws?{query_of(asked)}"
            await refuse_or_relay(error, self._elsewhere, target, check_frame, self._metrics, scope, receive, send)
            return
        if (await receive())["type"] != "websocket.connect":
            return
        await accept(scope, send)
        with self._metrics.stream("websocket"):
            frames = Frames(receive, send, scope["state"]["renew"])
            connection = _ConversationSocket(self._metrics, caller, conversation, frames, asked, self._presence)
            with self._presence.here(conversation.id, caller.principal.name):
                await connection.serve(hello)

    async def _hello(self, caller: Caller, conversation: Any, asked: _SocketQuery) -> dict[str, Any]:
        status = await caller.call("status", {"conversation_id": asked.conversation_id})
        state = conversation.live.state
        cursor = state.classified if asked.from_cursor is None else asked.from_cursor
        if cursor > state.classified:
            raise BadRequest(f"from_cursor {cursor} lies behind the end {state.classified}")
        seq = state.next_event if asked.from_seq is None else asked.from_seq
        return {"type": "hello", "cursor": cursor, "seq": seq, "status": status.to_dict()}


def _asked(scope: Scope) -> _SocketQuery:
    try:
        return _SocketQuery.model_validate_strings({**query(scope), **scope["path_params"]})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise BadRequest(f"ws: {'.'.join(map(str, first['loc'])) or 'query'}: {first['msg']}") from None


def _message(seen: Joined | SizeChange | Restarted) -> dict[str, Any]:
    if isinstance(seen, SizeChange):
        return {
            "type": "resize", "cursor": seen.cursor, "cols": seen.cols, "rows": seen.rows, "fresh": seen.fresh,
        }  # fmt: skip
    if isinstance(seen, Restarted):
        return {"type": "restart", "cursor": seen.cursor, "data": seen.data.decode("ascii")}
    point = seen.point
    screen = {
        "type": "screen", "cursor": point.cursor, "seq": point.seq, "cols": point.cols, "rows": point.rows,
        "data": point.data,
    }  # fmt: skip
    return {**screen, "skipped_bytes": seen.skipped} if seen.skipped else screen


class _ConversationSocket:
    """One open socket."""

    def __init__(
        self, metrics: Metrics, caller: Caller, conversation: Any, frames: Frames, asked: _SocketQuery,
        presence: Presence,
    ) -> None:  # fmt: skip
        self._asked = asked
        self._presence = presence
        self._watch: TerminalWatch | None = None
        self._metrics = metrics
        self._caller = caller
        self._conversation = conversation
        self._frames = frames
        self._control = SocketControl(caller, conversation, frames, presence)

    async def serve(self, hello: dict[str, Any]) -> None:
        code = 1000
        streams = [self._bytes(hello["cursor"])] + ([self._events(hello["seq"])] if self._asked.events else [])
        streams += [self._watchers()] if self._asked.watchers else []
        await self._frames.tell(hello)
        tasks = [asyncio.ensure_future(one) for one in streams]
        reading = asyncio.ensure_future(self._frames.read(self._take))
        try:
            pending = {*tasks, reading}
            while pending and not reading.done():
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                problem = next((one.exception() for one in done if one.exception() is not None), None)
                if isinstance(problem, TimeoutError):
                    code = 4008
                    break
                if isinstance(problem, Unauthorized):
                    code = 4401
                    break
                if isinstance(problem, BlockptyError):
                    await self._frames.tell_error(problem)
                elif isinstance(problem, Exception) and not isinstance(problem, OSError):
                    await self._frames.tell_error(defect(problem))
                if tasks[0] in done and problem is None:
                    await self._frames.tell({"type": "end"})
        except Unauthorized:
            code = 4401
        except (TimeoutError, OSError):
            code = 4008
        finally:
            for task in (*tasks, reading):
                task.cancel()
            await asyncio.wait((*tasks, reading))
            await self._control.close()
        if not reading.done() or reading.cancelled() or reading.exception() is not None:
            await self._frames.close(code)

    async def _bytes(self, cursor: int) -> None:
        asked = self._asked
        joins = asked.join is not None
        self._watch = TerminalWatch(
            self._conversation.live,
            None if joins else cursor,
            joins=joins,
            scrollback=SCROLLBACK if asked.scrollback is None else asked.scrollback,
            window=asked.flow,
            limit_bytes=LIMIT_BYTES,
            redraws=asked.redraw,
        )
        pieces = self._watch.items()
        async with aclosing(cast("AsyncGenerator[Any, None]", pieces)):
            async for piece in pieces:
                if isinstance(piece, Joined | SizeChange | Restarted):
                    if not joins and asked.window is None:
                        continue  # a client of before knows no such message
                    await self._frames.tell(_message(piece))
                elif piece.skipped:
                    self._metrics.resyncs.inc()
                    await self._frames.tell({"type": "resync", "cursor": piece.cursor, "skipped_bytes": piece.skipped})
                else:
                    await self._frames.send({"bytes": piece.data})
                    self._metrics.sent.labels("websocket").inc(len(piece.data))

    async def _events(self, seq: int) -> None:
        wanted = self._asked.wanted
        events: AsyncIterator[Event]
        if self._asked.data and (wanted is None or "agent_block_delta" in wanted):
            events = self._caller.stream("events", {"conversation_id": self._conversation.id, "from_seq": seq})
        else:
            # The text of each piece of output is not read, looked at for secrets and dropped again for each socket.
            events = follow_events(self._conversation.live, seq, True, with_data=False, types=wanted)
        async with aclosing(cast("AsyncGenerator[Event, None]", events)):
            async for event in events:
                if wanted is None or event.type in wanted:
                    await self._frames.tell({"type": "event", "event": event.to_dict(self._conversation.id)})

    async def _watchers(self) -> None:
        async with aclosing(self._presence.follow(self._conversation.id)) as changes:
            async for present in changes:
                names, asking = present.names, [*dict.fromkeys(present.asking)]
                await self._frames.tell(
                    {"type": "watchers", "count": len(names), "names": sorted(set(names)), "asking": asking}
                )

    async def _take(self, message: Mapping[str, Any]) -> None:
        if message.get("bytes") is not None:
            await self._input({"data_b64": base64.b64encode(message["bytes"]).decode("ascii")})
            return
        content = object_of(message) or {}
        kind = content.pop("type", None)
        if kind == "ack":
            self._acknowledge(content)
        elif kind == "input":
            await self._input(content)
        elif kind == "paste":
            await self._caller.as_person().call("paste", {**content, "conversation_id": self._conversation.id})
        elif kind == "resize":
            await self._caller.call("resize", {**content, "conversation_id": self._conversation.id})
        elif kind in CONTROL_FRAMES:
            await self._control.handle(kind, content)
        else:
            raise BadRequest(
                'a text frame must be {"type": "input", ...}, "paste", "resize", "ack", "take_control", '
                '"release_control", "ask_control", "keep_control" or "stop_asking"'
            )

    def _acknowledge(self, content: Mapping[str, Any]) -> None:
        cursor = content.get("cursor")
        if set(content) != {"cursor"} or not isinstance(cursor, int) or isinstance(cursor, bool) or cursor < 0:
            raise BadRequest("an ack must have a cursor, a whole number", hint='{"type": "ack", "cursor": 1024}')
        if self._watch is None:
            raise BadRequest("nothing has been sent that could be acknowledged")
        self._watch.acknowledge(cursor)

    async def _input(self, params: Mapping[str, Any]) -> None:
        # Who types over a socket is a person, unless the token is an agent's or the frame says otherwise.
        author = {"author": "user"} if self._caller.principal.is_person else {}
        await self._caller.call("send", {**author, **params, "conversation_id": self._conversation.id})
