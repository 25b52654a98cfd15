"""State shared by keeper and recorder, so that either can become the other by a fork.

A `ShellHandle` is one shell with its terminal: the descriptors, the pid and the few facts that a new recorder needs.
A `HostState` is all of them plus the listening socket. The two processes have a copy each: the recorder changes its own
and sends the change to the keeper. Neither the record nor any client appears here.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import socket
import sys
import time
from typing import Any

from blockpty.host import protocol
from blockpty.host.protocol import Refused

BACKLOG = 512
LOG_BYTES = 1024 * 1024
SLOTS = 8192
SLOT_BYTES = 32


class ShellHandle:
    """One live shell: its terminal's master, the pipe that bytes are moved through, and what must outlive a process."""

    __slots__ = (
        "announced", "argv", "cgroup", "conversation", "directory", "durability", "entry", "epoch", "exit", "master",
        "is_piped", "lock", "mine", "persist", "pid", "pidfd", "pipe_r", "pipe_w", "reference", "sandbox",
        "segment_bytes", "slot", "watches", "working",
    )  # fmt: skip

    SHARED = ("persist", "watches", "reference", "announced", "working")

    def __init__(self, wire: dict[str, Any], fds: list[int]) -> None:
        self.conversation: str = wire["conversation"]
        self.directory: str = wire["directory"]
        self.argv: list[str] = wire["argv"]
        self.entry: dict[str, Any] = wire["entry"]
        self.pid: int = wire["pid"]
        self.persist: bool = wire["persist"]
        self.segment_bytes: int = wire["segment_bytes"]
        self.durability: str = wire["durability"]
        # The cgroup that bounds its processes; None where none could be made.
        self.cgroup: str | None = wire["cgroup"]
        # The boundary around it (sandbox.py), None without one; by bubblewrap, `pid` is that of the process around it.
        self.sandbox: dict[str, Any] | None = wire.get("sandbox")
        # Whether its program writes into the pipe itself, and not to the terminal.
        self.is_piped: bool = wire.get("is_piped", False)
        self.slot: int = wire["slot"]
        # `lock`: the timeline, locked by the processes that have this descriptor.
        self.master, self.pipe_r, self.pipe_w, self.lock = fds[:4]
        self.pidfd = fds[4] if len(fds) > 4 else -1
        # The exit status once it is known: (status, signal name); a keeper that is not the parent never learns it.
        self.exit: tuple[int | None, str | None] | None = None
        self.mine = True
        self.announced = False
        self.watches: list[int] = []
        # Whether it has been at work for a while (workload.py).
        self.working = False
        # What /proc says of the shell until it executes something else.
        self.reference: str | None = "".join(f"{os.fsencode(word).decode('latin-1')}\0" for word in self.argv)

    @property
    def is_inside(self) -> bool:
        """Whether the shell is not the process that the keeper started, but one in a namespace below it."""
        return self.sandbox is not None and self.sandbox["method"] == "bwrap"

    def to_wire(self) -> dict[str, Any]:
        return {
            "conversation": self.conversation, "directory": self.directory, "argv": self.argv, "entry": self.entry,
            "pid": self.pid, "persist": self.persist, "segment_bytes": self.segment_bytes, "slot": self.slot,
            "durability": self.durability, "cgroup": self.cgroup, "sandbox": self.sandbox,
            "is_piped": self.is_piped,
        }  # fmt: skip

    def fds(self) -> list[int]:
        return [fd for fd in (self.master, self.pipe_r, self.pipe_w, self.lock, self.pidfd) if fd >= 0]

    def close(self) -> None:
        for fd in self.fds():
            os.close(fd)
        self.master = self.pipe_r = self.pipe_w = self.lock = self.pidfd = -1


