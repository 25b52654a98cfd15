"""The recorder's event loop: readiness of descriptors, timers, and calls beside it. It knows neither terminals nor
clients."""

from __future__ import annotations

import _thread
import contextlib
import heapq
import itertools
import os
import select
import time
from collections import deque
from collections.abc import Callable

IN = select.POLLIN
OUT = select.POLLOUT


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
    """Calls whoever can go on. Level-triggered; a descriptor that asks for nothing is not watched at all (a hung-up
    one would be reported for ever)."""

    def __init__(self) -> None:
        self._linux = hasattr(select, "epoll")
        self._poller = select.epoll(select.EPOLL_CLOEXEC) if self._linux else select.poll()
        self._calls: dict[int, Callable[[int], None]] = {}
        self._masks: dict[int, int] = {}
        self._timers: list[Timer] = []
        self._order = itertools.count()
        self._finished: deque[Work] = deque()
        self._bell = os.pipe()
        for fd in self._bell:
            os.set_blocking(fd, False)
        self.watch(self._bell[0], IN, self._rung)

    def watch(self, fd: int, mask: int, call: Callable[[int], None]) -> None:
        """Call `call(ready mask)` when `fd` is ready for something in `mask`; 0 stops that."""
        old = self._masks.get(fd, 0)
        self._calls[fd] = call
        if mask == old:
            return
        if not mask:
            self._poller.unregister(fd)
            del self._masks[fd], self._calls[fd]
        elif old:
            self._poller.modify(fd, mask)
            self._masks[fd] = mask
        else:
            self._poller.register(fd, mask)
            self._masks[fd] = mask

    def forget(self, fd: int) -> None:
        """Stop watching; to be called before the descriptor is closed."""
        if self._masks.pop(fd, 0):
            self._poller.unregister(fd)
        self._calls.pop(fd, None)

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        timer = Timer(time.monotonic() + seconds, next(self._order), call)
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
        # EAGAIN: it is ringing already.
        with contextlib.suppress(OSError):
            os.write(self._bell[1], b"!")

    def _rung(self, mask: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell[0], 4096)
        while self._finished:
            work = self._finished.popleft()
            work.then(work)

    def turn(self) -> None:
        """Wait for something, then make every call that is due."""
        timers = self._timers
        while timers and timers[0].call is None:
            heapq.heappop(timers)
        wait: float | None = None
        if timers:
            wait = max(0.0, timers[0].when - time.monotonic())
        ready = self._poller.poll(wait if self._linux or wait is None else wait * 1000)
        for fd, mask in ready:
            call = self._calls.get(fd)
            if call is not None:
                call(mask)
        if timers:
            now = time.monotonic()
            while timers and timers[0].when <= now:
                due = heapq.heappop(timers).call
                if due is not None:
                    due()

    def close(self) -> None:
        for fd in self._bell:
            os.close(fd)
        if isinstance(self._poller, select.epoll):
            self._poller.close()
