"""Closing of a conversation from outside: hang up, wait, kill, and answer when nothing is left.

A shell that ends by itself is none of this file's business; `Terminal` notices it. Here is only what is done to the
processes of its session, and which clients get the outcome.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any, Protocol

from blockpty.host import cgroup, spawn
from blockpty.host.context import ConnectedClient
from blockpty.host.input_queue import storage_full
from blockpty.host.loop import Loop
from blockpty.host.protocol import Refused
from blockpty.host.state import HostState
from blockpty.host.terminal import Terminal

KILL_AGAIN_SECONDS = 0.05
# How often what has left the session is killed before it is reported as what runs on.
KILL_TRIES = 20


class ClosingContext(Protocol):
    """Context of a closing, from the recorder."""

    loop: Loop
    state: HostState
    terminals: dict[str, Terminal]
    closing: dict[str, Closing]

    def answer(self, client: ConnectedClient, number: Any, result: dict[str, Any]) -> None:
        """Send a client the result of a request."""

    def refuse(self, client: ConnectedClient, number: Any, refusal: Refused) -> None:
        """Send a client the refusal of a request."""

    def check_leave(self) -> None:
        """End the recorder where nothing needs it any more."""


class Pending:
    """An answer that is owed to a client."""

    __slots__ = ("client", "number", "recorder", "request")

    def __init__(self, recorder: ClosingContext, client: ConnectedClient, number: Any) -> None:
        self.recorder = recorder
        self.client = client
        self.number = number
        self.request: dict[str, Any] = {}

    def done(self, result: dict[str, Any]) -> None:
        self.recorder.answer(self.client, self.number, result)

    def refuse(self, refusal: Refused) -> None:
        self.recorder.refuse(self.client, self.number, refusal)


class Closing:
    """A conversation that is being closed: done when its last entry is written and its session is empty.

    `leave`: what has left the session may run on; else it is ended as well.
    """

    __slots__ = ("answers", "cgroup", "leave", "outside", "session", "tries", "written")

    def __init__(self, session: int, path: str | None, orphans: list[int], *, leave: bool) -> None:
        self.session = session
        self.cgroup = path
        self.leave = leave
        self.answers: list[Pending] = []
        self.written: dict[str, Any] | None = None
        # What has been seen outside of the session: number and birth of a process, and its command.
        self.outside: dict[tuple[int, str], str] = {}
        self.tries = 0
        self._note(orphans)

    def survivors(self) -> list[int]:
        """Look for processes that have left the session, and return those that are alive.

        All in the cgroup are found, where there is one; else what descends from the session and from those found
        before (to begin with, the orphans that have the terminal open).
        """
        if self.cgroup is not None:
            found = [int(pid) for pid in cgroup.members(self.cgroup) or ()]
        else:
            known = [pid for pid, birth in self.outside if spawn.process_birth(pid) == birth]
            found = [*known, *spawn.descendants([*known, *(pid for pid, _ in spawn.session_members(self.session))])]
        return self._note(found)

    def _note(self, found: list[int]) -> list[int]:
        alive = []
        for pid in found:
            facts, birth = spawn.process_facts(pid), spawn.process_birth(pid)
            if facts is not None and birth is not None and facts[2] != self.session and facts[0] not in "ZXx":
                self.outside.setdefault((pid, birth), spawn.command_line(pid))
                alive.append(pid)
        return alive

    def reported(self) -> list[dict[str, Any]]:
        """What was seen outside of the session, for the answer."""
        alive = set(self.survivors())
        return [
            {"pid": pid, "command": command, "ended": pid not in alive}
            for (pid, _), command in sorted(self.outside.items())
        ]


def begin(
    recorder: ClosingContext, name: str, terminal: Terminal | None, grace_ms: int, pending: Pending | None,
    *, leave: bool,
) -> None:  # fmt: skip
    """Hang up `terminal` (None: that has been done by an earlier request), and owe `pending`, if any, the outcome."""
    if terminal is not None:
        path = terminal.shell.cgroup
        orphans = _orphans(recorder, terminal) if path is None else []
        recorder.closing[name] = Closing(terminal.pid, path, orphans, leave=leave)
        survivors = recorder.closing[name].survivors()
        inside = terminal.shell.is_inside
        spawn.signal_session(
            terminal.pid, terminal.shell.master, signal.SIGHUP, signal.SIGCONT, path=path, sandboxed=inside
        )
        if not leave:
            _signal(survivors, signal.SIGTERM, signal.SIGCONT)
    closing = recorder.closing[name]
    if pending is not None:
        closing.answers.append(pending)
    recorder.loop.after(grace_ms / 1000, lambda: _kill(recorder, name, closing))


def _orphans(recorder: ClosingContext, terminal: Terminal) -> list[int]:
    """What the keeper has adopted that has a terminal open and belongs to no session of ours."""
    place = spawn.terminal_name(terminal.shell.master)
    if place is None:
        return []
    ours = {os.getsid(0), *(shell.pid for shell in recorder.state.shells.values())}
    return [
        pid
        for pid in spawn.descendants([recorder.state.keeper])
        if (facts := spawn.process_facts(pid)) is not None and facts[2] not in ours and spawn.has_open(pid, place)
    ]


def _signal(pids: list[int], *numbers: int) -> None:
    for pid in pids:
        for number in numbers:
            with contextlib.suppress(OSError):
                os.kill(pid, number)


def signal_shell(terminal: Terminal, number: signal.Signals) -> None:
    """By pidfd where there is one, so that it cannot hit a stranger with a recycled number."""
    with contextlib.suppress(ProcessLookupError):
        if terminal.shell.is_inside and number is not signal.SIGKILL:
            if (inner := spawn.inner_shell(terminal.pid)) is not None:
                os.kill(inner, number)
        elif terminal.shell.pidfd >= 0:
            signal.pidfd_send_signal(terminal.shell.pidfd, number)
        else:
            os.kill(terminal.pid, number)


def _kill(recorder: ClosingContext, name: str, closing: Closing) -> None:
    """Grace is over: kill, and look again until none is left (a process may fork while the list is read)."""
    if recorder.closing.get(name) is not closing:
        return
    terminal = recorder.terminals.get(name)
    # What is to run on may also start others.
    left = spawn.kill_session(closing.session, None if closing.leave else closing.cgroup)
    closing.tries += 1
    if not closing.leave:
        _signal(closing.survivors(), signal.SIGKILL)
    if terminal is not None and terminal.pid == closing.session and terminal.shell.exit is None:
        signal_shell(terminal, signal.SIGKILL)
    if terminal is not None and terminal.pid == closing.session and not left:
        # A process that has left the session may have the terminal open for ever.
        terminal.detach()
        if recorder.closing.get(name) is not closing:
            # That was its end.
            return
    ended = terminal is not None and terminal.shell.exit is not None
    if not left and ended and terminal is not None and terminal.failed is not None:
        # Nothing runs any more, but that cannot be entered now; it is when there is space.
        del recorder.closing[name]
        for pending in closing.answers:
            pending.refuse(storage_full(terminal.failed))
        return
    if left or closing.written is None or _waits_for_survivors(closing):
        recorder.loop.after(KILL_AGAIN_SECONDS, lambda: _kill(recorder, name, closing))
    else:
        _closed(recorder, name, closing)


def _waits_for_survivors(closing: Closing) -> bool:
    """Whether there is something outside of the session that is to end and may; another user's does not."""
    return not closing.leave and closing.tries < KILL_TRIES and bool(closing.survivors())


def finish_close(recorder: ClosingContext, terminal: Terminal) -> None:
    """The last entry is written. Clients that wait for the closing are answered when the session is empty too."""
    name = terminal.shell.conversation
    closing = recorder.closing.get(name)
    if closing is None or terminal.shell.exit is None:
        return
    status, signal_name = terminal.shell.exit
    closing.written = {"status": status, "signal": signal_name, **terminal.sizes()}
    _answer_when_empty(recorder, name, closing)


def _answer_when_empty(recorder: ClosingContext, name: str, closing: Closing) -> None:
    """Answer as soon as nothing is left; once the grace is over, `_kill` does."""
    if recorder.closing.get(name) is not closing or any(spawn.session_members(closing.session, closing.cgroup)):
        return
    if _waits_for_survivors(closing):
        recorder.loop.after(KILL_AGAIN_SECONDS, lambda: _answer_when_empty(recorder, name, closing))
    else:
        _closed(recorder, name, closing)


def _closed(recorder: ClosingContext, name: str, closing: Closing) -> None:
    del recorder.closing[name]
    assert closing.written is not None
    outside = closing.reported()
    for pending in closing.answers:
        pending.done({**closing.written, "outside": outside})
    recorder.check_leave()
