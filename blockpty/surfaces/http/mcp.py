"""Mount of MCP at /mcp, made by the first request to it: the SDK takes half a second to import."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from blockpty.surfaces.access import Caller, PeerForwarder
from blockpty.surfaces.extras import require
from blockpty.surfaces.http.guard import App, Receive, Scope, Send

if TYPE_CHECKING:
    from blockpty.surfaces.mcp.http import StreamableHttp


class MountedMcp:
    """The ASGI application at /mcp.

    Args:
        engine: the engine of the home.
        hosts, origins: what the gate lets through; the SDK, which has a gate of its own, gets the same.
        elsewhere: asked for conversations of other hosts.
    """

    def __init__(
        self, engine: Any, *, hosts: Collection[str], origins: Collection[str], elsewhere: PeerForwarder | None = None
    ) -> None:
        self._engine = engine
        self._elsewhere = elsewhere
        self._hosts = list(hosts)
        self._origins = list(origins)
        self._app: App | None = None
        self._mounted: StreamableHttp | None = None
        self._making = asyncio.Lock()
        self._leave = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._making:
            if self._app is None:
                self._app = await self._begin()
        await self._app(scope, receive, send)

    def end_streams(self) -> None:
        """End the streams of clients that listen: the server stops."""
        if self._mounted is not None:
            self._mounted.end_streams()

    async def close(self) -> None:
        """End all sessions."""
        self._leave.set()
        if self._running is not None:
            await self._running

    async def _begin(self) -> App:
        require("mcp", "MCP")
        started: asyncio.Future[App] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run(started))
        return await started

    async def _run(self, started: asyncio.Future[App]) -> None:
        # A task of its own: the SDK's task group must be left by the task that entered it.
        try:
            from blockpty.surfaces.mcp.http import StreamableHttp

            self._mounted = mounted = StreamableHttp(
                lambda principal: Caller(self._engine, principal.as_agent("mcp"), self._elsewhere),
                allowed_hosts=self._hosts,
                allowed_origins=self._origins,
                person_of=lambda principal: Caller(self._engine, principal, self._elsewhere),
            )
            async with mounted.run():
                started.set_result(mounted.app)
                await self._leave.wait()
        except BaseException as problem:
            if started.done():
                raise
            started.set_exception(problem)
