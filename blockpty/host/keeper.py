"""The keeper: parent of every shell, second owner of every terminal, and what starts the recorder (again).

It moves no byte and answers no client. It may be killed: the recorder then forks itself into a new one (which is not
the shells' parent, so their exit statuses stay unknown; their deaths are seen through pidfds).
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any

from blockpty.host import cgroup, place, protocol, spawn
from blockpty.host.autogroup import Shares
from blockpty.host.cgroup import Cgroups, find_base
from blockpty.host.house import SLOTS, Holding, House, Restarts
from blockpty.host.protocol import Channel, Refused

PR_SET_CHILD_SUBREAPER = 36


class Keeper:
    def __init__(self, house: House, link: Channel | None, ready_fd: int = -1) -> None:
        self.house = house
        self.link = link
        self._ready_fd = ready_fd
        self._restarts = Restarts()
        self._spawns: dict[int, Spawned] = {}
        self._statuses: dict[int, int] = {}
        self._poller = select.poll()
        self._wake = watch_children()
        adopt_orphans()
        self._poller.register(self._wake, select.POLLIN)
        self._strangers: dict[int, Holding] = {}
        self._leaving = False
        self._cgroups = Cgroups(find_base())
        self._cgroups.sweep()
        self._shares = Shares()

    def run(self) -> House | None:
        """Work until the recorder says leave. Returns the house in a forked child that must become the recorder."""
        house = self.house
        house.keeper = os.getpid()
        if self.link is not None:
            self._adopt()
        while True:
            wait: float | None = None
            if self.link is None and not self._leaving:
                wait = self._restarts.wait(time.monotonic())
                if not wait and self._start_recorder():
                    return house
            self._turn(wait if self.link is None else None)
            if self._leaving:
                return None

    def _adopt(self) -> None:
        """Take over from a killed keeper: shells that are not our children are watched by pidfd."""
        assert self.link is not None
        self._poller.register(self.link.fd, select.POLLIN)
        for holding in self.house.holdings.values():
            holding.mine = False
            if holding.exit is None and holding.pidfd >= 0:
                self._strangers[holding.pidfd] = holding
                self._poller.register(holding.pidfd, select.POLLIN)

    def _turn(self, wait: float | None) -> None:
        link_fd = self.link.fd if self.link is not None else -1
        waits = [each for each in (wait, self._shares.wait(time.monotonic())) if each is not None]
        for fd, mask in self._poller.poll(max(1, min(waits) * 1000) if waits else None):
            if fd == self._wake:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
                self._reap()
            elif fd == link_fd:
                self._hear(mask)
            elif fd in self._spawns:
                self._spawned(fd)
            elif fd in self._strangers:
                self._stranger_died(fd)
        self._shares.proceed(time.monotonic())

    # -- the recorder ---------------------------------------------------------------------------------------------

    def _start_recorder(self) -> bool:
        """Fork a recorder. Return True in the child."""
        house = self.house
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        gc.freeze()
        try:
            pid = os.fork()
        except OSError:
            house.log_exception("no recorder could be started")
            ours.close()
            theirs.close()
            return False
        if pid == 0:
            ours.close()
            self._abandon()
            house.recorder = os.getpid()
            self.child_link = Channel(theirs)
            return True
        theirs.close()
        house.recorder = pid
        self.link = Channel(ours)
        self._poller.register(self.link.fd, select.POLLIN)
        house.write_pids()
        if self._ready_fd >= 0:
            os.write(self._ready_fd, b"1")
            os.close(self._ready_fd)
            self._ready_fd = -1
        return False

    def _abandon(self) -> None:
        """In the child: let go of what only a keeper has."""
        unwatch_children(self._wake)
        if self._ready_fd >= 0:
            os.close(self._ready_fd)
        for fd, spawned in self._spawns.items():
            os.close(fd)
            spawned.close()
        self._spawns.clear()

    def _say(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        if self.link is not None:
            self.link.send(message, fds or ())
            self._watch_link()

    def _watch_link(self) -> None:
        if self.link is not None:
            idle = self.link.flush()
            self._poller.modify(self.link.fd, select.POLLIN | (0 if idle else select.POLLOUT))

    def _hear(self, mask: int) -> None:
        link = self.link
        assert link is not None
        if mask & select.POLLOUT:
            self._watch_link()
        lines = link.receive()
        while lines:
            for line in lines:
                try:
                    self._obey(protocol.decode(line))
                except Exception:  # noqa: BLE001  a defect here must not hang up every shell of the home
                    self.house.log_exception("keeper: a message of the recorder failed")
            lines = link.receive()
        if link.ended and not self._leaving:
            self._poller.unregister(link.fd)
            link.close()
            self.link = None
            self.house.log(f"the recorder {self.house.recorder} is gone")

    def _obey(self, message: dict[str, Any]) -> None:
        match message["do"]:
            case "spawn":
                self._spawn(message)
            case "told":
                holding = self.house.holdings.get(message["conversation"])
                if holding is not None and holding.pid == message["pid"]:
                    for name in Holding.TOLD:
                        setattr(holding, name, message[name])
            case "epoch":
                self.house.epochs[message["conversation"]] = message["epoch"]
            case "closed":
                holding = self.house.holdings.get(message["conversation"])
                if holding is not None and holding.pid == message["pid"]:
                    del self.house.holdings[holding.conversation]
                    if self._strangers.pop(holding.pidfd, None) is not None:
                        self._poller.unregister(holding.pidfd)
                    holding.close()
                    self._cgroups.remove(holding.cgroup)
            case "leave":
                self._leaving = True

    # -- shells ---------------------------------------------------------------------------------------------------

    def _spawn(self, message: dict[str, Any]) -> None:
        """Start a shell, unless the request is one that a killed recorder had passed on already."""
        request, ticket = message["request"], message["ticket"]
        for spawned in self._spawns.values():
            if spawned.spawn.request["conversation"] == request["conversation"]:
                # Its outcome answers the last who asked; that it is the same shell shows in the entry's nonce.
                spawned.ticket = ticket
                return
        if request["conversation"] in self.house.holdings:
            self._say({"say": "present", "ticket": ticket})
            return
        try:
            lock = place.hold_record(request["directory"])
        except OSError as error:
            refused = Refused("storage_full", f"{request['directory']} cannot be written: {error.strerror}")
            if isinstance(error, place.Held):
                refused = protocol.held_elsewhere(request["conversation"])
            self._say({"say": "refused", "ticket": ticket, "error": refused.to_wire()})
            return
        limit = request["process_limit"]
        request["cgroup"] = self._cgroups.make(limit) if limit else None
        try:
            started = spawn.start(request, self.house.limits)
        except Refused as refusal:
            os.close(lock)
            self._cgroups.remove(request["cgroup"])
            self._say({"say": "refused", "ticket": ticket, "error": refusal.to_wire()})
            return
        self._spawns[started.status_fd] = Spawned(started, ticket, lock)
        self._poller.register(started.status_fd, select.POLLIN)

    def _spawned(self, status_fd: int) -> None:
        """Exec has happened, or has not."""
        self._poller.unregister(status_fd)
        spawned = self._spawns.pop(status_fd)
        started = spawned.spawn
        refusal = started.outcome()
        if refusal is not None:
            self._statuses.pop(started.pid, None)
            spawned.close()
            self._cgroups.remove(started.request["cgroup"])
            self._say({"say": "refused", "ticket": spawned.ticket, "error": refusal.to_wire()})
            return
        used = {holding.slot for holding in self.house.holdings.values()}
        slot = next((number for number in range(SLOTS) if number not in used), -1)
        path = started.request["cgroup"]
        if path is not None and str(started.pid) not in (cgroup.members(path) or ()):
            # It could not enter, or has ended already: what comes of it is looked for everywhere.
            self._cgroups.remove(path)
            started.request["cgroup"] = None
        wire = {**started.request, "pid": started.pid, "slot": slot}
        fds = [started.master, started.pipe_r, started.pipe_w, spawned.lock]
        holding = Holding(wire, [*fds, started.pidfd] if started.pidfd >= 0 else fds)
        self.house.holdings[holding.conversation] = holding
        fds = holding.fds()
        self._say({"say": "spawned", "ticket": spawned.ticket, "holding": holding.to_wire(), "fds": len(fds)}, fds)
        if started.pid in self._statuses:
            self._died(holding, self._statuses.pop(started.pid))
        else:
            # Not before: until the child has made a session of its own, it would be ours.
            self._shares.add(started.pid, started.request["shell_nice"], time.monotonic())

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for holding in self.house.holdings.values():
                if holding.pid == pid and holding.mine and holding.exit is None:
                    self._shares.remove(pid, time.monotonic())
                    self._died(holding, status)
                    break
            else:
                if any(spawned.spawn.pid == pid for spawned in self._spawns.values()):
                    self._statuses[pid] = status

    def _died(self, holding: Holding, wait_status: int) -> None:
        code = os.waitstatus_to_exitcode(wait_status)
        holding.exit = (code, None) if code >= 0 else (None, spawn.signal_name(-code))
        self._tell_exit(holding)

    def _stranger_died(self, pidfd: int) -> None:
        self._poller.unregister(pidfd)
        holding = self._strangers.pop(pidfd)
        holding.exit = (None, None)
        self._tell_exit(holding)

    def _tell_exit(self, holding: Holding) -> None:
        self._say(
            {"say": "exit", "conversation": holding.conversation, "pid": holding.pid, "exit": holding.exit}
        )  # fmt: skip


class Spawned:
    """A shell that is being started; `lock` is its record's."""

    __slots__ = ("lock", "spawn", "ticket")

    def __init__(self, started: spawn.Spawn, ticket: str, lock: int) -> None:
        self.spawn = started
        self.ticket = ticket
        self.lock = lock

    def close(self) -> None:
        self.spawn.close()
        os.close(self.lock)


