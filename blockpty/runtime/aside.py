"""Work over many bytes, beside the event loop: in a thread that gives the loop its turn.

Rules of this file: it does not know what is done. A thread that computes keeps the interpreter for up to 5 ms each time
the loop wants it back, so it stands back for a moment after every few milliseconds of its own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

SLICE_SECONDS: Final = 0.002
_REST_SECONDS: Final = 0.0002


class Pace:
    """What work calls between its pieces: rests when its slice is over, ends it when its caller has gone."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._ends = time.perf_counter() + SLICE_SECONDS

    def __call__(self) -> None:
        if self.stopped.is_set():
            raise asyncio.CancelledError
        self.rest()

    def rest(self) -> None:
        """Give the loop its turn when the slice is over."""
        if time.perf_counter() >= self._ends:
            time.sleep(_REST_SECONDS)
            self._ends = time.perf_counter() + SLICE_SECONDS


async def aside(work: Callable[[Pace], T]) -> T:
    """Return what work gives that runs in a thread; cancelling ends it at its next pace."""
    pace = Pace()
    try:
        return await asyncio.to_thread(work, pace)
    finally:
        pace.stopped.set()
