"""One tool call: its caller, its progress, and its end when the client does not want it any more.

Rules of this file: a call that is cancelled is cancelled once and waited for, so that the operation can record its own
end; what runs in the terminal is not touched by that. Progress is reported only to who asked for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp.server.context import ServerRequestContext

from blockpty.errors import BlockptyError
from blockpty.model.results import Result
from blockpty.surfaces.access import Caller

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Caller]
"""Finds who makes a request; raises Unauthorized."""

PROGRESS_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call while it is answered.

    Attributes:
        context: of the request, as the SDK gives it.
        caller: on whose behalf.
        params: the arguments.
        answers: the client's answer to what this call had asked before, and state: what it was told to bring along;
            only in protocol versions in which a call that needs an answer is made anew.
    """

    context: Context
    caller: Caller
    params: Mapping[str, Any]
    answers: Mapping[str, Any] | None = None
    state: str | None = None

    async def run(self, operation: str, params: Mapping[str, Any], *, waited_ms: int = 0) -> Result:
        """Call an operation, reporting progress every second; raises BlockptyError.

        Args:
            operation: its name.
            params: its parameters.
            waited_ms: for how long this tool call has waited before, so that progress only grows.
        """
        loop = asyncio.get_running_loop()
        begin = loop.time() - waited_ms / 1000
        # A task of its own: a cancel scope would cancel again what the operation does to end properly.
        task = loop.create_task(self.caller.call(operation, params))
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=PROGRESS_SECONDS)
                if not task.done() and self.wants_progress:
                    await self._report(round((loop.time() - begin) * 1000), params)
        finally:
            if not task.done():
                task.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait((task,))
                if not task.cancelled():
                    task.exception()
        return task.result()

    @property
    def wants_progress(self) -> bool:
        """Whether the client gave a token for progress."""
        meta = self.context.meta
        return meta is not None and meta.get("progress_token") is not None

    async def _report(self, elapsed_ms: int, params: Mapping[str, Any]) -> None:
        message = f"{elapsed_ms / 1000:.0f} s"
        conversation_id = params.get("conversation_id")
        if conversation_id is not None:
            # It may be closed by now, or not be open yet; then there is only the time to tell.
            with contextlib.suppress(BlockptyError):
                status = (await self.caller.call("status", {"conversation_id": conversation_id})).to_dict()
                message = f"{message}, {status['cursor']} bytes in the transcript, {status['mode']}"
        await self.context.session.report_progress(elapsed_ms, params.get("timeout_ms"), message)
