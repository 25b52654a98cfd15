"""Tests of the command line that have a conversation in an engine of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import blockpty
from tests.support.async_tests import async_test

Conversation = blockpty.Conversation


def in_a_conversation(test: Callable[[Conversation], Awaitable[None]]) -> Callable[[Path], None]:
    @async_test
    async def run(home: Path) -> None:
        async with blockpty.Engine(home) as engine:
            await test(await engine.open("c1", shell="bash", cwd="/"))

    run.__name__ = test.__name__
    return run
