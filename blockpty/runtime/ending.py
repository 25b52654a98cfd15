"""Ending what has the terminal: sessions and interrupts, each with a wait for the prompt instead of a guess."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from blockpty.engine.states import ShellState
from blockpty.errors import BadRequest, Exited, NotFound, StorageFull
from blockpty.model.results import DoneResult
from blockpty.runtime.live import BEGIN_SECONDS

if TYPE_CHECKING:
    from blockpty.host.answers import Inspected
    from blockpty.runtime.conversation import Conversation

# What ends a program that reads its lines or keys from the terminal, by the name of its process.
_EXIT: Final = (b"exit\r",)
_PYTHON: Final = (b"exit()\r",)
LINES: Final = {
    "bash": _EXIT, "zsh": _EXIT, "sh": _EXIT, "dash": _EXIT, "fish": _EXIT, "ksh": _EXIT, "ash": _EXIT,
    "busybox": _EXIT, "python": _PYTHON, "python3": _PYTHON, "ipython": _EXIT, "node": (b".exit\r",), "irb": _EXIT,
    "psql": (b"\\q\r",), "sqlite3": (b".quit\r",), "gdb": (b"quit\r",), "bc": (b"quit\r",), "mysql": _EXIT,
    "lua": (b"os.exit()\r",),
}  # fmt: skip
# Ctrl-C ends a question that a pager asks, or its waiting for more. ESC stands alone: before a key it would be Alt.
_PAGER: Final = (b"q", b"\x03", b"q")
_VI: Final = (b"\x1b", b":qa!\r")
_NANO: Final = (b"\x18", b"n")
KEYS: Final = {
    "less": _PAGER, "pager": _PAGER, "more": _PAGER, "most": _PAGER, "top": (b"q",), "htop": (b"q",),
    **dict.fromkeys(("vi", "vim", "view", "ex", "nvim", "nvi", "vimdiff", "rvim", "rview", "elvis"), _VI),
    "nano": _NANO, "rnano": _NANO, "pico": _NANO,
}  # fmt: skip

GRACE_SECONDS: Final = 2.0
RETRY_SECONDS: Final = 0.1
# For what comes after a key that is not meant to be the last.
STEP_SECONDS: Final = 0.3
SIGNAL_KEYS: Final = {"INT": b"\x03", "QUIT": b"\x1c"}
SIGNALS: Final = ("INT", "QUIT", "TERM", "KILL")
# How often a HUP is sent again to a shell that is still there, and after how long.
HANG_UPS: Final = 3
HANG_UP_SECONDS: Final = 0.1
# How long the end of a shell that was killed may take to be recorded.
KILLED_SECONDS: Final = 5.0
KILLS: Final = ("HUP", "INT", "QUIT", "TERM", "KILL")


async def ended_within(conversation: Conversation, seconds: float, *, program: bool = False) -> bool:
    """Return whether what runs is over (a prompt, or no shell any more) within some time.

    `program`: a program had the terminal, so the shell that has it again shows the end where the record cannot.
    """
    return await _within(conversation, seconds, (ShellState.IDLE, ShellState.EXITED), program=program)


async def _exited_within(conversation: Conversation, seconds: float) -> bool:
    """Return whether the shell has ended within some time."""
    return await _within(conversation, seconds, (ShellState.EXITED,), program=False)


async def _within(
    conversation: Conversation, seconds: float, states: tuple[ShellState, ...], *, program: bool
) -> bool:  # fmt: skip
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        conversation.live.pump()
        if conversation.live.state.shell in states:
            return True
        left = deadline - loop.time()
        full = conversation.live.problem is not None
        if left <= 0 or full:
            # Without room the record does not say what has happened; the terminal does.
            sample = await conversation.host.inspect(conversation.id)
            if sample.storage is not None and (not sample.live or (program and sample.foreground == "shell")):
                return True
        if left <= 0:
            return False
        await conversation.live.changed(min(left, RETRY_SECONDS) if full else left)


async def hang_up(conversation: Conversation) -> None:
    """See that a shell that was told HUP ends, unless it does not want to; raises Exited.

    bash forgets one that comes while it draws its prompt: 1 in 50, right after the prompt came.
    """
    for _ in range(HANG_UPS):
        if await _exited_within(conversation, HANG_UP_SECONDS):
            return
        await conversation.host.signal(conversation.id, "HUP", target="shell", epoch=conversation.epoch)


async def end_session(conversation: Conversation) -> DoneResult:
    """End the active session the gentlest way that works; only a new shell, the last of them, loses its variables."""
    how = await _leave(conversation)
    if how is None and conversation.live.state.shell is ShellState.RUNNING:
        await conversation.type(b"\x03", "engine")
        how = "ctrl_c" if await ended_within(conversation, GRACE_SECONDS / 2, program=True) else None
    how = how or await _signals(conversation, "KILL", GRACE_SECONDS / 2, spare_shell=True)
    if how is None:
        await conversation.reset()
        how = "reset"
    return DoneResult(conversation.cursor, how=how)


async def _leave(conversation: Conversation) -> str | None:
    """Type what ends the program that reads the terminal, then the one that had started it, and so on.

    Returns `exit` or `quit` when that ended the session, by what ended the last of them. Into a program that does not
    read nothing is typed: the shell would read it afterwards.
    """
    typed: dict[str, int] = {}
    while True:
        sample = await conversation.host.inspect(conversation.id, programs=True)
        if not sample.live or sample.foreground != "child":
            return None
        name, steps = _farewell(sample)
        step = typed.get(name, 0)
        if step == len(steps):
            return None
        typed[name] = step + 1
        try:
            await conversation.type(steps[step], "engine")
        except StorageFull:
            return None
        if await ended_within(conversation, GRACE_SECONDS if step + 1 == len(steps) else STEP_SECONDS):
            return "exit" if name in LINES else "quit"


def _farewell(sample: Inspected) -> tuple[str, tuple[bytes, ...]]:
    """Return which program of the foreground is to be typed to, and what; no bytes for none."""
    raw = sample.icanon is False
    names = [_plain(name) for name in sample.programs or (sample.foreground_name or "",)]
    if raw:
        # A pager has its keyboard to itself, wherever it stands in a pipeline.
        for name in reversed(names):
            if name in KEYS:
                return name, KEYS[name]
    # A shell or interpreter that has started another program waits for it.
    if raw or sample.reads:
        return names[-1], LINES.get(names[-1], ())
    return names[-1], ()


def _plain(name: str) -> str:
    """Return a program's name without the dash of a login shell and without a version (`vim.basic`, `python3.11`)."""
    name = name.lstrip("-")
    if name in LINES or name in KEYS:
        return name
    return name.split(".")[0] if name.startswith("vi") else name.rstrip("0123456789.")


