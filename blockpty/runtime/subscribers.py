"""Subscribers to a live record: futures that are done when something new has been read."""

from __future__ import annotations

import asyncio


class Subscribers:
    """Everyone who waits for the next change of one record."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._futures: set[asyncio.Future[None]] = set()

    def watch(self) -> asyncio.Future[None]:
        """Return what is done when something new has been read from now on: ask for it, look, then wait."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._futures.add(future)
        future.add_done_callback(self._forget)  # also when its subscriber was cancelled
        return future

    async def changed(self, timeout: float | None = None) -> None:
        """Return when something new has been read, or after `timeout` seconds; look first, it may have happened."""
        # Of its own, without a callback: a command that takes a moment passes here, and `asyncio.wait` costs forty
        # calls and two turns of the loop more.
        future: asyncio.Future[None] = self._loop.create_future()
        self._futures.add(future)
        timer = self._loop.call_later(timeout, _end, future) if timeout is not None else None
        try:
            await future
        finally:
            self._futures.discard(future)
            if timer is not None:
                timer.cancel()

    def notify(self) -> None:
        """Notify all of them, once."""
        futures, self._futures = self._futures, set()
        for future in futures:
            _end(future)

    def _forget(self, future: asyncio.Future[None]) -> None:
        self._futures.discard(future)


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
