"""Worker threads for work over many bytes, which give the event loop its turn.

Rules of this file: it does not know what is done. A thread that computes keeps the interpreter for up to 5 ms each time
the loop wants it back, so it pauses for a moment after every few milliseconds of its own, and while there is one
the interpreter is asked to be quicker.

The threads are few and its own. Each that computes makes the others slower, so more of what is long waits for its turn;
what is short has threads apart and does not wait for what is long. The threads of `asyncio.to_thread` stay free.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

SLICE_SECONDS: Final = 0.002
_REST_SECONDS: Final = 0.0002
# The loop asks some ten times until an echo is through, and may wait as long each time. Four threads at once take 10 %
# more of the processor with it, one takes no more.
_SWITCH_SECONDS: Final = 0.0002
SHORT_BYTES: Final = 256 * 1024
"""Work over no more bytes than these is short."""

THREADS: Final = 4
_LONG: Final = ThreadPoolExecutor(THREADS, "blockpty-long")
_SHORT: Final = ThreadPoolExecutor(THREADS, "blockpty-short")


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


class _Switching:
    """Has threads switched sooner while it is entered, by however many; the interpreter has one interval for all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._usual = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual, _SWITCH_SECONDS))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                sys.setswitchinterval(self._usual)


quick_switching: Final = _Switching()
"""Entered while a thread computes that is not one of these."""


async def aside(work: Callable[[Pace], T], *, long: bool = True) -> T:
    """Return what work gives that runs in a thread; cancelling ends it at its next pace, or before it has begun.

    `long`: it may take more than a moment, and waits where `THREADS` of its kind are at work.
    """
    pace = Pace()

    def paced() -> T:
        pace()
        with quick_switching:
            return work(pace)

    try:
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        return await loop.run_in_executor(_LONG if long else _SHORT, lambda: context.run(paced))
    finally:
        pace.stopped.set()