async def interrupt(conversation: Conversation, up_to: str, grace_ms: int) -> DoneResult:
    """Send signals to the foreground group in order, until it is over or `up_to` has been sent.

    Behind ssh or in a container keys stand for them, of which there are two: Ctrl-C and Ctrl-backslash.
    """
    up_to = signal_name(up_to, SIGNALS)
    if conversation.live.state.block is None and conversation.live.state.submission is None:
        return DoneResult(conversation.cursor, how="nothing_runs")
    await conversation.live.begun(BEGIN_SECONDS)
    return DoneResult(conversation.cursor, how=await _signals(conversation, up_to, grace_ms / 1000) or "running")


async def _signals(
    conversation: Conversation, up_to: str, grace: float, *, spare_shell: bool = False
) -> str | None:  # fmt: skip
    """Send signals to the foreground group in order; return the one that ended what runs, or None.

    With `spare_shell` the shell itself gets SIGINT only: of SIGKILL it would die.
    """
    far = conversation.live.state.offers("nofs")
    for name in SIGNALS[: SIGNALS.index(up_to) + 1]:
        if far and name not in SIGNAL_KEYS:
            # What has the terminal here is the way to the program, and would be all that such a signal ends.
            return None
        if spare_shell and name != "INT":
            sample = await conversation.host.inspect(conversation.id)
            if sample.live and sample.foreground == "shell":
                return None
        conversation.note({"type": "interrupt", "signal": f"SIG{name}"})
        if await _signalled(conversation, name, grace):
            return f"SIG{name}"
    return None


def signal_name(name: str, known: tuple[str, ...]) -> str:
    """Return the name of a known signal as the host knows it (`TERM` of `SIGTERM` or `term`); raises BadRequest."""
    plain = name.upper().removeprefix("SIG")
    if plain not in known:
        raise BadRequest(f"no signal {name[:20]!r} here", hint=f"one of {', '.join(known)}")
    return plain


async def kill(conversation: Conversation, signal: str) -> DoneResult:
    """Send a signal to the foreground program and the shell; TERM is followed by HUP and KILL while the shell runs.

    `how` is the signal that ended the shell, or "running".
    """
    for name in ("TERM", "HUP", "KILL") if signal == "TERM" else (signal,):
        # What the shell draws because of it is not output.
        conversation.note({"type": "interrupt", "signal": f"SIG{name}"})
        try:
            sample = await conversation.host.inspect(conversation.id)
            await conversation.host.signal(conversation.id, name, target="foreground", epoch=conversation.epoch)
            if sample.foreground != "shell":
                await conversation.host.signal(conversation.id, name, target="shell", epoch=conversation.epoch)
            if name == "TERM":
                await ended_within(conversation, GRACE_SECONDS / 2)
            elif name == "HUP":
                await hang_up(conversation)
        except Exited:
            conversation.live.pump()
        if await _exited_within(conversation, KILLED_SECONDS if name == "KILL" else HANG_UP_SECONDS):
            return DoneResult(conversation.cursor, how=name)
    return DoneResult(conversation.cursor, how="running")


async def _signalled(conversation: Conversation, name: str, grace: float) -> bool:
    """Signal the foreground group and return whether that ended it in time.

    A shell that is about to start a program takes the signal for itself and may drop it (measured in bash 5.2 and
    zsh 5.9). So as long as it went to the shell it is sent again; a program gets it once, it may count.
    """
    if conversation.live.state.offers("nofs"):
        # ssh passes a key on to the program; a signal would end ssh.
        await conversation.type(SIGNAL_KEYS[name], "engine")
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
            return await ended_within(conversation, left, program=program)
        if await ended_within(conversation, RETRY_SECONDS):
            return True


async def end_shell(conversation: Conversation, *, leave: bool = False) -> list[dict[str, Any]]:
    """End the shell, if it runs, and all of its session; without `leave` also what has left the session.

    Returns what had left it, as `CloseResult.outside`.
    """
    conversation.live.pump()
    outside: list[dict[str, Any]] = []
    try:
        outside = (await conversation.host.close(conversation.id, leave=leave, epoch=conversation.epoch)).outside
    except (Exited, NotFound):
        # It had ended already, and so had all of its session.
        conversation.live.pump()
    await conversation.live.drain()
    return outside
