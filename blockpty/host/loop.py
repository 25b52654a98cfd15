"""The recorder's event loop: readiness of descriptors, and timers. It knows neither terminals nor clients."""

from __future__ import annotations

import heapq
import itertools
import select
import time
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
        if isinstance(self._poller, select.epoll):
            self._poller.close()
