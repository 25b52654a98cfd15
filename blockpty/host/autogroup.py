"""CPU shares of the shells' sessions, set by the nice values of their autogroups.

Linux shares a processor between sessions before it shares it between the processes of one (sched(7), "The autogroup
feature"), and each shell is a session. Beside twenty that are at work, the reader of their output would be one of more
than twenty. So the CPU shares of those that have been at work for a while are lowered, the further the more there are:
all together count as two sessions. A shell that waits at its prompt takes nothing, and does not count. A weight decides
only where two want the same core, and `nice` and `renice` in a shell work, and show, what they did. A process that
leaves the session (`setsid`) has a full share again.

A keeper that takes over knows only the shells that it starts itself: of another's child it cannot know whether its
number is still its own.

Nothing here fails: where there are no autogroups, or a cgroup of the cpu controller decides instead, all stay as they
are.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

# What all shells together count, in sessions.
TOGETHER = 2
# By how much one step of nice changes a weight (sched_prio_to_weight in kernel/sched/core.c).
STEP = 1.25
# The kernel takes ten of these a second, of all without CAP_SYS_ADMIN together, and refuses others with EAGAIN
# (proc_sched_autogroup_set_nice in kernel/sched/autogroup.c).
PAUSE_SECONDS = 0.1


def nice_among(shells: int) -> int:
    """Return the nice value with which so many sessions count as `TOGETHER`; 0 where they are no more."""
    return round(math.log(shells / TOGETHER, STEP)) if shells > TOGETHER else 0


def set_nice(pid: int, nice: int) -> None:
    """Set the nice value of the autogroup that a process is in; raises OSError."""
    fd = os.open(f"/proc/{pid}/autogroup", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"%d" % nice)
    finally:
        os.close(fd)


def get_nice(pid: int | str) -> int | None:
    """Return the nice value of the autogroup that a process is in; None where there is none."""
    try:
        with open(f"/proc/{pid}/autogroup", encoding="ascii") as file:
            return int(file.read().rpartition(" ")[2])
    except (OSError, ValueError):
        return None


class Shares:
    """Lowers the CPU shares of one keeper's shells; what the kernel does not take yet is in a queue."""

    def __init__(self, setter: Callable[[int, int], None] = set_nice) -> None:
        self._set = setter
        # By the process that leads the session: the highest nice value it may get, and the one it has.
        self._furthest: dict[int, int] = {}
        self._nice: dict[int, int] = {}
        self._working: set[int] = set()
        self._queue: dict[int, None] = {}
        self._next = 0.0

    def add(self, pid: int, furthest: int) -> None:
        """Register a new shell, whose session gets a nice value of `furthest` at most."""
        self._furthest[pid], self._nice[pid] = furthest, 0

    def work(self, pid: int, now: float, *, working: bool) -> None:
        """Note whether a shell has been at work for a while; one that is not registered is ignored."""
        if pid not in self._furthest or working is (pid in self._working):
            return
        (self._working.add if working else self._working.discard)(pid)
        self._settle(now)

    def remove(self, pid: int, now: float) -> None:
        """Forget a process that was collected: its number may belong to another one next."""
        if self._furthest.pop(pid, None) is not None:
            del self._nice[pid]
            self._queue.pop(pid, None)
            if pid in self._working:
                self._working.discard(pid)
                self._settle(now)

    def _settle(self, now: float) -> None:
        for pid, nice in self._nice.items():
            if self._wanted(pid) != nice:
                self._queue[pid] = None
        self.proceed(now)

    def _wanted(self, pid: int) -> int:
        return min(self._furthest[pid], nice_among(len(self._working))) if pid in self._working else 0

    def wait(self, now: float) -> float | None:
        """Seconds until there is something to do; None: nothing."""
        return max(0.0, self._next - now) if self._queue else None

    def proceed(self, now: float) -> None:
        """Do what can be done by now."""
        while self._queue and now >= self._next:
            pid = next(iter(self._queue))
            nice = self._wanted(pid)
            try:
                if nice != self._nice[pid]:
                    self._set(pid, nice)
            except BlockingIOError:
                self._next = now + PAUSE_SECONDS
                return
            except OSError:
                # No autogroups here, or it may not be written: the session keeps what it has.
                pass
            self._nice[pid] = nice
            del self._queue[pid]
