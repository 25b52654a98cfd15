"""Recorder: the only writer of streams and timelines, and the only process that clients talk to.

It serves every terminal of a home from one thread. It may be killed at any point: bytes that were on their way are in
pipes that the keeper holds too, and the keeper forks a successor, which finds out from the files how far this one got.
What the requests mean is in `requests.py`, what happens in one terminal in `terminal.py`.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from blockpty.host import closing, protocol, spawn
from blockpty.host.closing import Closing, Pending, finish_close
from blockpty.host.context import ConnectedClient
from blockpty.host.locks import unlock
from blockpty.host.loop import IN, OUT, Loop
from blockpty.host.notifier import Notifier
from blockpty.host.protocol import Channel, Refused
from blockpty.host.record import sizes_of
from blockpty.host.silence import RETRY_SECONDS
from blockpty.host.state import HostState, Restarts, ShellHandle, unwatch_children, watch_children
from blockpty.host.terminal import Terminal

IDLE_SECONDS = 10.0
# How often it is looked whether the home and the socket in it are still ours.
PLACE_SECONDS = 1.0


Answer = dict[str, Any] | None
Operation = Callable[["Recorder", ConnectedClient, dict[str, Any]], Answer]


class Recorder:
    """Serves the terminals and the clients of one home; `operations` are what a client may ask for, by name."""

    def __init__(self, state: HostState, link: Channel, operations: Mapping[str, Operation]) -> None:
        self.state = state
        self._operations = operations
        self.link = link
        self.loop = Loop()
        self.slots = state.slots
        self.splice = state.splice
        self.terminals: dict[str, Terminal] = {}
        self.clients: dict[int, ConnectedClient] = {}
        self.notifiers: dict[str, Notifier] = {}
        self.tickets: dict[str, Pending] = {}
        self.closing: dict[str, Closing] = {}
        self.child_link: Channel
        self._dirty: set[str] = set()
        self._unreadable: set[str] = set()
        self._numbers = itertools.count(1)
        self._restarts = Restarts()
        self._leaving = False
        # Whether a client has been here, or has had the time to: those of a killed predecessor come back.
        self._met = False
        self._orphaned = False
        # The home was removed, moved or replaced: nothing is opened by its path any more.
        self._evicted = False
        self._become_keeper = False
        self._wake = watch_children()

    def run(self) -> HostState | None:
        """Work until the last conversation and the last client are gone. Returns the state in a forked child that must
        become the keeper."""
        loop = self.loop
        loop.watch(self._wake, IN, self._reap)
        loop.watch(self.state.listener.fileno(), IN, self._accept)
        loop.watch(self.link.fd, IN, self._on_link)
        loop.after(IDLE_SECONDS, self._idle_check)
        self._check_home()
        for shell in list(self.state.shells.values()):
            self._take(shell)
        while True:
            loop.turn()
            if self._dirty:
                self._notify()
            if self._leaving:
                return None
            if self._orphaned:
                self._replace_keeper()
                if self._become_keeper:
                    return self.state

    # -- terminals (RecorderContext) ------------------------------------------------------------------------------

    def grew(self, conversation: str, count: int) -> None:
        notifier = self.notifiers.get(conversation)
        if notifier is not None:
            notifier.grown += count
            self._dirty.add(conversation)

    def _notify(self) -> None:
        now = self.loop.clock()
        for conversation in self._dirty:
            notifier = self.notifiers.get(conversation)
            if notifier is not None:
                notifier.notify(self.loop, now)
        self._dirty.clear()

    def tell_keeper(self, shell: ShellHandle) -> None:
        self._send(
            {
                "do": "changed", "conversation": shell.conversation, "pid": shell.pid,
                **{name: getattr(shell, name) for name in ShellHandle.SHARED},
            }
        )  # fmt: skip

    def finished(self, shell: ShellHandle) -> None:
        """The last entry of a shell's terminal is written."""
        terminal = self.terminals.pop(shell.conversation)
        unlock(shell.lock)
        self.state.shells.pop(shell.conversation, None)
        self._send({"do": "closed", "conversation": shell.conversation, "pid": shell.pid})
        finish_close(self, terminal)
        shell.close()
        self.check_leave()

    def _take(self, shell: ShellHandle, *, fresh: bool = False) -> None:
        """Begin to serve a terminal; if its files cannot be opened now, it waits."""
        self.state.shells[shell.conversation] = shell
        if self._evicted:
            self._end_unrecorded(shell)
            return
        try:
            terminal = Terminal(self, shell)
        except OSError as error:
            if shell.conversation not in self._unreadable:
                self._unreadable.add(shell.conversation)
                self.state.log(f"{shell.conversation}: its files cannot be opened: {error}")
            self.loop.after(RETRY_SECONDS, lambda: self._take(shell))
            return
        self._unreadable.discard(shell.conversation)
        self.terminals[shell.conversation] = terminal
        terminal.begin(fresh=fresh)

    # -- the place ------------------------------------------------------------------------------------------------

    def _check_home(self) -> None:
        """Be found where the home is still ours; where it is not, end every shell in order."""
        state = self.state
        self.loop.after(PLACE_SECONDS, self._check_home)
        if self._evicted:
            self.check_leave()
        elif not state.is_home_ours():
            self._evict()
        elif not state.is_reachable():
            state.log("the socket was removed, and is made again")
            self.loop.forget(state.listener.fileno())
            try:
                state.listen_again()
            except (OSError, Refused):
                state.log_exception("the socket could not be made again")
            self._listen()

    def _evict(self) -> None:
        self._evicted = True
        self.state.log(f"{self.state.home} was removed, moved or replaced: its shells are ended")
        for name, terminal in list(self.terminals.items()):
            with contextlib.suppress(Refused):
                terminal.note({"type": "home_gone"})
            if name not in self.closing:
                closing.begin(self, name, terminal, protocol.GRACE_MS, None, leave=False)

    def _end_unrecorded(self, shell: ShellHandle) -> None:
        """End a shell whose record cannot be found by a recorder that was started after the home had gone."""
        spawn.kill_session(shell.pid, shell.cgroup)
        self.state.shells.pop(shell.conversation, None)
        self._send({"do": "closed", "conversation": shell.conversation, "pid": shell.pid})
        shell.close()

    # -- the keeper -----------------------------------------------------------------------------------------------

    def spawn(self, request: dict[str, Any], pending: Pending) -> None:
        ticket = f"{os.getpid()}.{next(self._numbers)}"
        pending.request = request
        self.tickets[ticket] = pending
        self._send({"do": "spawn", "ticket": ticket, "request": request})

    def set_epoch(self, conversation: str, epoch: int) -> None:
        self.state.epochs[conversation] = epoch
        self._send({"do": "epoch", "conversation": conversation, "epoch": epoch})

    def _send(self, message: dict[str, Any]) -> None:
        if not self.link.send(message):
            self.loop.watch(self.link.fd, IN | OUT, self._on_link)

    def _on_link(self, mask: int) -> None:
        if mask & OUT and self.link.flush():
            self.loop.watch(self.link.fd, IN, self._on_link)
        lines = self.link.receive()
        while lines:
            for line in lines:
                try:
                    self._dispatch(protocol.decode(line))
                except Exception:  # noqa: BLE001  a defect here must not end every conversation of the home
                    self.state.log_exception("recorder: a message of the keeper failed")
            lines = self.link.receive()
        if self.link.ended:
            self.loop.forget(self.link.fd)
            self._orphaned = True

    def _dispatch(self, message: dict[str, Any]) -> None:
        match message["say"]:
            case "spawned":
                fds = [self.link.fds.popleft() for _ in range(message["fds"])]
                shell = ShellHandle(message["holding"], fds)
                self._take(shell, fresh=True)
                self._opened(message["ticket"], shell)
            case "present":
                pending = self.tickets.get(message["ticket"])
                if pending is not None:
                    self._opened(message["ticket"], self.state.shells.get(pending.request["conversation"]))
            case "refused":
                pending = self.tickets.pop(message["ticket"], None)
                if pending is not None:
                    error = message["error"]
                    pending.refuse(Refused(error["code"], error["message"], error["hint"], **error["details"]))
                self.check_leave()
            case "exit":
                known = self.state.shells.get(message["conversation"])
                if known is not None and known.pid == message["pid"]:
                    known.exit = (message["exit"][0], message["exit"][1])
                    terminal = self.terminals.get(known.conversation)
                    if terminal is not None:
                        terminal.exited()

    def _opened(self, ticket: str, shell: ShellHandle | None) -> None:
        """Answer an open request with the shell that there is, if that is the one asked for."""
        pending = self.tickets.pop(ticket, None)
        if pending is None:
            return
        request = pending.request
        if shell is None or (shell.entry, shell.argv) != (request["entry"], request["argv"]):
            pending.refuse(Refused("busy", f"conversation {request['conversation']} has a shell already"))
            return
        terminal = self.terminals.get(shell.conversation)
        sizes = terminal.sizes() if terminal is not None else sizes_of(shell.directory)
        pending.done({"pid": shell.pid, **sizes})

    def _keeper_gone(self) -> None:
        self._orphaned = True

    def _replace_keeper(self) -> None:
        """The keeper was killed: become one, in a child, with everything it had. Not to be called inside a turn of the
        loop: what is still due in it is not the child's."""
        self._orphaned = False
        state = self.state
        wait = self._restarts.wait(self.loop.clock())
        if wait:
            self.loop.after(wait, self._keeper_gone)
            return
        state.log(f"the keeper {state.keeper} is gone")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            pid = os.fork()
        except OSError:
            state.log_exception("no keeper could be started")
            ours.close()
            theirs.close()
            self.loop.after(RETRY_SECONDS, self._keeper_gone)
            return
        if pid == 0:
            ours.close()
            self._release_in_child()
            self.child_link = Channel(theirs)
            self._become_keeper = True
            return
        theirs.close()
        state.keeper = pid
        self.link.close()
        self.link = Channel(ours)
        self.loop.watch(self.link.fd, IN, self._on_link)
        for shell in state.shells.values():
            shell.mine = False
        state.write_pids()
        for ticket, pending in self.tickets.items():
            self._send({"do": "spawn", "ticket": ticket, "request": pending.request})

    def _release_in_child(self) -> None:
        """In the child: close what only a recorder has."""
        self.loop.close()
        unwatch_children(self._wake)
        self.link.close()
        for client in self.clients.values():
            for fd in client.subscriptions.values():
                os.close(fd)
            client.channel.close()
        for terminal in self.terminals.values():
            terminal.release()
        self._dirty.clear()

    def _reap(self, mask: int) -> None:
        """Collect a killed keeper that was our child."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    # -- clients --------------------------------------------------------------------------------------------------

    def _accept(self, mask: int = 0) -> None:
        while True:
            try:
                sock, _ = self.state.listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self.state.log_exception("a client could not be accepted")
                self.loop.forget(self.state.listener.fileno())
                self.loop.after(RETRY_SECONDS, self._listen)
                return
            if protocol.peer_uid(sock) != os.geteuid():
                sock.close()
                continue
            client = ConnectedClient(Channel(sock))
            self.clients[client.channel.fd] = client
            self._met = True
            self._watch_client(client, IN)

    def _listen(self) -> None:
        self.loop.watch(self.state.listener.fileno(), IN, self._accept)

    def _serve(self, client: ConnectedClient, mask: int) -> None:
        channel = client.channel
        if mask & OUT and channel.flush():
            self._watch_client(client, IN)
        if mask & ~OUT:
            for line in channel.receive():
                self._handle(client, line)
                if channel.ended:
                    break
            if channel.fds:
                channel.drop_fds()
        if channel.ended:
            self._disconnect(client)

    def _watch_client(self, client: ConnectedClient, mask: int) -> None:
        if client.channel.fd in self.clients:
            self.loop.watch(client.channel.fd, mask, lambda mask: self._serve(client, mask))

    def _handle(self, client: ConnectedClient, line: bytes) -> None:
        number: Any = None
        try:
            request = protocol.decode(line)
            number = request.get("id")
            name = request.get("op")
            operation = self._operations.get(name) if isinstance(name, str) else None
            if operation is None:
                raise Refused("bad_request", f"the host knows no operation {name!r}")
            result = operation(self, client, request)
        except Refused as refusal:
            self.refuse(client, number, refusal)
        except Exception as error:  # noqa: BLE001  the same, for one client's request
            self.state.log_exception("a request failed")
            self.refuse(client, number, Refused("internal", f"the host failed: {type(error).__name__}: {error}"))
        else:
            if result is not None:
                self.answer(client, number, result)

    def answer(self, client: ConnectedClient, number: Any, result: dict[str, Any]) -> None:
        if number is not None:
            self._reply(client, {"id": number, "ok": True, **result})

    def refuse(self, client: ConnectedClient, number: Any, refusal: Refused) -> None:
        self._reply(client, {"id": number, "ok": False, "error": refusal.to_wire()})

    def _reply(self, client: ConnectedClient, message: dict[str, Any]) -> None:
        if not client.channel.ended and not client.channel.send(message):
            self._watch_client(client, IN | OUT)

    def _disconnect(self, client: ConnectedClient) -> None:
        if self.clients.pop(client.channel.fd, None) is not None:
            self.loop.forget(client.channel.fd)
            for conversation in list(client.subscriptions):
                self.unsubscribe(client, conversation)
            client.channel.close()
            self.check_leave()

    def subscribe(self, client: ConnectedClient, conversation: str, fd: int) -> None:
        self.unsubscribe(client, conversation)
        os.set_blocking(fd, False)
        client.subscriptions[conversation] = fd
        self.notifiers.setdefault(conversation, Notifier()).add(fd)

    def unsubscribe(self, client: ConnectedClient, conversation: str) -> None:
        fd = client.subscriptions.pop(conversation, None)
        if fd is not None:
            notifier = self.notifiers[conversation]
            notifier.fds.remove(fd)
            if not notifier.fds:
                del self.notifiers[conversation]
            os.close(fd)

    # -- leaving --------------------------------------------------------------------------------------------------

    def _idle_check(self) -> None:
        self._met = True
        self.check_leave()
        self.loop.after(IDLE_SECONDS, self._idle_check)

    def check_leave(self) -> None:
        """Leave when no client and no shell needs us.

        A starting client holds start.lock; a client in the backlog is taken in first.
        """
        if self._evicted:
            # A client that is still connected can do nothing with it.
            if not (self.terminals or self.tickets or self.closing or self.state.shells):
                self._leave()
            return
        if not self._met or self.clients or self.terminals or self.tickets or self.closing or self.state.shells:
            return
        state = self.state
        try:
            lock = os.open(protocol.LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=state.dir_fd)
        except OSError:
            self._leave()
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            self.loop.after(RETRY_SECONDS, self.check_leave)
            return
        self._accept()
        if self.clients:
            os.close(lock)
            return
        # From here on a client finds no socket, waits for the lock, and gets it when this process has ended.
        for name in (protocol.SOCKET_NAME, protocol.PID_NAME):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=state.dir_fd)
        self._leave()

    def _leave(self) -> None:
        self._leaving = True
        self.link.sock.setblocking(True)
        self._send({"do": "leave"})
