"""Unused conversations are closed, where that is wanted, and no others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test


@async_test
async def test_unused_conversations_are_closed(home: Path) -> None:
    """Also what an engine before this one left, and not what is waited for or runs a command."""
    async with blockpty.Engine(home, persist=True) as engine:
        await engine.open("before")
    async with blockpty.Engine(home, idle_timeout_seconds=0.5) as engine:
        working, waited = await engine.open("working"), await engine.open("waited")
        gate = home / "gate"
        await working.exec_block(f"mkfifo {gate}; cat {gate}")
        waiting = asyncio.create_task(waited.wait_for("never", timeout_ms=60_000))
        await ended(await engine.conversation("before"))
        # By the end of one that was opened later, the others have been looked at again.
        await ended(await engine.open("later"))
        assert await engine.live() == {"working", "waited"}
        gate.write_text("gone on\n")
        waiting.cancel()
        await ended(working)
        await ended(waited)
        assert (await working.verify()).clean


async def ended(conversation: blockpty.Conversation) -> None:
    """Wait for the end of the shell as one does who only reads."""
    async with asyncio.timeout(60):
        async for event in conversation.events():
            if event.type == "shell_exit":
                return


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_times_that_are_none(home: Path, seconds: float) -> None:
    with pytest.raises(blockpty.BadRequest):
        blockpty.Engine(home, idle_timeout_seconds=seconds)
    with pytest.raises(blockpty.BadRequest):
        blockpty.Engine(home, process_limit=-1)
    for nice in (-1, 20):
        with pytest.raises(blockpty.BadRequest):
            blockpty.Engine(home, shell_nice=nice)
