"""Subscriptions to resources: a client is notified when screen, blocks or transcript of a conversation change.

Rules of this file: a notification says that something changed and nothing else; what it is, the client reads, with the
rights that it has then. A subscription follows the events of the conversation, which are there once the record is. A
busy program causes no flood: of one resource there is at most one notification in `PAUSE_SECONDS`, and always one after
the last change.

Up to 2025-11-25 a client subscribes to one resource after another (`resources/subscribe`), and that ends with its
connection. Since 2026-07-28 it asks for a stream (`subscriptions/listen`), which is the answer to that request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from blockpty.errors import BadRequest, BlockptyError
from blockpty.surfaces.mcp.resources import refusal, subscribed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp.server.context import ServerRequestContext
    from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

    from blockpty.surfaces.access import Caller

PAUSE_SECONDS: Final = 0.5
_MOST: Final = 64
# What changes a resource; anything changes the others.
_CHANGES: Final = {"blocks": frozenset({"agent_block_begin", "agent_block_end", "agent_session_begin"})}
_STATE: Final = "blockpty/subscriptions"


async def subscribe(caller: Caller, context: ServerRequestContext[Any, Any], uri: str) -> None:
    """Notify the client of changes of a resource from now on; raises MCPError."""
    connection = context.session._connection  # the SDK gives handlers no other way to what ends with the client
    followed: dict[str, asyncio.Task[None]] = connection.state.setdefault(_STATE, {})
    try:
        name, kind = subscribed(uri)
        if uri not in followed and len(followed) >= _MOST:
            raise BadRequest(f"a client may follow {_MOST} resources", hint="unsubscribe from one")
        # From here on; it also says whether this caller may look at it.
        start = (await caller.call("status", {"conversation_id": name})).to_dict()["next_seq"]
    except BlockptyError as error:
        raise refusal(error) from None
    if not followed:
        connection.exit_stack.push_async_callback(_end, followed)
    if uri not in followed:
        follower = _Follower(caller, kind, lambda: context.session.send_resource_updated(uri))
        followed[uri] = asyncio.create_task(follower.follow(name, start))


async def unsubscribe(context: ServerRequestContext[Any, Any], uri: str) -> None:
    """End a subscription; nothing where there is none."""
    followed: dict[str, asyncio.Task[None]] = context.session._connection.state.get(_STATE, {})
    if (task := followed.pop(uri, None)) is not None:
        task.cancel()


class ListenStreams:
    """The streams of the clients that listen; `close` ends them, each with its last message."""

    def __init__(self) -> None:
        self._open: set[ListenHandler] = set()

    def close(self) -> None:
        """End all streams: their server stops."""
        for handler in self._open:
            handler.close()

    async def listen(
        self, caller: Caller, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Answer with a stream of notifications until the client leaves it; raises MCPError.

        The first one says which resources are followed: those that can be, and that this caller may read.
        """
        asked = params.notifications
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)
        honoured: list[str] = []
        starts: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}
        followers: dict[str, asyncio.Future[None]] = {}
        try:
            for uri in dict.fromkeys(asked.resource_subscriptions or ()):
                with suppress(BlockptyError):
                    name, kind = subscribed(uri)
                    seq = (await caller.call("status", {"conversation_id": name})).to_dict()["next_seq"]
                    if len(honoured) < _MOST:
                        honoured.append(uri)
                        follower = _Follower(caller, kind, partial(bus.publish, ResourceUpdated(uri)))
                        starts[uri] = partial(follower.follow, name, seq)
            # Tools and prompts never change; which conversations there are, a client lists.
            followed = asked.model_copy(update={"resource_subscriptions": honoured, "resources_list_changed": None})
            self._open.add(handler)
            # None of them runs before the handler has subscribed to the bus.
            followers.update((uri, asyncio.ensure_future(start())) for uri, start in starts.items())
            return await handler(context, params.model_copy(update={"notifications": followed}))
        finally:
            self._open.discard(handler)
            await _end(followers)


async def _end(followed: Mapping[str, asyncio.Future[None]]) -> None:
    for task in followed.values():
        task.cancel()
    await asyncio.gather(*followed.values(), return_exceptions=True)


class _Follower:
    """Follows one resource for one client; `notify` sends it a notification."""

    def __init__(self, caller: Caller, kind: str, notify: Callable[[], Awaitable[None]]) -> None:
        self._caller = caller
        self._send = notify
        self._types = _CHANGES.get(kind)
        self._changed = asyncio.Event()

    async def follow(self, name: str, from_seq: int) -> None:
        """Notify until cancelled, or until the conversation has no more events."""
        notifying = asyncio.create_task(self._notify())
        try:
            with suppress(BlockptyError):
                events = self._caller.stream("events", {"conversation_id": name, "from_seq": from_seq})
                async with aclosing(cast("AsyncGenerator[Any, None]", events)):
                    async for event in events:
                        if self._types is None or event.type in self._types:
                            self._changed.set()
        finally:
            notifying.cancel()
            await asyncio.gather(notifying, return_exceptions=True)

    async def _notify(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            with suppress(MCPError):
                await self._send()
            await asyncio.sleep(PAUSE_SECONDS)
