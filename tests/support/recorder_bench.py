"""A terminal without a shell, and a loop whose time passes only when a test says so."""

from __future__ import annotations

import mmap
import os
import select
import tty
from collections import Counter
from pathlib import Path

from blockpty.host import sync_policy
from blockpty.host.loop import Loop
from blockpty.host.state import SLOT_BYTES, ShellHandle
from blockpty.host.terminal import Terminal

MIB = 1024 * 1024
BOUND_SECONDS = 60.0


class ManualLoop(Loop):
    """A loop with a manual clock: nothing waits, and timers are due when `advance` has passed their time."""

    def __init__(self) -> None:
        self.now = 100.0
        super().__init__(lambda: self.now)

    def advance(self, seconds: float) -> None:
        """Let time pass, and make each call that becomes due at its own time."""
        end = self.now + seconds
        while self._timers and self._timers[0].when <= end:
            self.now = max(self.now, self._timers[0].when)
            self.run_due()
        self.now = end


class FakeRecorder:
    """What a terminal needs of a recorder."""

    splice = True

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.slots = mmap.mmap(-1, SLOT_BYTES)
        self.notified: list[tuple[str, Counter[str]]] = []
        self.forced: Counter[str] = Counter()

    def grew(self, conversation: str, count: int) -> None:
        self.notified.append((conversation, self.forced.copy()))

    def tell_keeper(self, shell: ShellHandle) -> None:
        pass

    def finished(self, shell: ShellHandle) -> None:
        pass


class Bench:
    """One terminal without a shell, whose other end the test has."""

    def __init__(
        self, directory: Path, durability: str, forced: Counter[str] | None = None, loop: Loop | None = None
    ) -> None:
        master, self.slave = os.openpty()
        tty.setraw(self.slave)
        os.set_blocking(master, False)
        pipe = os.pipe()
        wire = {
            "conversation": "c1", "directory": str(directory), "argv": ["cat"], "entry": {}, "pid": os.getpid(),
            "persist": False, "segment_bytes": 4 * MIB, "slot": 0, "durability": durability, "cgroup": None,
        }  # fmt: skip
        self.recorder = FakeRecorder(loop or Loop())
        if forced is not None:
            self.recorder.forced = forced
        self.terminal = Terminal(self.recorder, ShellHandle(wire, [master, *pipe, -1]))
        self.terminal.begin(fresh=True)

    def print(self, size: int) -> None:
        """Have that many bytes come out of the terminal, and into the stream."""
        while size:
            written = os.write(self.slave, b"x" * min(size, 2048))
            size, until = size - written, self.terminal.stream.offset + written
            while self.terminal.stream.offset < until:
                # The kernel passes on what was written when it comes to it.
                assert select.select([self.terminal.shell.master], [], [], BOUND_SECONDS)[0]
                self.terminal.move(whole=True)

    def pass_interval(self) -> None:
        """Turn the loop until the interval is over, and what it syncs is synced."""
        loop, over = self.recorder.loop, []
        loop.after(sync_policy.INTERVAL_SECONDS, lambda: over.append(None))
        if isinstance(loop, ManualLoop):
            loop.advance(sync_policy.INTERVAL_SECONDS)
        while not over or self.terminal.sync.under_way is not None:
            loop.turn()
