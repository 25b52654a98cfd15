"""Checks before typing: is there a program, and is it the session that was named."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from blockpty.engine.machine_state import MachineState
from blockpty.engine.outcome import CONNECTION_LOST
from blockpty.engine.states import ShellState
from blockpty.errors import ConnectionLost, Exited, NoSession
from blockpty.model.results import SendResult
from blockpty.runtime.status import is_session

# How long a submitted command may take to begin before input is typed, or a signal sent, all the same.
BEGIN_SECONDS: Final = 5.0
CLEAR_SECONDS: Final = 0.6
CLEAR_TRIES: Final = 3

if TYPE_CHECKING:
    from blockpty.runtime.channel import ConversationChannel
    from blockpty.runtime.follower import RecordFollower


def ended(conversation_id: str, state: MachineState) -> Exited:
    """Return the error for something that needs a shell which is gone."""
    if state.source is not None and (state.exit or {}).get("reason") == CONNECTION_LOST:
        return ConnectionLost(
            f"the connection of {conversation_id} to {state.source['kind']}:{state.source['target']} was lost",
            hint="reset connects again; what was recorded stays",
            details={"exit": state.exit},
        )
    # No shell is the first process of a machine; an import says so, having had none.
    was_imported = state.pid == "1" and not state.hooked
    hint = "it was imported and can only be read; open another conversation"
    return Exited(
        f"the shell of {conversation_id} has ended",
        hint=hint if was_imported else "reset, or open with its name, starts a new one",
        details={"exit": state.exit},
    )


def alive(channel: ConversationChannel) -> None:
    """Raise Exited when the shell has ended."""
    state = channel.live.state
    if state.shell is ShellState.EXITED:
        raise ended(channel.id, state)


def lost_its_prompt(state: MachineState, *, signalled: bool = False) -> bool:
    """Return whether a Ctrl-C has ended the function that draws fish's prompt: fish reads then, and shows none.

    `signalled`: a signal was sent since, which ends fish's own `read`, and the handler that would have written END.
    Without one, a shell that is busy is about to draw its prompt.
    """
    tty = state.tty or {}
    reads = tty.get("icanon") is False and tty.get("foreground") == "shell"
    reads = reads and (signalled or tty.get("busy") is not True)
    over = state.shell is ShellState.RETURNING or (signalled and state.shell is ShellState.RUNNING)
    return state.current.name == "fish" and over and reads


async def clear_line(channel: ConversationChannel, keys: bytes, author: str | None = None) -> SendResult:
    """Empty the command line of the shell; type it again where a line editor has missed it.

    bash and zsh lose a Ctrl-C that comes while they draw, and bash in vi mode one that follows an ESC within its
    half second (measured in 5.2): the line then stands as it was.
    """
    loop = asyncio.get_running_loop()
    sent = await channel.type(keys, author)
    for _ in range(CLEAR_TRIES - 1):
        deadline = loop.time() + CLEAR_SECONDS
        while channel.live.state.shell is ShellState.EDITING and loop.time() < deadline:
            await channel.live.subscribers.changed(deadline - loop.time())
        if channel.live.state.shell is not ShellState.EDITING:
            break
        await channel.type(keys, author)
    return sent


async def may_type(channel: ConversationChannel, session_id: str | None, author: str) -> None:
    """Check that something takes what is typed: a program, for a person the prompt as well."""
    channel.live.pump()
    if author == "user" and session_id is None and channel.live.state.shell is not ShellState.SUBMITTED:
        alive(channel)
    else:
        await running_program(channel, session_id)


async def wait_for_begin(live: RecordFollower, seconds: float = BEGIN_SECONDS) -> None:
    """Return when nothing that was submitted is still to begin and will say so, or the time is up."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    live.pump()
    while live.state.shell is ShellState.SUBMITTED and _says_begin(live.state) and loop.time() < deadline:
        await live.subscribers.changed(deadline - loop.time())


def _says_begin(state: MachineState) -> bool:
    # bash writes BEGIN to where its prompt goes.
    return state.current.begins and not (state.current.name == "bash" and lost_its_mark(state))


def lost_its_mark(state: MachineState) -> bool:
    """Return whether the shell has been at its prompt without the mark of it, as where its standard error is lost."""
    return (state.current.integrity_reason or "").startswith("prompt_lost")


async def running_program(channel: ConversationChannel, session_id: str | None) -> None:
    """Check that something runs, and wait until it has the terminal; a startup file that asks something is such.

    What is typed between a submission and its BEGIN meets the line editor's terminal modes: its CR would not be a
    line end for the program (measured: `read` never returns).
    """
    await wait_for_begin(channel.live)
    alive(channel)
    state = channel.live.state
    if state.shell not in (ShellState.RUNNING, ShellState.SUBMITTED, ShellState.STARTING):
        raise NoSession(
            f"nothing runs in {channel.id}", hint="exec_interactive starts a program; exec_block runs a command"
        )
    if session_id is not None and (not is_session(state) or session_id != f"s{_current(state)}"):
        raise NoSession(f"the session {session_id[:40]!r} is not active", hint="status names the active session")


def known_session(channel: ConversationChannel, session_id: str) -> None:
    """Raise NoSession for a session that never was."""
    channel.live.pump()
    number = session_id[1:]
    last = _current(channel.live.state)
    if not session_id.startswith("s") or not number.isdigit() or not 0 < int(number) <= last:
        raise NoSession(f"no session is called {session_id[:40]!r}", hint="use the session_id of exec_interactive")


def _current(state: MachineState) -> int:
    return state.block.seq if state.block is not None else state.next_block
