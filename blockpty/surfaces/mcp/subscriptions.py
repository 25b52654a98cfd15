"""Subscriptions to resources: a client is notified when screen, blocks or transcript of a conversation change.

Rules of this file: a notification says that something changed and nothing else; what it is, the client reads, with the
rights that it has then. A subscription follows the events of the conversation, which are there once the record is, and
ends with the connection. A busy program causes no flood: of one resource there is at most one notification in
`PAUSE_SECONDS`, and always one after the last change.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final, cast

from mcp.shared.exceptions import MCPError

from blockpty.errors import BadRequest, BlockptyError
from blockpty.surfaces.mcp.resources import refusal, subscribed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp.server.context import ServerRequestContext

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
        follower = _Follower(caller, context, uri, kind)
        followed[uri] = asyncio.create_task(follower.follow(name, start))


async def unsubscribe(context: ServerRequestContext[Any, Any], uri: str) -> None:
    """End a subscription; nothing where there is none."""
    followed: dict[str, asyncio.Task[None]] = context.session._connection.state.get(_STATE, {})
    if (task := followed.pop(uri, None)) is not None:
        task.cancel()


async def _end(followed: dict[str, asyncio.Task[None]]) -> None:
    for task in followed.values():
        task.cancel()
    await asyncio.gather(*followed.values(), return_exceptions=True)


class _Follower:
    """Follows one resource for one client."""

    def __init__(self, caller: Caller, context: ServerRequestContext[Any, Any], uri: str, kind: str) -> None:
        self._caller = caller
        self._session = context.session
        self._uri = uri
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
                await self._session.send_resource_updated(self._uri)
            await asyncio.sleep(PAUSE_SECONDS)
