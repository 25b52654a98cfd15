"""A live terminal in the recorder: its bytes moved into the stream, and its entries in the timeline.

This file knows the order of things within one conversation. It does not know clients, sockets, other conversations or
how a shell is started; the recorder reports the shell's exit, and `RecorderContext` is the way back. Input is in
`input_queue.py`, silence in `silence.py`, the entries of a full disk in `disk_full.py`, durability in `sync_policy.py`.

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
from typing import Any

from blockpty.host import readers, spawn
from blockpty.host.context import RecorderContext
from blockpty.host.disk_full import DiskFull
from blockpty.host.input_drain import InputDrain
from blockpty.host.input_queue import InputQueue, storage_full
from blockpty.host.loop import IN, OUT
from blockpty.host.protocol import Refused
from blockpty.host.record import SPLICE_NONBLOCK, StorageFailed, Stream, Timeline
from blockpty.host.recovery import boot_id
from blockpty.host.silence import RETRY_SECONDS, SilenceDetector
from blockpty.host.state import ShellHandle
from blockpty.host.sync_policy import SyncPolicy

TURN_BYTES = 256 * 1024
LATE_BYTES = 4 * 1024 * 1024
CHUNK = 65536
# What is asked of the terminal at a time: it gives at most some 4 KiB, and the kernel takes pages for all that is asked
# for. So many loads go into the pipe, which holds 16, before they go on together: half of the processor time.
LOAD = 8192
LOADS = 12
SHORT = 2048
LATE_SECONDS = 0.25
# A turn costs the same however much it moves, and ssh writes some 4 KiB at a time: in a flood the pipe fills meanwhile.
FILL_SECONDS = 0.001


class Terminal:
    """One shell's terminal and its record."""

    def __init__(self, recorder: RecorderContext, shell: ShellHandle) -> None:
        self.recorder = recorder
        self.shell = shell
        self.pid = shell.pid
        self._inner: int | None = None
        self.stream = Stream(shell.directory, shell.segment_bytes)
        self.timeline = Timeline(shell.directory, self.stream.pieces, shell.lock, recorder.loop.clock)
        self.silence = SilenceDetector(self, recorder.loop.clock)
        self.drain = InputDrain(self, self._drop_hidden_input)
        self.disk_full = DiskFull(self)
        self.input = InputQueue(self, self.silence, self.drain, self.disk_full)
        self.sync = SyncPolicy(self, shell.durability)
        # Why nothing is moved now; None when all is well.
        self.failed: StorageFailed | None = None
        # The master gives EIO: no process has the terminal open.
        self.hung = False
        self.ended = False
        self._held = b""
        # Whether the pipe is left alone, so that it fills.
        self._filling = False
        self._in_pipe = self._pipe_bytes()
        self._wrote_exit = False
        self._wrote_eof = False

    def begin(self, *, fresh: bool = False) -> None:
        """Begin the work, be it `fresh` or a killed predecessor's."""
        tail = [] if fresh else self.timeline.tail()
        try:
            self.sync.begin()
            if not fresh:
                # What a predecessor wrote last may not have been synced.
                self.sync.wrote(1)
            if not self.shell.announced:
                self._announce(tail)
            self._resume(tail)
        except StorageFailed as failure:
            self._stop_moving(failure, self.begin)
            return
        self.update_interest()
        if self.shell.watches:
            self.silence.check()
        if self.shell.exit is not None:
            self.exited()

    def _announce(self, tail: list[dict[str, Any]]) -> None:
        """Write the spawn entry, unless a predecessor was killed just after that."""
        # What the shell calls itself, which its marks say.
        pid = spawn.INNER_PID if self.shell.is_inside else self.pid
        entry = {**self.shell.entry, "pid": pid, "transport": "splice" if self.recorder.splice else "read"}
        if boot := boot_id():
            entry["boot"] = boot
        if not any(known["kind"] == "spawn" and known == {**known, **entry} for known in tail):
            self.write("spawn", entry)
            tail.clear()
        self.shell.announced = True
        self.recorder.tell_keeper(self.shell)

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
        self.disk_full.resume(own)
        self.input.cut_interrupted()
        self.drain.resume()
        if tail and tail[-1]["kind"] == "silence":
            self.silence.resume(tail[-1])
        elif tail:
            self.silence.arm()

    def _drop_hidden_input(self) -> None:
        self.input.drop_hidden()

    # -- out of the terminal --------------------------------------------------------------------------------------

    def on_ready(self, mask: int) -> None:
        if mask & ~OUT:
            before = self.stream.offset
            self.move()
            if self.shell.is_piped and self.stream.offset - before >= SHORT:
                self._let_fill()
        if mask & OUT:
            self.input.push()

    def _let_fill(self) -> None:
        """Look at the pipe again a moment later."""

        def filled() -> None:
            self._filling = False
            self.on_ready(IN)
            self.update_interest()

        if not self._filling:
            self._filling = True
            self.update_interest()
            self.recorder.loop.after(FILL_SECONDS, filled)

    def move(self, budget: int = TURN_BYTES, *, whole: bool = False) -> None:
        """Move up to `budget` bytes of what is there to the stream; `whole`: do not stop at the first small piece."""
        if self.failed is not None or self.hung or self.ended:
            return
        moved, before = 0, self.timeline.size
        end: EOFError | StorageFailed | None = None
        try:
            while moved < budget:
                step = self._splice() if self.recorder.splice else self._copy()
                moved += step
                if (step < SHORT or self.shell.is_piped) and not whole:
                    break
        except BlockingIOError:
            pass
        except (EOFError, StorageFailed) as reason:
            end = reason
        if moved:
            self.silence.printed()
        if moved or self.timeline.size != before:
            try:
                self.sync.wrote(moved + self.timeline.size - before)  # with the ticks
            except StorageFailed as failure:
                end = failure
            self.recorder.grew(self.shell.conversation, moved)
        if not isinstance(end, StorageFailed):
            try:
                self.disk_full.ends()
            except StorageFailed as failure:
                end = failure
        if isinstance(end, StorageFailed):
            self._stop_moving(end, self._go_on)
        elif end is not None:
            self._hang()

    def _splice(self) -> int:
        """Move what the pipe takes: master to pipe, then pipe to stream. A kill anywhere in here loses nothing."""
        shell = self.shell
        if shell.is_piped:
            self._gather()
        elif not self._in_pipe:
            self._fill()
        self.timeline.tick(self.stream.offset)
        moved = 0
        while self._in_pipe:
            step = self.stream.splice(shell.pipe_r, self._in_pipe)
            if not step:
                break
            self._in_pipe -= step
            moved += step
        return moved

    def _pipe_bytes(self) -> int:
        count: int = struct.unpack("i", fcntl.ioctl(self.shell.pipe_r, termios.FIONREAD, b"\0" * 4))[0]
        return count

    def _gather(self) -> None:
        """See how much the program itself has written into the pipe; raises as `_fill`.

        What it says on its terminal, such as a question for a password, goes behind that.
        """
        self._in_pipe = self._pipe_bytes()
        try:
            self._fill()
        except (BlockingIOError, EOFError):
            # What a program has written just before its end may have come after the first look.
            self._in_pipe = self._pipe_bytes()
            if not self._in_pipe:
                raise

    def _fill(self) -> None:
        """Move some of what the terminal has into the pipe; raises BlockingIOError, EOFError where both are empty."""
        shell = self.shell
        for _ in range(LOADS):
            try:
                load = os.splice(shell.master, shell.pipe_w, LOAD, flags=SPLICE_NONBLOCK)
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
                self._held = os.read(self.shell.master, CHUNK)
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
            mask = IN | (OUT if self.input.wants_room else 0)
        if self.shell.master >= 0:
            self.recorder.loop.watch(self.shell.master, mask, self.on_ready)
            if self.shell.is_piped:
                self.recorder.loop.watch(self.shell.pipe_r, 0 if self._filling else mask & IN, self.on_ready)

    def _stop_moving(self, failure: StorageFailed, retry: Callable[[], None]) -> None:
        """Leave everything where it is until the files can grow again."""
        self.failed = failure
        self.update_interest()
        self.disk_full.begins(failure.name)

        def again() -> None:
            if self.ended:
                return
            try:
                self.disk_full.enter()
            except StorageFailed as still:
                self._stop_moving(still, retry)
                return
            self.failed = None
            retry()

        self.recorder.loop.after(RETRY_SECONDS, again)

    def sync_now(self) -> None:
        """Make stream and timeline durable; nothing is moved while that fails."""
        try:
            self.sync.sync_now()
        except StorageFailed as failure:
            self._stop_moving(failure, self._go_on)

    def not_synced(self, failure: StorageFailed) -> None:
        """Move nothing until it can be synced."""
        if self.failed is None:
            self._stop_moving(failure, self._go_on)

    def _go_on(self) -> None:
        self.sync_now()
        self.move()
        if self.failed is None:
            self.update_interest()
            self.input.push()
            if self.shell.exit is not None:
                self.exited()

    # -- entries --------------------------------------------------------------------------------------------------

    def write(self, kind: str, fields: dict[str, Any] | None = None, ts: int | None = None) -> None:
        """Write an entry at the present end of the stream; raises StorageFailed. `ts`: when it was, if not just now."""
        before = self.timeline.size
        try:
            self.stream.keep()
        except OSError as error:
            raise StorageFailed(error, self.shell.directory) from error
        self.timeline.write(self.stream.offset, kind, fields, ts)
        if self.stream.restored or self.timeline.restored:
            self.stream.restored = self.timeline.restored = False
            self.timeline.write(self.stream.offset, "storage", {"state": "restored"})
        try:
            self.sync.wrote(self.timeline.size - before)
        except StorageFailed as failure:
            # The entry is there: it is not the caller's failure.
            self._stop_moving(failure, self._go_on)
        self.recorder.grew(self.shell.conversation, 0)

    def sizes(self) -> dict[str, Any]:
        return {"offset": self.stream.offset, "timeline": self.timeline.size}

    def note(self, note: Any) -> None:
        self._drained_write("note", {"note": note})

    def resize(self, cols: int, rows: int, author: str) -> None:
        self._drained_write("resize", {"cols": cols, "rows": rows, "author": author})
        with contextlib.suppress(OSError):
            spawn.set_size(self.shell.master, cols, rows)

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

    def state(self, group: int | None = None) -> dict[str, Any]:
        """Which process has the terminal and how it reads, at this moment; `group`: its group, if that is known."""
        icanon, echo = self.modes()
        group = group or self.foreground()
        return {
            "icanon": icanon, "echo": echo,
            "foreground": None if group is None else "shell" if group in (self.pid, self.shell_pid) else "child",
            "replaced": self.replaced(),
            # In any other mode nothing that is asked of this terminal is a line.
            "reads": self.reads(group) if icanon else False,
        }  # fmt: skip

    def at_editor(self) -> bool:
        """Whether the shell has the terminal, in another mode than line mode."""
        return not self.modes()[0] and self.foreground() in (self.pid, self.shell_pid)

    def depth(self, state: Mapping[str, Any]) -> int | None:
        """How deep in its stack the shell waits for a key, if it is the shell that does; see `spawn.waiting_depth`."""
        return spawn.waiting_depth(self.shell_pid) if state["foreground"] == "shell" and not state["icanon"] else None

    def shell_works(self) -> bool:
        """Whether the shell computes or waits for a child of its own process group; False where that is unknown."""
        return spawn.is_working(self.shell_pid)

    def foreground_runs(self) -> bool:
        """Whether a process of the foreground, or the shell, is not asleep; False where that is unknown."""
        group = self.foreground()
        return group is not None and spawn.is_running(group, self.shell_pid)

    def has_jobs(self) -> bool:
        """Whether the shell has children, as its jobs are; False where that is unknown."""
        return spawn.has_children(self.shell_pid)

    def reads(self, group: int | None) -> bool | None:
        """Whether a process of the foreground is blocked reading this terminal; None where unknown."""
        name = spawn.terminal_name(self.shell.master)
        return spawn.reads_terminal(group, name, self.shell_pid) if group is not None and name is not None else None

    def reader(self, *, patient: bool) -> int | None:
        """A process of the foreground that waits for input from this terminal; see `readers.find_reader`."""
        group, name = self.foreground(), spawn.terminal_name(self.shell.master)
        if group is None or name is None:
            return None
        return readers.find_reader(group, name, self.shell_pid, canonical=self.modes()[0], patient=patient)

    def modes(self) -> tuple[bool, bool]:
        """(canonical, echo); read from the master, which shares the shell's terminal modes."""
        try:
            flags = termios.tcgetattr(self.shell.master)[3]
        except (OSError, ValueError, termios.error):  # gone: its number is -1, or another file's
            return False, False
        return bool(flags & termios.ICANON), bool(flags & termios.ECHO)

    def stops(self, data: bytes) -> bool:
        """Whether these are only keys of which the terminal makes signals for the foreground program."""
        try:
            modes = termios.tcgetattr(self.shell.master)
        except (OSError, ValueError, termios.error):
            return False
        keys = b"".join(modes[6][name] for name in (termios.VINTR, termios.VQUIT, termios.VSUSP))
        return bool(modes[3] & termios.ISIG) and bool(data) and not data.strip(keys)

    def foreground(self) -> int | None:
        """The process group that has the terminal."""
        try:
            return os.tcgetpgrp(self.shell.master) or None
        except OSError:
            return None

    def replaced(self) -> bool | None:
        """Whether the shell process runs another program than the one it was started with; None where unknown."""
        image = spawn.program_image(self.shell_pid)
        if image is None or (self.shell.is_inside and self._is_bwrap(image)):
            return None
        reference = self.shell.reference
        if reference is None or reference == image.rpartition("@")[0]:
            # The program that it was started with: from now on it is known by its address as well.
            self.shell.reference = reference = image
            self.recorder.tell_keeper(self.shell)
        return image != reference

    @property
    def shell_pid(self) -> int:
        """The shell's own process, as it is seen here; while a sandbox is made, the process around it."""
        if not self.shell.is_inside:
            return self.pid
        if self._inner is None or not spawn.is_inner_shell(self._inner):
            self._inner = spawn.inner_shell(self.pid)
        return self._inner or self.pid

    def _is_bwrap(self, image: str) -> bool:
        """Whether a process has not become the shell yet: its arguments are those of bubblewrap."""
        own = spawn.program_image(self.pid)
        return own is not None and own.rpartition("@")[0] == image.rpartition("@")[0]

    # -- the end --------------------------------------------------------------------------------------------------

    def _hang(self) -> None:
        """The master gave EIO: no process has the terminal open (any more, or for now)."""
        self.hung = True
        self.update_interest()
        if self.shell.exit is not None:
            self._finish()
        else:
            self.recorder.loop.after(LATE_SECONDS, self._still_hung)

    def _still_hung(self) -> None:
        """The shell lives on without its terminal; it may open it again by /dev/tty."""
        if self.ended or not self.hung:
            return
        if not self.shell.mine and self.shell.pidfd < 0 and not spawn.is_alive(self.pid):
            # No process of ours is its parent any more and there is no pidfd: this is how its death is noticed.
            self.shell.exit = (None, None)
            self._finish()
            return
        poller = select.poll()
        poller.register(self.shell.master, select.POLLIN)
        if any(mask & select.POLLHUP for _, mask in poller.poll(0)):
            if not self._wrote_eof:
                with contextlib.suppress(StorageFailed):
                    self.write("eof")
                    self._wrote_eof = True
            self.recorder.loop.after(LATE_SECONDS, self._still_hung)
        else:
            self.hung = False
            self.update_interest()
            self.move()

    def exited(self) -> None:
        """The shell is dead (`shell.exit` says how). What it wrote may still be on its way through the tty."""
        if self._working():
            self.hung = False
            self.move(whole=True)
        if self._working():
            self.update_interest()
            self.recorder.loop.after(LATE_SECONDS, self._late)

    def _late(self) -> None:
        """Nothing has hung the terminal up: a process still has it open. `exit` is written now, `eof` at its close."""
        if self._working():
            self.move(LATE_BYTES, whole=True)
        if not self._working():
            return
        try:
            self._write_exit()
        except StorageFailed as failure:
            self._stop_moving(failure, self._late)

    def detach(self) -> None:
        """Wait no more for processes that still have the terminal open; what was printed is moved once it has room."""
        if self.shell.exit is not None and not self.ended:
            self.move(LATE_BYTES, whole=True)
            if self.failed is None and not self.ended:
                self._finish()

    def _write_exit(self) -> None:
        assert self.shell.exit is not None
        status, name = self.shell.exit
        if not self._wrote_exit:
            self.write("exit", {"status": status, "signal": name})
            self._wrote_exit = True

    def _working(self) -> bool:
        return not self.ended and self.failed is None

    def _finish(self) -> None:
        """Write the last entries and close the files."""
        self.input.end()
        try:
            self.disk_full.ends()
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
            # The first may fail for what was under way; the rest is synced all the same.
            with contextlib.suppress(StorageFailed):
                self.sync.sync_now()
        self.ended = True
        self.drain.end()
        self.recorder.loop.forget(self.shell.master)
        self.recorder.loop.forget(self.shell.pipe_r)
        self.silence.end()
        self.recorder.finished(self.shell)
        self.release()

    def release(self) -> None:
        """Close the files (the shell's descriptors are the handle's)."""
        self.stream.close()
        self.timeline.close()
        self.sync.end()
