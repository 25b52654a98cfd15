"""Ending what has the terminal: sessions and interrupts, each with a wait for the prompt instead of a guess."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from blockpty.engine.states import ShellState
from blockpty.errors import BadRequest, Exited, NotFound
from blockpty.model.results import DoneResult
from blockpty.runtime.live import BEGIN_SECONDS

if TYPE_CHECKING:
    from blockpty.runtime.conversation import Conversation

# What a program wants to hear to leave, by the name of its process; nothing else is ever typed into a program.
FAREWELLS: Final = {
    "bash": b"exit\r", "zsh": b"exit\r", "sh": b"exit\r", "dash": b"exit\r", "fish": b"exit\r", "ksh": b"exit\r",
    "ash": b"exit\r", "busybox": b"exit\r", "python": b"exit()\r", "python3": b"exit()\r", "ipython": b"exit\r",
    "node": b".exit\r", "irb": b"exit\r", "psql": b"\\q\r", "sqlite3": b".quit\r", "gdb": b"quit\r", "bc": b"quit\r",
    "mysql": b"exit\r", "lua": b"os.exit()\r",
}  # fmt: skip

GRACE_SECONDS: Final = 2.0
RETRY_SECONDS: Final = 0.1
KEYS: Final = {"INT": b"\x03", "QUIT": b"\x1c"}
SIGNALS: Final = ("INT", "QUIT", "TERM", "KILL")
# How often a HUP is sent again to a shell that is still there, and after how long.
HANG_UPS: Final = 3
HANG_UP_SECONDS: Final = 0.1


async def ended_within(conversation: Conversation, seconds: float) -> bool:
    """Return whether what runs is over (a prompt, or no shell any more) within some time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        conversation.live.pump()
        state = conversation.live.state
        if state.shell in (ShellState.IDLE, ShellState.EXITED):
            return True
        left = deadline - loop.time()
        if left <= 0:
            return False
        await conversation.live.changed(left)


async def hang_up(conversation: Conversation) -> None:
    """See that a shell that was told HUP ends, unless it does not want to; raises Exited.

    bash forgets one that comes while it draws its prompt: 1 in 50, right after the prompt came.
    """
    loop = asyncio.get_running_loop()
    for _ in range(HANG_UPS):
        deadline = loop.time() + HANG_UP_SECONDS
        while (left := deadline - loop.time()) > 0:
            conversation.live.pump()
            if conversation.live.state.shell is ShellState.EXITED:
                return
            await conversation.live.changed(left)
        await conversation.host.signal(conversation.id, "HUP", target="shell", epoch=conversation.epoch)


async def end_session(conversation: Conversation, session_id: str) -> DoneResult:
    """End a session the gentlest way that works."""
    sample = await conversation.host.inspect(conversation.id)
    name = str(sample.foreground_name or "").lstrip("-")
    farewell = FAREWELLS.get(name) or FAREWELLS.get(name.rstrip("0123456789."))
    if farewell is not None and sample.live:
        await conversation.send(farewell, session_id=session_id, author="engine")
        if await ended_within(conversation, GRACE_SECONDS):
            return DoneResult(conversation.cursor, how="exit")
    for _ in range(2):
        if conversation.live.state.shell is ShellState.RUNNING:
            await conversation.send(b"\x03", session_id=session_id, author="engine")
            if await ended_within(conversation, GRACE_SECONDS / 2):
                return DoneResult(conversation.cursor, how="ctrl_c")
    await conversation.reset()
    return DoneResult(conversation.cursor, how="reset")


async def interrupt(conversation: Conversation, up_to: str, grace_ms: int) -> DoneResult:
    """Send signals to the foreground group in order, until it is over or `up_to` has been sent.

    Behind ssh or in a container keys stand for them, of which there are two: Ctrl-C and Ctrl-backslash.
    """
    if up_to not in SIGNALS:
        raise BadRequest(f"cannot interrupt up to {up_to[:20]!r}", hint=f"one of {', '.join(SIGNALS)}")
    if conversation.live.state.block is None and conversation.live.state.submission is None:
        return DoneResult(conversation.cursor, how="nothing_runs")
    await conversation.live.begun(BEGIN_SECONDS)
    far = conversation.live.state.offers("nofs")
    for name in SIGNALS[: SIGNALS.index(up_to) + 1]:
        if far and name not in KEYS:
            # What has the terminal here is the way to the program, and would be all that such a signal ends.
            break
        conversation.note({"type": "interrupt", "signal": f"SIG{name}"})
        if await _signalled(conversation, name, grace_ms / 1000):
            return DoneResult(conversation.cursor, how=f"SIG{name}")
    return DoneResult(conversation.cursor, how="running")


async def _signalled(conversation: Conversation, name: str, grace: float) -> bool:
    """Signal the foreground group and return whether that ended it in time.

    A shell that is about to start a program takes the signal for itself and may drop it (measured in bash 5.2 and
    zsh 5.9). So as long as it went to the shell it is sent again; a program gets it once, it may count.
    """
    if conversation.live.state.offers("nofs"):
        # ssh passes a key on to the program; a signal would end ssh.
        await conversation.type(KEYS[name], "engine")
        return await ended_within(conversation, grace)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace
    while True:
        sample = await conversation.host.inspect(conversation.id)
        await conversation.host.signal(conversation.id, name, target="foreground", epoch=conversation.epoch)
        left = deadline - loop.time()
        # A child that has not executed its program yet is the shell under another number.
        program = sample.foreground != "shell" and sample.foreground_name != conversation.live.state.shell_name
        if program or left <= RETRY_SECONDS:
            return await ended_within(conversation, left)
        if await ended_within(conversation, RETRY_SECONDS):
            return True


async def end_shell(conversation: Conversation) -> None:
    """End the shell, if it runs, and whoever still has its terminal open."""
    conversation.live.pump()
    try:
        await conversation.host.close(conversation.id, epoch=conversation.epoch)
    except (Exited, NotFound):
        # It had ended already, and so had everybody else.
        conversation.live.pump()
    await conversation.live.drain()
