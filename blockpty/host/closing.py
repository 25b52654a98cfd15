"""Ending a conversation from outside: hang up, wait, kill, and answer when nothing is left.

A shell that ends by itself is none of this file's business; `Terminal` notices it. Here is only what is done to the
processes of its session, and who is to hear of the outcome.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Any

from blockpty.host import spawn
from blockpty.host.keyboard import storage_full
from blockpty.host.protocol import Refused
from blockpty.host.terminal import Terminal

if TYPE_CHECKING:
    from blockpty.host.recorder import Client, Recorder

KILL_AGAIN_SECONDS = 0.05


class Pending:
    """An answer that is owed to a client."""

    __slots__ = ("client", "number", "recorder", "request")

    def __init__(self, recorder: Recorder, client: Client, number: Any) -> None:
        self.recorder = recorder
        self.client = client
        self.number = number
        self.request: dict[str, Any] = {}

    def done(self, result: dict[str, Any]) -> None:
        self.recorder.answer(self.client, self.number, result)

    def refuse(self, refusal: Refused) -> None:
        self.recorder.refuse(self.client, self.number, refusal)


class Closing:
    """A conversation that is being closed: done when its last entry is written and its session is empty."""

    __slots__ = ("answers", "cgroup", "session", "written")

    def __init__(self, session: int, cgroup: str | None) -> None:
        self.session = session
        self.cgroup = cgroup
        self.answers: list[Pending] = []
        self.written: dict[str, Any] | None = None


def begin(recorder: Recorder, name: str, terminal: Terminal | None, grace_ms: int, pending: Pending) -> None:
    """Hang up `terminal` (None: that has been done by an earlier request), and owe `pending` the outcome."""
    if terminal is not None:
        path = terminal.holding.cgroup
        recorder.closing[name] = Closing(terminal.pid, path)
        spawn.signal_session(terminal.pid, terminal.holding.master, signal.SIGHUP, signal.SIGCONT, path=path)
    closing = recorder.closing[name]
    closing.answers.append(pending)
    recorder.loop.after(grace_ms / 1000, lambda: _kill(recorder, name, closing))


def signal_shell(terminal: Terminal, number: signal.Signals) -> None:
    """By pidfd where there is one, so that it cannot hit a stranger with a recycled number."""
    with contextlib.suppress(ProcessLookupError):
        if terminal.holding.pidfd >= 0:
            signal.pidfd_send_signal(terminal.holding.pidfd, number)
        else:
            os.kill(terminal.pid, number)


def _kill(recorder: Recorder, name: str, closing: Closing) -> None:
    """Grace is over: kill, and look again until nobody is left (a process may fork while the list is read)."""
    if recorder.closing.get(name) is not closing:
        return
    terminal = recorder.terminals.get(name)
    left = spawn.kill_session(closing.session, closing.cgroup)
    if terminal is not None and terminal.pid == closing.session and terminal.holding.exit is None:
        signal_shell(terminal, signal.SIGKILL)
    if terminal is not None and terminal.pid == closing.session and not left:
        # A process that has left the session may have the terminal open for ever.
        terminal.let_go()
    ended = terminal is not None and terminal.holding.exit is not None
    if not left and ended and terminal is not None and terminal.failed is not None:
        # Nothing runs any more, but that cannot be entered now; it is when there is space.
        del recorder.closing[name]
        for pending in closing.answers:
            pending.refuse(storage_full(terminal.failed))
        return
    if left or closing.written is None:
        recorder.loop.after(KILL_AGAIN_SECONDS, lambda: _kill(recorder, name, closing))
    else:
        _closed(recorder, name, closing)


def finish_close(recorder: Recorder, terminal: Terminal) -> None:
    """The last entry is written. Whoever waits for the closing hears of it when the session is empty too."""
    name = terminal.holding.conversation
    closing = recorder.closing.get(name)
    if closing is None or terminal.holding.exit is None:
        return
    status, signal_name = terminal.holding.exit
    closing.written = {"status": status, "signal": signal_name, **terminal.sizes()}
    if not any(spawn.session_members(closing.session, closing.cgroup)):
        _closed(recorder, name, closing)


def _closed(recorder: Recorder, name: str, closing: Closing) -> None:
    del recorder.closing[name]
    assert closing.written is not None
    for pending in closing.answers:
        pending.done(closing.written)
    recorder.check_leave()
