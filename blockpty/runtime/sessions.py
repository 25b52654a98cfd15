"""Who may be typed to: is there a program, and is it the session that was named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blockpty.engine.states import ShellState
from blockpty.errors import NoSession
from blockpty.runtime.live import BEGIN_SECONDS
from blockpty.runtime.modes import is_session
from blockpty.runtime.submission import ended

if TYPE_CHECKING:
    from blockpty.engine.snapshot import MachineState
    from blockpty.runtime.conversation import Conversation


def alive(conversation: Conversation) -> None:
    """Raise Exited when the shell has ended."""
    state = conversation.live.state
    if state.shell is ShellState.EXITED:
        raise ended(conversation.id, state)


async def running_program(conversation: Conversation, session_id: str | None) -> None:
    """Check that something runs, and wait until it has the terminal.

    What is typed between a submission and its BEGIN meets the line editor's terminal modes: its CR would not be a
    line end for the program (measured: `read` never returns).
    """
    await conversation.live.begun(BEGIN_SECONDS)
    alive(conversation)
    state = conversation.live.state
    if state.shell not in (ShellState.RUNNING, ShellState.SUBMITTED):
        raise NoSession(
            f"nothing runs in {conversation.id}", hint="exec_interactive starts a program; exec_block runs a command"
        )
    if session_id is not None and (not is_session(state) or session_id != f"s{_current(state)}"):
        raise NoSession(f"the session {session_id[:40]!r} is not active", hint="status names the active session")


def known_session(conversation: Conversation, session_id: str) -> None:
    """Raise NoSession for a session that never was."""
    conversation.live.pump()
    number = session_id[1:]
    last = _current(conversation.live.state)
    if not session_id.startswith("s") or not number.isdigit() or not 0 < int(number) <= last:
        raise NoSession(f"no session is called {session_id[:40]!r}", hint="use the session_id of exec_interactive")


def _current(state: MachineState) -> int:
    return state.block.seq if state.block is not None else state.next_block
