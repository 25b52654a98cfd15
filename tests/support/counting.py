"""Counts what goes on beside a test: bytes that are read of files, and turns of the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


class ReadBytes:
    """How many bytes `os.pread` has returned since this was made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        plain = os.pread

        def counted(descriptor: int, length: int, offset: int) -> bytes:
            data = plain(descriptor, length, offset)
            self.count += len(data)
            return data

        monkeypatch.setattr(os, "pread", counted)


async def turns_beside(work: Awaitable[object]) -> int:
    """Return how often the event loop came round while something went on."""
    task = asyncio.ensure_future(work)
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    await task
    return turns