class HostState:
    """The home, its listening socket, and the handle of every shell."""

    def __init__(self, home: str, home_fd: int, limits: tuple[int, int]) -> None:
        self.home = os.path.realpath(home)
        # The home itself, locked by the processes that have this descriptor.
        self.home_fd = home_fd
        self.dir_fd = self._open_directory()
        self.listener = self._listen()
        self.limits = limits
        self.shells: dict[str, ShellHandle] = {}
        self.epochs: dict[str, int] = {}
        self.splice = False
        self.keeper = 0
        self.recorder = 0
        # Shared memory: how far the input in hand has got, so that a killed recorder's successor can say so.
        self.slots = mmap.mmap(-1, SLOTS * SLOT_BYTES)

    def _open_directory(self) -> int:
        """Return a descriptor of `host`, by which all in it is named; raises Refused, OSError."""
        with contextlib.suppress(FileExistsError):
            os.mkdir("host", 0o700, dir_fd=self.home_fd)
        fd = os.open("host", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.home_fd)
        try:
            protocol.check_private(os.fstat(fd), os.path.join(self.home, "host"))
        except Refused:
            os.close(fd)
            raise
        return fd

    def _listen(self) -> socket.socket:
        """Bind the home's socket, 0600: who has the home's lock may replace what is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(protocol.SOCKET_NAME, dir_fd=self.dir_fd)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.setblocking(False)
            old = os.umask(0o177)
            try:
                with protocol.socket_address(self.dir_fd) as address:
                    listener.bind(address)
            finally:
                os.umask(old)
            listener.listen(BACKLOG)
            self._socket = os.stat(protocol.SOCKET_NAME, dir_fd=self.dir_fd, follow_symlinks=False)
        except OSError:
            listener.close()
            raise
        return listener

    def is_home_ours(self) -> bool:
        """Whether the home is still where it was; also when the system cannot say."""
        try:
            return os.path.samestat(os.stat(self.home), os.fstat(self.home_fd))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True

    def is_reachable(self) -> bool:
        """Whether a client of the home finds our socket; also when the system cannot say."""
        try:
            place = os.stat("host", dir_fd=self.home_fd, follow_symlinks=False)
            found = os.stat(protocol.SOCKET_NAME, dir_fd=self.dir_fd, follow_symlinks=False)
            return os.path.samestat(place, os.fstat(self.dir_fd)) and os.path.samestat(found, self._socket)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True

    def listen_again(self) -> None:
        """Make directory, socket and log again that were removed; raises Refused, OSError, and can be tried again."""
        fresh = self._open_directory()
        old, self.dir_fd = self.dir_fd, fresh
        os.close(old)
        listener = self._listen()
        self.listener.close()
        self.listener = listener
        with contextlib.suppress(OSError):
            log = os.open(
                protocol.LOG_NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600, dir_fd=fresh
            )
            os.dup2(log, 2)
            os.close(log)
        self.write_pids()

    def write_pids(self) -> None:
        """Say in `<home>/host/pid` who we are (for people and tests; nothing of ours reads it)."""
        text = json.dumps({"keeper": self.keeper, "recorder": self.recorder}) + "\n"
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            fd = os.open(protocol.PID_NAME + ".new", flags, 0o600, dir_fd=self.dir_fd)
            os.write(fd, text.encode())
            os.close(fd)
            os.replace(
                protocol.PID_NAME + ".new", protocol.PID_NAME, src_dir_fd=self.dir_fd, dst_dir_fd=self.dir_fd
            )  # fmt: skip

    def log(self, text: str) -> None:
        """Write a line to host.log (our stderr), which never grows beyond `LOG_BYTES`."""
        with contextlib.suppress(OSError, ValueError):
            if os.fstat(2).st_size > LOG_BYTES:
                os.ftruncate(2, 0)
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            os.write(2, f"{stamp} [{os.getpid()}] {text}\n".encode("utf-8", "replace"))

    def log_exception(self, what: str) -> None:
        import traceback  # takes a while to import, and is hardly ever needed

        self.log(what + "\n" + "".join(traceback.format_exception(*sys.exc_info())))


class Restarts:
    """Lets a process be started again at once; after more than 10 starts in 10 seconds, 4 times a second."""

    LIMIT, SPAN, PAUSE = 10, 10.0, 0.25

    def __init__(self) -> None:
        self._times: list[float] = []

    def wait(self, now: float) -> float:
        """Seconds to wait before the next start; 0 counts as a start."""
        self._times = [when for when in self._times if now - when < self.SPAN]
        if len(self._times) >= self.LIMIT and now - self._times[-1] < self.PAUSE:
            return self._times[-1] + self.PAUSE - now
        self._times.append(now)
        return 0.0


def watch_children() -> int:
    """Return a descriptor that becomes readable when a child may have died."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return read_end


def unwatch_children(read_end: int) -> None:
    os.close(signal.set_wakeup_fd(-1))
    os.close(read_end)
