"""Command `blockpty run` on a terminal: what the command prints is shown while it runs.

A command that ends at once is shown from its result, as everywhere. Of one that takes longer the stream is followed, as
`tail` does, and the result only says how it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from blockpty.surfaces.cli.live import LiveOutput
from blockpty.surfaces.cli.tail import BlocksShown, Style, TailedRecord

if TYPE_CHECKING:
    from blockpty.model.events import Event
    from blockpty.model.results import RunResult
    from blockpty.surfaces.cli.render import ResultPrinter

# What ends sooner is shown from its result.
_BEGIN_SECONDS: Final = 0.4
# How long the last of its output is waited for once it has ended.
_REST_SECONDS: Final = 5.0


async def run_shown(
    screen: ResultPrinter, engine: Any, params: Mapping[str, Any], call: Awaitable[RunResult]
) -> RunResult:
    """Run a command, showing its output as it comes; return its result, without output that was shown.

    Args:
        screen: where notes are written.
        engine: where it runs.
        params: those of `run`.
        call: the call of `run` itself, to be awaited.
    """
    task = asyncio.ensure_future(call)
    try:
        await asyncio.wait((task,), timeout=_BEGIN_SECONDS)
        source = TailedRecord(engine, str(params["conversation_id"]))
        while not task.done():
            status = await source.status()
            if status.active_block_id is not None:
                style = _CommandOutput(screen, source.id)
                shown = BlocksShown(source, await source.begin_of_running(status), style)
                return await _followed(task, shown, status, style)
            # It waits for a person, or has just ended.
            await asyncio.wait((task,), timeout=_BEGIN_SECONDS)
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))


class _CommandOutput(Style):
    """Output of one block and nothing else; it says when that block has ended."""

    def __init__(self, screen: ResultPrinter, conversation_id: str) -> None:
        super().__init__(screen, LiveOutput(sys.stdout), conversation_id)
        self.ended = asyncio.Event()

    def end(self, event: Event) -> None:
        """Note it."""
        super().end(event)
        self.ended.set()


async def _followed(
    task: asyncio.Future[RunResult], shown: BlocksShown, status: Any, style: _CommandOutput
) -> RunResult:
    following = asyncio.ensure_future(shown.follow(status))
    try:
        await asyncio.wait((task, following), return_when=asyncio.FIRST_COMPLETED)
        result = await task
        if result.block.state != "running":
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(style.ended.wait(), _REST_SECONDS)
    finally:
        following.cancel()
        await asyncio.wait((following,))
        style.shown.finish()
    return replace(result, output="", truncated=False)