def watch_children() -> int:
    """Return a descriptor that becomes readable when a child may have died."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return read_end


def adopt_orphans() -> None:
    """Collect what a shell leaves behind when it ends: in a container the first process often collects nobody.

    Only this process is asked for; what a killed keeper had goes to the first process again.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def unwatch_children(read_end: int) -> None:
    os.close(signal.set_wakeup_fd(-1))
    os.close(read_end)


# -- starting -----------------------------------------------------------------------------------------------------


def splice_works(dir_fd: int) -> bool:
    """Whether bytes of a PTY can be moved to a file of this home by splice()."""
    if not hasattr(os, "splice") or os.environ.get("BLOCKPTY_NO_SPLICE") == "1":
        return False
    fds: list[int] = []
    try:
        fds += os.openpty()
        fds += os.pipe()
        os.write(fds[1], b"x")
        if os.splice(fds[0], fds[3], 16) != 1:
            return False
        fds.append(os.open("probe", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600, dir_fd=dir_fd))
        os.unlink("probe", dir_fd=dir_fd)
        return os.splice(fds[2], fds[4], 16, offset_dst=0) == 1
    except OSError as error:
        # For want of room, and not because the file system could not.
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    finally:
        for fd in fds:
            os.close(fd)


def raise_limit() -> tuple[int, int]:
    """Allow ourselves as many descriptors as we may have; return the limits that a shell is to get."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    return limits


def main(home: str, home_fd: int, ready_fd: int) -> None:
    """Be the host of `home`, whose lock is on `home_fd`; what listens then sends a byte through `ready_fd`."""
    from blockpty.host.recorder import Recorder

    os.chdir("/")
    os.umask(0o077)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    limits = raise_limit()
    os.set_inheritable(home_fd, False)
    house = House(home, home_fd, limits)
    house.splice = splice_works(house.dir_fd)

    keeper = Keeper(house, None, ready_fd)
    while keeper.run() is not None:
        recorder = Recorder(house, keeper.child_link)
        del keeper
        if recorder.run() is None:
            break
        keeper = Keeper(house, recorder.child_link)
        del recorder
    os._exit(0)


def guarded_main(home: str, home_fd: int, ready_fd: int) -> None:
    try:
        main(home, home_fd, ready_fd)
    except BaseException:  # noqa: BLE001  the log is the only place left to say it
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
