"""Shells behind ssh that survive their connection, and what a test waits for in them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import blockpty

SOURCE = "ssh:127.0.0.1"
TIMEOUT_MS = 60_000


def record_of(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((directory / "stream").iterdir()))


async def connection(conversation: blockpty.Conversation, state: str, connections: int = 1) -> None:
    """Return when the connection is in this state, and at least so many have been made."""
    while True:
        status = await conversation.status()
        found = status.connection
        if found is not None and found["state"] == state and found["connections"] >= connections:
            return
        if status.exit is not None:
            pytest.fail(f"it is over: {status.exit}, {record_of(conversation.directory)[-2000:]!r}")
        await asyncio.sleep(0.01)


async def run(conversation: blockpty.Conversation, command: str, status: int, output: str) -> None:
    result = await conversation.run(command, timeout_ms=TIMEOUT_MS, max_bytes=1 << 20)
    assert (result.reason, result.block.exit_status, result.block.degraded) == ("prompt", status, None)
    assert result.output == output
