"""Keeper: parent of every shell, second owner of every terminal, and supervisor of the recorder.

It moves no byte and answers no client. It may be killed: the recorder then forks itself into a new one (which is not
the shells' parent, so their exit statuses stay unknown; their deaths are seen through pidfds).
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import select
import socket
import sys
import time
from typing import Any

from blockpty.host import cgroup, locks, protocol, spawn
from blockpty.host.autogroup import Shares
from blockpty.host.cgroup import Cgroups, find_base
from blockpty.host.protocol import Channel, Refused
from blockpty.host.state import SLOTS, HostState, Restarts, ShellHandle, unwatch_children, watch_children

PR_SET_CHILD_SUBREAPER = 36


class Keeper:
    """Starts shells and recorders, and holds what must outlive a recorder."""

    def __init__(self, state: HostState, link: Channel | None, ready_fd: int = -1) -> None:
        self.state = state
        self.link = link
        self._ready_fd = ready_fd
        self._restarts = Restarts()
        self._spawns: dict[int, Spawned] = {}
        self._statuses: dict[int, int] = {}
        self._poller = select.poll()
        self._wake = watch_children()
        adopt_orphans()
        self._poller.register(self._wake, select.POLLIN)
        self._strangers: dict[int, ShellHandle] = {}
        self._leaving = False
        self._cgroups = Cgroups(find_base())
        self._cgroups.sweep()
        self._shares = Shares()

    def run(self) -> HostState | None:
        """Work until the recorder says leave. Returns the state in a forked child that must become the recorder."""
        state = self.state
        state.keeper = os.getpid()
        if self.link is not None:
            self._adopt()
        while True:
            wait: float | None = None
            if self.link is None and not self._leaving:
                wait = self._restarts.wait(time.monotonic())
                if not wait and self._start_recorder():
                    return state
            self._run_once(wait if self.link is None else None)
            if self._leaving:
                return None

    def _adopt(self) -> None:
        """Take over from a killed keeper: shells that are not our children are watched by pidfd."""
        assert self.link is not None
        self._poller.register(self.link.fd, select.POLLIN)
        for shell in self.state.shells.values():
            shell.mine = False
            if shell.exit is None and shell.pidfd >= 0:
                self._strangers[shell.pidfd] = shell
                self._poller.register(shell.pidfd, select.POLLIN)

    def _run_once(self, wait: float | None) -> None:
        link_fd = self.link.fd if self.link is not None else -1
        waits = [each for each in (wait, self._shares.wait(time.monotonic())) if each is not None]
        for fd, mask in self._poller.poll(max(1, min(waits) * 1000) if waits else None):
            if fd == self._wake:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
                self._reap()
            elif fd == link_fd:
                self._on_link(mask)
            elif fd in self._spawns:
                self._spawned(fd)
            elif fd in self._strangers:
                self._stranger_died(fd)
        self._shares.proceed(time.monotonic())

    # -- the recorder ---------------------------------------------------------------------------------------------

    def _start_recorder(self) -> bool:
        """Fork a recorder. Return True in the child."""
        state = self.state
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        gc.freeze()
        try:
            pid = os.fork()
        except OSError:
            state.log_exception("no recorder could be started")
            ours.close()
            theirs.close()
            return False
        if pid == 0:
            ours.close()
            self._release_in_child()
            state.recorder = os.getpid()
            self.child_link = Channel(theirs)
            return True
        theirs.close()
        state.recorder = pid
        self.link = Channel(ours)
        self._poller.register(self.link.fd, select.POLLIN)
        state.write_pids()
        if self._ready_fd >= 0:
            os.write(self._ready_fd, b"1")
            os.close(self._ready_fd)
            self._ready_fd = -1
        return False

    def _release_in_child(self) -> None:
        """In the child: close what only a keeper has."""
        unwatch_children(self._wake)
        if self._ready_fd >= 0:
            os.close(self._ready_fd)
        for fd, spawned in self._spawns.items():
            os.close(fd)
            spawned.close()
        self._spawns.clear()

    def _send(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        if self.link is not None:
            self.link.send(message, fds or ())
            self._watch_link()

    def _watch_link(self) -> None:
        if self.link is not None:
            idle = self.link.flush()
            self._poller.modify(self.link.fd, select.POLLIN | (0 if idle else select.POLLOUT))

    def _on_link(self, mask: int) -> None:
        link = self.link
        assert link is not None
        if mask & select.POLLOUT:
            self._watch_link()
        lines = link.receive()
        while lines:
            for line in lines:
                try:
                    self._dispatch(protocol.decode(line))
                except Exception:  # noqa: BLE001  a defect here must not hang up every shell of the home
                    self.state.log_exception("keeper: a message of the recorder failed")
            lines = link.receive()
        if link.ended and not self._leaving:
            self._poller.unregister(link.fd)
            link.close()
            self.link = None
            self.state.log(f"the recorder {self.state.recorder} is gone")

    def _dispatch(self, message: dict[str, Any]) -> None:
        match message["do"]:
            case "spawn":
                self._spawn(message)
            case "changed":
                shell = self.state.shells.get(message["conversation"])
                if shell is not None and shell.pid == message["pid"]:
                    for name in ShellHandle.SHARED:
                        setattr(shell, name, message[name])
                    self._shares.work(shell.pid, time.monotonic(), working=shell.working)
            case "epoch":
                self.state.epochs[message["conversation"]] = message["epoch"]
            case "closed":
                shell = self.state.shells.get(message["conversation"])
                if shell is not None and shell.pid == message["pid"]:
                    del self.state.shells[shell.conversation]
                    if self._strangers.pop(shell.pidfd, None) is not None:
                        self._poller.unregister(shell.pidfd)
                    shell.close()
                    self._cgroups.remove(shell.cgroup)
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
        if request["conversation"] in self.state.shells:
            self._send({"say": "present", "ticket": ticket})
            return
        try:
            lock = locks.hold_record(request["directory"])
        except OSError as error:
            refused = Refused("storage_full", f"{request['directory']} cannot be written: {error.strerror}")
            if isinstance(error, locks.LockHeld):
                refused = protocol.held_elsewhere(request["conversation"])
            self._send({"say": "refused", "ticket": ticket, "error": refused.to_wire()})
            return
        limit = request["process_limit"]
        request["cgroup"] = self._cgroups.make(limit) if limit else None
        try:
            started = spawn.start(request, self.state.limits)
        except Refused as refusal:
            os.close(lock)
            self._cgroups.remove(request["cgroup"])
            self._send({"say": "refused", "ticket": ticket, "error": refusal.to_wire()})
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
            self._send({"say": "refused", "ticket": spawned.ticket, "error": refusal.to_wire()})
            return
        used = {shell.slot for shell in self.state.shells.values()}
        slot = next((number for number in range(SLOTS) if number not in used), -1)
        path = started.request["cgroup"]
        if path is not None and str(started.pid) not in (cgroup.members(path) or ()):
            # It could not enter, or has ended already: what comes of it is looked for everywhere.
            self._cgroups.remove(path)
            started.request["cgroup"] = None
        wire = {**started.request, "pid": started.pid, "slot": slot}
        fds = [started.master, started.pipe_r, started.pipe_w, spawned.lock]
        shell = ShellHandle(wire, [*fds, started.pidfd] if started.pidfd >= 0 else fds)
        self.state.shells[shell.conversation] = shell
        fds = shell.fds()
        self._send({"say": "spawned", "ticket": spawned.ticket, "holding": shell.to_wire(), "fds": len(fds)}, fds)
        if started.pid in self._statuses:
            self._died(shell, self._statuses.pop(started.pid))
        else:
            # Not before: until the child has made a session of its own, it would be ours.
            self._shares.add(started.pid, started.request["shell_nice"])

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for shell in self.state.shells.values():
                if shell.pid == pid and shell.mine and shell.exit is None:
                    self._shares.remove(pid, time.monotonic())
                    self._died(shell, status)
                    break
            else:
                if any(spawned.spawn.pid == pid for spawned in self._spawns.values()):
                    self._statuses[pid] = status

    def _died(self, shell: ShellHandle, wait_status: int) -> None:
        code = os.waitstatus_to_exitcode(wait_status)
        shell.exit = (code, None) if code >= 0 else (None, spawn.signal_name(-code))
        self._tell_exit(shell)

    def _stranger_died(self, pidfd: int) -> None:
        self._poller.unregister(pidfd)
        shell = self._strangers.pop(pidfd)
        shell.exit = (None, None)
        self._tell_exit(shell)

    def _tell_exit(self, shell: ShellHandle) -> None:
        self._send(
            {"say": "exit", "conversation": shell.conversation, "pid": shell.pid, "exit": shell.exit}
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


def adopt_orphans() -> None:
    """Collect what a shell leaves behind when it ends: in a container the first process often collects nothing.

    Only this process is asked for; what a killed keeper had goes to the first process again.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


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
