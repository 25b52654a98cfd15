"""Fair scheduler of reading: one budget of time in each round of the event loop, for all records that it follows.

Rules of this file: a reader takes a slice, which is short whatever there is to read, and stands at the end of the queue
again. When the budget of a turn is spent, the loop goes round first: requests, timers and other readers come between,
however many conversations print. Tasks that wait for a turn of their own come after the readers, one in each round:
what they show is what the readers have read. This file does not know what is read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final
from weakref import WeakValueDictionary

# What all records together may take of one turn of the loop; the last slice may go beyond.
BUDGET_SECONDS: Final = 0.002

# Takes a slice; returns whether there is more.
Reader = Callable[[], bool]


class FairScheduler:
    """Shares one event loop among readers, in turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = perf_counter) -> None:
        self._call_soon = loop.call_soon
        self._future = loop.create_future
        self._clock = clock
        self._queue: deque[Reader] = deque()
        self._queued: set[Reader] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._left = BUDGET_SECONDS
        # When the last slice ended.
        self._ended = clock()
        self._goes_on = False

    @property
    def idle(self) -> bool:
        """Whether the queue is empty and no task waits for a turn."""
        return not self._queue and not self._waiting

    def ask(self, reader: Reader) -> None:
        """Have a reader called until it says that there is no more: now, if this turn has time, else in later turns.

        Asking for one that stands in the queue changes nothing.
        """
        if self._queue or self._left <= 0 or self._slice(reader):
            self.queue(reader)

    def queue(self, reader: Reader) -> None:
        """As `ask`, but not before the next turn."""
        if reader not in self._queued:
            self._queued.add(reader)
            self._queue.append(reader)
        self._go_on()

    async def turn(self) -> None:
        """Return when the caller may take a slice: after the readers, one caller in each round. May be cancelled."""
        future = self._future()
        self._waiting.append(future)
        self._go_on()
        await future

    def _slice(self, reader: Reader) -> bool:
        begin = self._clock()
        # The loop had the time between two slices: most come alone, and need no call in the next turn.
        self._left = min(BUDGET_SECONDS, self._left + begin - self._ended)
        try:
            return reader()
        finally:
            self._ended = self._clock()
            self._left -= self._ended - begin

    def _go_on(self) -> None:
        if not self._goes_on:
            self._goes_on = True
            self._call_soon(self._next)

    def _next(self) -> None:
        """A turn of the loop begins."""
        self._goes_on = False
        self._left = BUDGET_SECONDS
        try:
            while self._queue and self._left > 0:
                reader = self._queue.popleft()
                self._queued.discard(reader)
                if self._slice(reader):
                    self.queue(reader)
        finally:
            # Also when a reader has failed: the others are not to blame.
            self._wake_one()
            if self._queue or self._waiting:
                self._go_on()

    def _wake_one(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                # How long its slice takes is not seen here, so no reader comes before the next turn.
                self._left = 0.0
                return


# It lives as long as a record that uses it.
_TURNS: WeakValueDictionary[asyncio.AbstractEventLoop, FairScheduler] = WeakValueDictionary()


def scheduler_of(loop: asyncio.AbstractEventLoop) -> FairScheduler:
    """Return the one that shares this loop: there may be several engines in it."""
    turns = _TURNS.get(loop)
    if turns is None:
        turns = _TURNS[loop] = FairScheduler(loop)
    return turns
