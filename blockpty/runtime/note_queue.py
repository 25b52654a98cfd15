"""Notes for the timeline, in order, also across a time without space."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from blockpty.errors import InternalError, StorageFull

if TYPE_CHECKING:
    from blockpty.host.client import HostClient

RETRY_SECONDS: Final = 0.25


class NoteQueue:
    """Has notes written without waiting for it; what found no space is sent again, and what comes after it waits."""

    def __init__(self, host: HostClient, conversation_id: str) -> None:
        self._host = host
        self._conversation_id = conversation_id
        self._unwritten: deque[tuple[Mapping[str, Any], int]] = deque()
        self._retry: asyncio.TimerHandle | None = None
        self._last: asyncio.Future[Any] | None = None

    def add(self, note: Mapping[str, Any], epoch: int) -> None:
        """Have a note written as soon as possible."""
        if self._unwritten:
            self._unwritten.append((note, epoch))
        else:
            self._send(note, epoch)

    async def written(self) -> None:
        """Return when the host has answered for every note given so far, or at once when it is gone."""
        if self._last is not None:
            await asyncio.wait((self._last,))

    def close(self) -> None:
        """Send nothing again."""
        if self._retry is not None:
            self._retry.cancel()

    def _send(self, note: Mapping[str, Any], epoch: int) -> None:
        def done(answer: asyncio.Future[Any]) -> None:
            if answer.cancelled():
                return
            problem = answer.exception()
            if isinstance(problem, (StorageFull, InternalError)):
                self._unwritten.append((note, epoch))
                if self._retry is None and isinstance(problem, StorageFull):
                    self._retry = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._again)

        # Answers come in the order of the requests, so the last one stands for all.
        self._last = self._host.note(self._conversation_id, note, epoch=epoch)
        self._last.add_done_callback(done)

    def adopt(self, host: HostClient) -> None:
        """Go on with another host; what the old one did not answer for is sent again."""
        self._host = host
        self._again()

    def _again(self) -> None:
        self._retry = None
        unwritten, self._unwritten = self._unwritten, deque()
        for note, epoch in unwritten:
            self._send(note, epoch)
