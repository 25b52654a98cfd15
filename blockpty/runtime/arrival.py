"""Arrival at a shell that is elsewhere: from the start of the way there (ssh, a container) to its prompt with hooks.

Rules of this file: what a person has to answer on the way (a password, a host key) is waited for and never answered.
Nothing is typed before a line editor reads, or something stands that looks like the prompt of a shell. The first line
that is typed asks which shell it is; the hooks follow with echo off, so that they are seen nowhere.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from typing import TYPE_CHECKING, Final

from blockpty.engine.machine_state import MachineState, asks_password
from blockpty.engine.states import ShellState
from blockpty.errors import BlockptyError
from blockpty.host.injection import HANDED_OVER, NOWHERE, fed_lines, hooks_of
from blockpty.runtime.shell_entry import CHECK_SECONDS, ask, shows_a_prompt, type_in

if TYPE_CHECKING:
    from blockpty.runtime.channel import ConversationChannel

# How much of the end of the output is looked at for a prompt.
TAIL_BYTES: Final = 4096
# How long what looks like a prompt must have stood where no line editor says that it reads.
SETTLED_SECONDS: Final = 1.0
# How long the far shell may take to say what it is, and then to show its prompt with hooks.
ANSWER_SECONDS: Final = 10.0
PROMPT_SECONDS: Final = 30.0

_EDITS: Final = re.compile(rb"\x1b\[\?2004([hl])")
# The usual last characters of a prompt, ❯ ➜ λ among them. Not `>`: questions end with it.
_PROMPT: Final = re.compile(rb"(?:[#$%]|\xe2\x9d\xaf|\xe2\x9e\x9c|\xce\xbb) ?(?:\x1b\[[0-9;?]*[a-zA-Z])*\Z")


def asks(state: MachineState) -> str | None:
    """Return what stands on the way to a far shell and waits for a person: `password` or `line`; None for nothing."""
    tty = state.tty or {}
    if state.shell is not ShellState.STARTING or state.source is None or state.source["kind"] != "ssh":
        return None
    if asks_password(tty):
        return "password"
    return "line" if tty.get("icanon") is True and tty.get("reads") is True else None


async def arrive(channel: ConversationChannel, begin: int) -> None:
    """Give hooks to the shell whose way begins at this offset, when it shows its prompt; note that where it takes none.

    Returns when it has them, when it takes none, or when it is over. Cancelling leaves the shell as it is.
    """
    try:
        pasted = await _prompted(channel, begin)
        if pasted is not None:
            await _hook(channel, pasted=pasted)
    except BlockptyError:
        # The terminal or its host has gone; the record says so.
        channel.live.pump()


async def _prompted(channel: ConversationChannel, begin: int) -> bool | None:
    """Return when the far shell reads: whether it takes pastes in brackets. None when it is over before that."""
    live, loop = channel.live, asyncio.get_running_loop()
    since, position = loop.time(), -1
    while live.state.shell is ShellState.STARTING:
        end = channel.cursor
        if end != position:
            since, position = loop.time(), end
        # A silence since the last key: what is being typed would otherwise stand in front of our line.
        if live.state.tty is not None and not asks(live.state):
            tail = live.stream.read(max(begin, end - TAIL_BYTES), min(TAIL_BYTES, end - begin))
            modes = _EDITS.findall(tail)
            if modes and modes[-1] == b"h":
                return True
            if not modes and loop.time() - since >= SETTLED_SECONDS and _PROMPT.search(tail):
                return False
        await live.subscribers.changed(CHECK_SECONDS)
        live.pump()
    return None


async def _hook(channel: ConversationChannel, *, pasted: bool) -> None:
    shell = await ask(channel, pasted=pasted, seconds=ANSWER_SECONDS)
    if shell not in HANDED_OVER:
        if channel.live.state.shell is ShellState.STARTING:
            channel.note({"type": "no_hooks"})
            await channel.noted()
        return
    nonce = secrets.token_urlsafe(16)
    text = hooks_of(shell, directory=NOWHERE, file=NOWHERE, nonce=nonce)
    channel.note({"type": "enter", "nonce": nonce, "shell": shell, "nested": False, "how": "typed"})
    await channel.noted()
    shown = False
    try:
        await type_in(channel, fed_lines(text, shell))
        shown = await shows_a_prompt(channel, PROMPT_SECONDS)
    finally:
        if not shown and channel.live.state.shell is ShellState.STARTING:
            channel.note({"type": "leave", "nonce": nonce})
