"""Connecting to the host of a home, and giving that up."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import pytest

from blockpty.host import client, launch
from tests.support.async_tests import async_test


@async_test
async def test_a_connection_that_is_made_after_the_call_was_cancelled_is_closed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that connects cannot be cancelled, so what it made has to be closed elsewhere."""
    asked, go_on = threading.Event(), threading.Event()
    ours, theirs = socket.socketpair()

    def connect(path: str, *, start: bool = True) -> socket.socket | None:
        asked.set()
        go_on.wait()
        return ours

    monkeypatch.setattr(launch, "connect", connect)
    connecting = asyncio.ensure_future(client.HostClient.connect(home))
    await asyncio.to_thread(asked.wait)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert ours.fileno() != -1
    go_on.set()
    # The other end is closed now, and reads the end of the file.
    assert await asyncio.to_thread(theirs.recv, 1) == b""
    assert ours.fileno() == -1
    theirs.close()
