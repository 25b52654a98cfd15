"""One live terminal in the recorder: bytes out of it into the stream, and what the timeline says of it.

This file knows the order of things within one conversation. It does not know clients, sockets, other conversations or
how a shell is started; it is told of the exit and tells back through `Desk`. Input is in `keyboard.py`, silence in
`quiet.py`, what a full disk leaves in the timeline in `shortage.py`.

Rules:
* an entry is written before the bytes it is about are moved or typed, and after everything that came earlier has been
  moved; so its offset is honest;
* nothing is dropped: when the files cannot grow, moving stops, the pipe and the tty fill up, and the program waits;
* the end is: everything drained, `exit`, `eof`, descriptors closed, in that order.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from blockpty.host import spawn
from blockpty.host.drain import Drain
from blockpty.host.durable import Durable
from blockpty.host.house import Holding
from blockpty.host.keyboard import Keyboard, storage_full
from blockpty.host.loop import IN, OUT, Loop
from blockpty.host.mending import boot_id
from blockpty.host.protocol import Refused
from blockpty.host.quiet import RETRY_SECONDS, Quiet
from blockpty.host.record import SPLICE_NONBLOCK, StorageFailed, Stream, Timeline
from blockpty.host.shortage import Shortage

TURN_BYTES = 256 * 1024
LATE_BYTES = 4 * 1024 * 1024
CHUNK = 65536
# What is asked of the terminal at a time: it gives at most some 4 KiB, and the kernel takes pages for all that is asked
# for. So many loads go into the pipe, which holds 16, before they go on together: half of the processor time.
LOAD = 8192
LOADS = 12
SHORT = 2048
LATE_SECONDS = 0.25


class Desk(Protocol):
    """What a terminal needs from the recorder."""

    loop: Loop
    slots: Any
    splice: bool

    def grew(self, conversation: str, count: int) -> None: ...
    def tell_keeper(self, holding: Holding) -> None: ...
    def finished(self, terminal: Terminal) -> None: ...


class Terminal:
    def __init__(self, desk: Desk, holding: Holding) -> None:
        self.desk = desk
        self.holding = holding
        self.pid = holding.pid
        self.stream = Stream(holding.directory, holding.segment_bytes)
        self.timeline = Timeline(holding.directory, self.stream.pieces, holding.lock)
        self.quiet = Quiet(self)
        self.keyboard = Keyboard(self)
        self.drain = Drain(self)
        self.shortage = Shortage(self)
        self.durable = Durable(self, holding.durability)
        # Why nothing is moved now; None when all is well.
        self.failed: StorageFailed | None = None
        # The master gives EIO: nobody has the terminal open.
        self.hung = False
        self.ended = False
        self._held = b""
        self._in_pipe: int = struct.unpack("i", fcntl.ioctl(holding.pipe_r, termios.FIONREAD, b"\0" * 4))[0]
        self._wrote_exit = False
        self._wrote_eof = False

    def begin(self, *, fresh: bool = False) -> None:
        """Take up the work, be it `fresh` or a killed predecessor's."""
        tail = [] if fresh else self.timeline.tail()
        try:
            self.durable.begin()
            if not fresh:
                # What a predecessor wrote last may not have been forced.
                self.durable.wrote(1)
            if not self.holding.announced:
                self._announce(tail)
            self._resume(tail)
        except StorageFailed as failure:
            self._stop_moving(failure, self.begin)
            return
        self.update_interest()
        if self.holding.watches:
            self.quiet.look()
        if self.holding.exit is not None:
            self.exited()

    def _announce(self, tail: list[dict[str, Any]]) -> None:
        """Write the spawn entry, unless a predecessor was killed just after that."""
        entry = {**self.holding.entry, "pid": self.pid, "transport": "splice" if self.desk.splice else "read"}
        if boot := boot_id():
            entry["boot"] = boot
        if not any(known["kind"] == "spawn" and known == {**known, **entry} for known in tail):
            self.write("spawn", entry)
            tail.clear()
        self.holding.announced = True
        self.desk.tell_keeper(self.holding)

    def _resume(self, tail: list[dict[str, Any]]) -> None:
        """Find out from the last entries what a predecessor had done."""
        own = tail
        for place in range(len(tail) - 1, -1, -1):
            if tail[place]["kind"] == "spawn":
                own = tail[place:]
                break
        kinds = {entry["kind"] for entry in own}
        self._wrote_exit |= "exit" in kinds
        self._wrote_eof |= "eof" in kinds
        self.shortage.take_up(own)
        self.keyboard.cut_interrupted()
        self.drain.resume()
        if tail and tail[-1]["kind"] == "silence":
            self.quiet.take_up(tail[-1])
        elif tail:
            self.quiet.arm()

    # -- out of the terminal --------------------------------------------------------------------------------------

    def on_ready(self, mask: int) -> None:
        if mask & ~OUT:
            self.move()
        if mask & OUT:
            self.keyboard.push()

    def move(self, budget: int = TURN_BYTES, *, whole: bool = False) -> None:
        """Move up to `budget` bytes of what is there to the stream; `whole`: do not stop at the first small piece."""
        if self.failed is not None or self.hung or self.ended:
            return
        moved, told = 0, self.timeline.size
        end: EOFError | StorageFailed | None = None
        try:
            while moved < budget:
                step = self._splice() if self.desk.splice else self._copy()
                moved += step
                if step < SHORT and not whole:
                    break
        except BlockingIOError:
            pass
        except (EOFError, StorageFailed) as reason:
            end = reason
        if moved:
            self.quiet.printed()
        if moved or self.timeline.size != told:
            try:
                self.durable.wrote(moved + self.timeline.size - told)  # with the ticks
            except StorageFailed as failure:
                end = failure
            self.desk.grew(self.holding.conversation, moved)
        if not isinstance(end, StorageFailed):
            try:
                self.shortage.ends()
            except StorageFailed as failure:
                end = failure
        if isinstance(end, StorageFailed):
            self._stop_moving(end, self._go_on)
        elif end is not None:
            self._hang()

    def _splice(self) -> int:
        """Move what the pipe takes: master to pipe, then pipe to stream. A kill anywhere in here loses nothing."""
        holding = self.holding
        if not self._in_pipe:
            self._fill()
        self.timeline.tick(self.stream.offset)
        moved = 0
        while self._in_pipe:
            step = self.stream.splice(holding.pipe_r, self._in_pipe)
            if not step:
                break
            self._in_pipe -= step
            moved += step
        return moved

    def _fill(self) -> None:
        """Move some of what the terminal has into the empty pipe; raises BlockingIOError, EOFError when it has none."""
        holding = self.holding
        for _ in range(LOADS):
            try:
                load = os.splice(holding.master, holding.pipe_w, LOAD, flags=SPLICE_NONBLOCK)
            except BlockingIOError:
                if self._in_pipe:
                    return
                raise
            except OSError as error:
                # It will say so again.
                if self._in_pipe:
                    return
                raise EOFError from error
            if not load:
                if self._in_pipe:
                    return
                raise EOFError
            self._in_pipe += load
            if load < SHORT:
                return

    def _copy(self) -> int:
        """As `_splice`, where that does not work: a kill between the two system calls loses what was read."""
        if not self._held:
            try:
                self._held = os.read(self.holding.master, CHUNK)
            except BlockingIOError:
                raise
            except OSError as error:
                raise EOFError from error
            if not self._held:
                raise EOFError
        self.timeline.tick(self.stream.offset)
        moved = 0
        while self._held:
            step = self.stream.write(self._held)
            self._held = self._held[step:]
            moved += step
        return moved

    def update_interest(self) -> None:
        """Be called when there is something to read, and when there is room for input that waits for it."""
        mask = 0
        if not self.hung and self.failed is None and not self.ended:
            mask = IN | (OUT if self.keyboard.wants_room else 0)
        if self.holding.master >= 0:
            self.desk.loop.watch(self.holding.master, mask, self.on_ready)

    def _stop_moving(self, failure: StorageFailed, retry: Callable[[], None]) -> None:
        """Leave everything where it is until the files can grow again."""
        self.failed = failure
        self.update_interest()
        self.shortage.begins(failure.name)

        def again() -> None:
            if self.ended:
                return
            try:
                self.shortage.tell()
            except StorageFailed as still:
                self._stop_moving(still, retry)
                return
            self.failed = None
            retry()

        self.desk.loop.after(RETRY_SECONDS, again)

    def force(self) -> None:
        """Have stream and timeline on the medium; nothing is moved while that fails."""
        try:
            self.durable.force()
        except StorageFailed as failure:
            self._stop_moving(failure, self._go_on)

    def not_forced(self, failure: StorageFailed) -> None:
        """Move nothing until it can be forced."""
        if self.failed is None:
            self._stop_moving(failure, self._go_on)

    def _go_on(self) -> None:
        self.force()
        self.move()
        if self.failed is None:
            self.update_interest()
            self.keyboard.push()
            if self.holding.exit is not None:
                self.exited()

    # -- entries --------------------------------------------------------------------------------------------------

    def write(self, kind: str, fields: dict[str, Any] | None = None, ts: int | None = None) -> None:
        """Write an entry at the present end of the stream; raises StorageFailed. `ts`: when it was, if not just now."""
        before = self.timeline.size
        try:
            self.stream.keep()
        except OSError as error:
            raise StorageFailed(error, self.holding.directory) from error
        self.timeline.write(self.stream.offset, kind, fields, ts)
        if self.stream.restored or self.timeline.restored:
            self.stream.restored = self.timeline.restored = False
            self.timeline.write(self.stream.offset, "storage", {"state": "restored"})
        try:
            self.durable.wrote(self.timeline.size - before)
        except StorageFailed as failure:
            # The entry is there: it is not the caller's failure.
            self._stop_moving(failure, self._go_on)
        self.desk.grew(self.holding.conversation, 0)

    def sizes(self) -> dict[str, Any]:
        return {"offset": self.stream.offset, "timeline": self.timeline.size}

    def note(self, note: Any) -> None:
        self._drained_write("note", {"note": note})

    def resize(self, cols: int, rows: int, author: str) -> None:
        self._drained_write("resize", {"cols": cols, "rows": rows, "author": author})
        with contextlib.suppress(OSError):
            spawn.set_size(self.holding.master, cols, rows)

    def _drained_write(self, kind: str, fields: dict[str, Any]) -> None:
        self.move(whole=True)
        if self.ended:
            raise Refused("exited", "the shell has ended")
        self.check_storage()
        try:
            self.write(kind, fields)
        except StorageFailed as failure:
            raise storage_full(failure) from None

    def check_storage(self) -> None:
        """Refuse while the files cannot grow."""
        if self.failed is not None:
            raise storage_full(self.failed)

    # -- what the terminal is doing -------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Who has the terminal and how it reads, at this moment."""
        icanon, echo = self.modes()
        group = self.foreground()
        return {
            "icanon": icanon, "echo": echo,
            "foreground": None if group is None else "shell" if group == self.pid else "child",
            "replaced": self.replaced(),
            # In any other mode nothing that is asked of this terminal is a line.
            "reads": self.reads(group) if icanon else False,
        }  # fmt: skip

    def depth(self, state: Mapping[str, Any]) -> int | None:
        """How deep in its stack the shell waits for a key, if it is the shell that does; see `spawn.waiting_depth`."""
        return spawn.waiting_depth(self.pid) if state["foreground"] == "shell" and not state["icanon"] else None

    def reads(self, group: int | None) -> bool | None:
        """Whether somebody of the foreground is blocked reading this terminal; None where unknown."""
        name = spawn.terminal_name(self.holding.master)
        return spawn.reads_terminal(group, name, self.pid) if group is not None and name is not None else None

    def modes(self) -> tuple[bool, bool]:
        """(canonical, echo); read from the master, which shares the shell's terminal modes."""
        try:
            flags = termios.tcgetattr(self.holding.master)[3]
        except (OSError, ValueError, termios.error):  # gone: its number is -1, or somebody else's
            return False, False
        return bool(flags & termios.ICANON), bool(flags & termios.ECHO)

    def stops(self, data: bytes) -> bool:
        """Whether these are only keys of which the terminal makes signals for the foreground program."""
        try:
            modes = termios.tcgetattr(self.holding.master)
        except (OSError, ValueError, termios.error):
            return False
        keys = b"".join(modes[6][name] for name in (termios.VINTR, termios.VQUIT, termios.VSUSP))
        return bool(modes[3] & termios.ISIG) and bool(data) and not data.strip(keys)

    def foreground(self) -> int | None:
        """The process group that has the terminal."""
        try:
            return os.tcgetpgrp(self.holding.master) or None
        except OSError:
            return None

    def replaced(self) -> bool | None:
        """Whether the shell process runs another program than the one it was started with; None where unknown."""
        image = spawn.program_image(self.pid)
        if image is None:
            return None
        reference = self.holding.reference
        if reference is None or reference == image.rpartition("@")[0]:
            # What it was told to run: from now on it is known by its address as well.
            self.holding.reference = reference = image
            self.desk.tell_keeper(self.holding)
        return image != reference

    # -- the end --------------------------------------------------------------------------------------------------

    def _hang(self) -> None:
        """The master gave EIO: nobody has the terminal open (any more, or for now)."""
        self.hung = True
        self.update_interest()
        if self.holding.exit is not None:
            self._finish()
        else:
            self.desk.loop.after(LATE_SECONDS, self._still_hung)

    def _still_hung(self) -> None:
        """The shell lives on without its terminal; it may open it again by /dev/tty."""
        if self.ended or not self.hung:
            return
        if not self.holding.mine and self.holding.pidfd < 0 and not spawn.is_alive(self.pid):
            # Nobody is its parent any more and there is no pidfd: this is how its death is noticed.
            self.holding.exit = (None, None)
            self._finish()
            return
        poller = select.poll()
        poller.register(self.holding.master, select.POLLIN)
        if any(mask & select.POLLHUP for _, mask in poller.poll(0)):
            if not self._wrote_eof:
                with contextlib.suppress(StorageFailed):
                    self.write("eof")
                    self._wrote_eof = True
            self.desk.loop.after(LATE_SECONDS, self._still_hung)
        else:
            self.hung = False
            self.update_interest()
            self.move()

    def exited(self) -> None:
        """The shell is dead (`holding.exit` says how). What it wrote may still be on its way through the tty."""
        if self._working():
            self.hung = False
            self.move(whole=True)
        if self._working():
            self.update_interest()
            self.desk.loop.after(LATE_SECONDS, self._late)

    def _late(self) -> None:
        """Nothing has hung the terminal up: somebody still has it open. Exit is told now, eof when he lets go of it."""
        if self._working():
            self.move(LATE_BYTES, whole=True)
        if not self._working():
            return
        try:
            self._write_exit()
        except StorageFailed as failure:
            self._stop_moving(failure, self._late)

    def let_go(self) -> None:
        """Whoever still has the terminal open is not waited for any more; what was printed is, while it has no room."""
        if self.holding.exit is not None and not self.ended:
            self.move(LATE_BYTES, whole=True)
            if self.failed is None and not self.ended:
                self._finish()

    def _write_exit(self) -> None:
        assert self.holding.exit is not None
        status, name = self.holding.exit
        if not self._wrote_exit:
            self.write("exit", {"status": status, "signal": name})
            self._wrote_exit = True

    def _working(self) -> bool:
        return not self.ended and self.failed is None

    def _finish(self) -> None:
        """Write the last entries and let go."""
        self.keyboard.end()
        try:
            self.shortage.ends()
            self._write_exit()
            if not self._wrote_eof:
                self.write("eof")
                self._wrote_eof = True
            if not self.timeline.vouches_for(self.stream.offset):
                # The terminal was opened again after its eof.
                self.write("tick")
        except StorageFailed as failure:
            self._stop_moving(failure, self._finish)
            return
        for _ in range(2):
            # The first may tell of what was under way; the rest is forced all the same.
            with contextlib.suppress(StorageFailed):
                self.durable.force()
        self.ended = True
        self.drain.end()
        self.desk.loop.forget(self.holding.master)
        self.quiet.end()
        self.desk.finished(self)
        self.release()

    def release(self) -> None:
        """Close the files (the holding's descriptors are the holding's)."""
        self.stream.close()
        self.timeline.close()
        self.durable.end()
