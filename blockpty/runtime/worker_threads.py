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
# What no caller waits for works a fifth of the time while the loop's thread computes for more than a quarter of it.
_BUSY_SHARE: Final = 0.25
_BUSY_REST_SECONDS: Final = 0.008
SHORT_BYTES: Final = 256 * 1024
"""Work over no more bytes than these is short."""

THREADS: Final = 4
_LONG: Final = ThreadPoolExecutor(THREADS, "blockpty-long")
_SHORT: Final = ThreadPoolExecutor(THREADS, "blockpty-short")


class Pace:
    """Pace of work, called between its pieces: rests when its slice is over, ends it when its caller has gone."""

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


class BackgroundPace:
    """What work that no caller waits for calls between its pieces: it makes way for an event loop that is busy.

    Args:
        loop_seconds: how long the loop's thread has computed; see `loop_clock`.
        clock, sleep: of `time`.
    """

    def __init__(
        self, loop_seconds: Callable[[], float], clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._loop_seconds = loop_seconds
        self._clock = clock
        self._sleep = sleep
        self._rested, self._used = clock(), loop_seconds()
        self._ends = self._rested + SLICE_SECONDS

    def rest(self) -> None:
        """Give the loop its turn when the slice is over, and a longer one when it has much to do."""
        now = self._clock()
        if now < self._ends:
            return
        used = self._loop_seconds()
        is_busy = used - self._used > _BUSY_SHARE * (now - self._rested)
        # The next look counts from here: while this rests, a loop with much to do shows it.
        self._rested, self._used = now, used
        self._sleep(_BUSY_REST_SECONDS if is_busy else _REST_SECONDS)
        self._ends = self._clock() + SLICE_SECONDS


def loop_clock() -> Callable[[], float]:
    """Return what tells how long the calling thread, that of an event loop, has computed; always 0 where none can."""
    try:
        number = time.pthread_getcpuclockid(threading.get_ident())
    except (AttributeError, OSError):  # macOS has none
        return lambda: 0.0

    def seconds() -> float:
        try:
            return time.clock_gettime(number)
        except OSError:
            return 0.0  # the thread has ended

    return seconds


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
