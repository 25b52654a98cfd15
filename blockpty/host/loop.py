"""Event loop of the recorder: readiness of descriptors, timers, and calls in threads beside it.

It knows neither terminals nor clients.
"""

from __future__ import annotations

import _thread
import contextlib
import heapq
import itertools
import os
import selectors
import time
from collections import deque
from collections.abc import Callable

IN = selectors.EVENT_READ
OUT = selectors.EVENT_WRITE
# Where there is no epoll, poll: kqueue has not always known terminals.
_SELECTOR = getattr(selectors, "EpollSelector", None) or selectors.PollSelector


class Timer:
    """A call in the future; `cancel` forgets it."""

    __slots__ = ("call", "order", "when")

    def __init__(self, when: float, order: int, call: Callable[[], None] | None) -> None:
        self.when = when
        self.order = order
        self.call = call

    def __lt__(self, other: Timer) -> bool:
        return (self.when, self.order) < (other.when, other.order)

    def cancel(self) -> None:
        self.call = None


class Work:
    """A call in a thread of its own, which touches nothing that the loop's thread does.

    Attributes:
        error: what it raised, when it has come to its end.
    """

    def __init__(self, call: Callable[[], None], then: Callable[[Work], None], ended: Callable[[Work], None]) -> None:
        self.error: OSError | None = None
        self.then = then
        self._call = call
        self._ended = ended
        self._running = _thread.allocate_lock()
        self._running.acquire()

    def run(self) -> None:
        try:
            self._call()
        except OSError as error:
            self.error = error
        finally:
            self._running.release()
            self._ended(self)

    def wait(self) -> None:
        """Return when it has come to its end; `then` is called all the same, later."""
        with self._running:
            pass


class Loop:
    """Calls back for what is ready or due.

    A hang-up or an error is reported as readiness for all that is watched. Level-triggered, so a descriptor that asks
    for nothing is not watched at all: a hung-up one would be reported forever.

    Attributes:
        clock: the time in seconds, which never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._selector: selectors.BaseSelector = _SELECTOR()
        self._watched: dict[int, tuple[int, Callable[[int], None]]] = {}
        self._timers: list[Timer] = []
        self._order = itertools.count()
        self._finished: deque[Work] = deque()
        self._wake_pipe = os.pipe()
        for fd in self._wake_pipe:
            os.set_blocking(fd, False)
        self.watch(self._wake_pipe[0], IN, self._woken)

    def watch(self, fd: int, mask: int, call: Callable[[int], None]) -> None:
        """Call `call(ready mask)` when `fd` is ready for something in `mask`; 0 stops that."""
        old = self._watched.get(fd)
        if not mask:
            self.forget(fd)
            return
        self._watched[fd] = (mask, call)
        if old is None:
            self._selector.register(fd, mask)
        elif old[0] != mask:
            self._selector.modify(fd, mask)

    def forget(self, fd: int) -> None:
        """Stop watching; to be called before the descriptor is closed."""
        if self._watched.pop(fd, None) is not None:
            self._selector.unregister(fd)

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        timer = Timer(self.clock() + seconds, next(self._order), call)
        heapq.heappush(self._timers, timer)
        return timer

    def beside(self, call: Callable[[], None], then: Callable[[Work], None]) -> Work:
        """Make a call that takes long in a thread, and call `then` in the loop when it has returned or raised OSError.

        Where there can be no thread it is made at once.
        """
        work = Work(call, then, self._ended)
        self.start(work)
        return work

    def start(self, work: Work) -> None:
        """Have it run in a thread."""
        try:
            _thread.start_new_thread(work.run, ())
        except RuntimeError:
            work.run()

    def _ended(self, work: Work) -> None:
        """In its thread."""
        self._finished.append(work)
        # EAGAIN: the pipe is full, so the loop wakes already.
        with contextlib.suppress(OSError):
            os.write(self._wake_pipe[1], b"!")

    def _woken(self, mask: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_pipe[0], 4096)
        while self._finished:
            work = self._finished.popleft()
            work.then(work)

    def turn(self) -> None:
        """Wait for something, then make every call that is due."""
        timers = self._timers
        while timers and timers[0].call is None:
            heapq.heappop(timers)
        wait = max(0.0, timers[0].when - self.clock()) if timers else None
        for key, mask in self._selector.select(wait):
            # One that was called before may have stopped the watch.
            watched = self._watched.get(key.fd)
            if watched is not None:
                watched[1](mask)
        self.run_due()

    def run_due(self) -> None:
        """Make the calls whose time has come."""
        timers = self._timers
        if timers:
            now = self.clock()
            while timers and timers[0].when <= now:
                due = heapq.heappop(timers).call
                if due is not None:
                    due()

    def close(self) -> None:
        for fd in self._wake_pipe:
            os.close(fd)
        self._selector.close()
