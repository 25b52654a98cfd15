"""Interruption of what has the terminal: sessions and programs, each with a wait for the prompt instead of a guess."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from blockpty.engine.machine_state import MachineState
from blockpty.engine.outcome import is_whole
from blockpty.engine.states import ShellState
from blockpty.errors import BadRequest, Exited, NotFound, StorageFull
from blockpty.host.shells import clear_keys
from blockpty.model.results import DoneResult
from blockpty.runtime.sessions import lost_its_prompt, wait_for_begin

if TYPE_CHECKING:
    from blockpty.host.client import Inspected
    from blockpty.runtime.channel import ConversationChannel

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
# How old a command may be whose program may not have started yet, how long it gets, and how a terminal shows Ctrl-C.
STARTS_MS: Final = 100
DROPPED_SECONDS: Final = 0.3
ECHO: Final = b"^C"
SIGNAL_KEYS: Final = {"INT": b"\x03", "QUIT": b"\x1c"}
SIGNALS: Final = ("INT", "QUIT", "TERM", "KILL")
# How often a HUP is sent again to a shell that is still there, and after how long.
HANG_UPS: Final = 3
HANG_UP_SECONDS: Final = 0.1
# How long the end of a shell that was killed may take to be recorded.
KILLED_SECONDS: Final = 5.0
KILLS: Final = ("HUP", "INT", "QUIT", "TERM", "KILL")


async def ended_within(channel: ConversationChannel, seconds: float, *, program: bool = False) -> bool:
    """Return whether what runs is over (a prompt, or no shell any more) within some time.

    `program`: a program had the terminal, so the shell that has it again shows the end where the record cannot.
    """
    return await _within(channel, seconds, _is_over, program=program)


async def _exited_within(channel: ConversationChannel, seconds: float) -> bool:
    """Return whether the shell has ended within some time."""
    return await _within(channel, seconds, lambda state: state.shell is ShellState.EXITED, program=False)


def _is_over(state: MachineState) -> bool:
    """Return whether nothing runs: there is a prompt, or no shell any more.

    What a program left unread is on the command line by the time the prompt is read from the record.
    """
    if state.shell is ShellState.EDITING:
        return state.block is None and state.submission is None
    return state.shell in (ShellState.IDLE, ShellState.EXITED)


async def _within(
    channel: ConversationChannel, seconds: float, holds: Callable[[MachineState], bool], *, program: bool
) -> bool:  # fmt: skip
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        channel.live.pump()
        if holds(channel.live.state):
            return True
        left = deadline - loop.time()
        full = channel.live.deriver.problem is not None
        if left <= 0 or full:
            # Without room the record does not say what has happened; the terminal does.
            sample = await channel.host.inspect(channel.id)
            if sample.storage is not None and (not sample.live or (program and sample.foreground == "shell")):
                return True
        if left <= 0:
            return False
        await channel.live.subscribers.changed(min(left, RETRY_SECONDS) if full else left)


async def hang_up(channel: ConversationChannel) -> None:
    """See that a shell that was sent HUP ends, unless it ignores it; raises Exited.

    bash forgets one that comes while it draws its prompt: 1 in 50, right after the prompt came.
    """
    for _ in range(HANG_UPS):
        if await _exited_within(channel, HANG_UP_SECONDS):
            return
        await channel.host.signal(channel.id, "HUP", target="shell", epoch=channel.epoch)


async def end_session(channel: ConversationChannel, reset: Callable[[], Awaitable[object]]) -> DoneResult:
    """End the active session the gentlest way that works; only `reset`, the last of them, loses the variables.

    Where the session is all that there is (a program without a shell, a pane), nothing is started in its place.
    """
    source, block = channel.live.state.source, channel.live.state.block
    whole = block is not None and is_whole(source, block)
    how = await _leave(channel, whole=whole)
    if how is None and channel.live.state.shell is ShellState.RUNNING:
        await channel.type(b"\x03", "engine")
        how = "ctrl_c" if await ended_within(channel, GRACE_SECONDS / 2, program=True) else None
    how = how or await _signals(channel, "KILL", GRACE_SECONDS / 2, spare_shell=not whole)
    if how is None and whole:
        how = "running"
    if how is None:
        await reset()
        how = "reset"
    return DoneResult(channel.cursor, how=how)


async def _leave(channel: ConversationChannel, *, whole: bool) -> str | None:
    """Type what ends the program that reads the terminal, then the one that had started it, and so on.

    Returns `exit` or `quit` when that ended the session, by what ended the last of them. Into a program that does not
    read nothing is typed: the shell would read it afterwards.
    """
    typed: dict[str, int] = {}
    while True:
        sample = await channel.host.inspect(channel.id, programs=True)
        if not sample.live or (sample.foreground != "child" and not whole):
            return None
        name, steps = _farewell(sample)
        step = typed.get(name, 0)
        if step == len(steps):
            return None
        typed[name] = step + 1
        try:
            await channel.type(steps[step], "engine")
        except StorageFull:
            return None
        if await ended_within(channel, GRACE_SECONDS if step + 1 == len(steps) else STEP_SECONDS):
            return "exit" if name in LINES else "quit"


def _farewell(sample: Inspected) -> tuple[str, tuple[bytes, ...]]:
    """Return which program of the foreground is to be typed to, and what; no bytes for none."""
    raw = sample.icanon is False
    names = [plain_name(name) for name in sample.programs or (sample.foreground_name or "",)]
    if raw:
        # A pager has its keyboard to itself, wherever it stands in a pipeline.
        for name in reversed(names):
            if name in KEYS:
                return name, KEYS[name]
    # A shell or interpreter that has started another program waits for it.
    if raw or sample.reads:
        return names[-1], LINES.get(names[-1], ())
    return names[-1], ()


def plain_name(name: str) -> str:
    """Return a program's name without the dash of a login shell and without a version (`vim.basic`, `python3.11`)."""
    name = name.lstrip("-")
    if name in LINES or name in KEYS:
        return name
    return name.split(".")[0] if name.startswith("vi") else name.rstrip("0123456789.")


async def interrupt(channel: ConversationChannel, up_to: str, grace_ms: int) -> DoneResult:
    """Send signals to the foreground group in order, until it is over or `up_to` has been sent.

    Behind ssh or in a container keys stand for them, of which there are two: Ctrl-C and Ctrl-backslash.
    """
    up_to = signal_name(up_to, SIGNALS)
    if channel.live.state.block is None and channel.live.state.submission is None:
        return DoneResult(channel.cursor, how="nothing_runs")
    await wait_for_begin(channel.live)
    return DoneResult(channel.cursor, how=await _signals(channel, up_to, grace_ms / 1000) or "running")


async def _signals(
    channel: ConversationChannel, up_to: str, grace: float, *, spare_shell: bool = False
) -> str | None:  # fmt: skip
    """Send signals to the foreground group in order; return the one that ended what runs, or None.

    With `spare_shell` the shell itself gets SIGINT only: of SIGKILL it would die.
    """
    far = _is_far(channel.live.state)
    for name in SIGNALS[: SIGNALS.index(up_to) + 1]:
        if far and name not in SIGNAL_KEYS:
            # What has the terminal here is the way to the program, and would be all that such a signal ends.
            return None
        if spare_shell and name != "INT":
            sample = await channel.host.inspect(channel.id)
            if sample.live and sample.foreground == "shell":
                return None
        channel.note({"type": "interrupt", "signal": f"SIG{name}"})
        if await _signalled(channel, name, grace):
            return f"SIG{name}"
        if await _reads_a_command(channel, grace):
            return f"SIG{name}"
    return None


async def _reads_a_command(channel: ConversationChannel, grace: float) -> bool:
    """Return whether the shell waits at a prompt that it has not marked; the next signal would only end the shell."""
    state = channel.live.state
    if state.hooks_lost:
        # A program that runs in such a shell leaves no marks either.
        sample = await channel.host.inspect(channel.id)
        return sample.foreground == "shell" and sample.icanon is False
    if not lost_its_prompt(state, signalled=True):
        return False
    try:
        await channel.type(clear_keys(state.current.name), "engine")
    except StorageFull:
        return False
    return await ended_within(channel, grace)


def _is_far(state: MachineState) -> bool:
    """Whether the program is elsewhere, so that what has our terminal is only the way to it."""
    return not state.current.sees_files or (state.source is not None and state.source["kind"] != "exec")


def signal_name(name: str, known: tuple[str, ...]) -> str:
    """Return the name of a known signal as the host knows it (`TERM` of `SIGTERM` or `term`); raises BadRequest."""
    plain = name.upper().removeprefix("SIG")
    if plain not in known:
        raise BadRequest(f"no signal {name[:20]!r} here", hint=f"one of {', '.join(known)}")
    return plain


async def kill(channel: ConversationChannel, signal: str) -> DoneResult:
    """Send a signal to the foreground program and the shell; TERM is followed by HUP and KILL while the shell runs.

    `how` is the signal that ended the shell, or "running".
    """
    for name in ("TERM", "HUP", "KILL") if signal == "TERM" else (signal,):
        # What the shell draws because of it is not output.
        channel.note({"type": "interrupt", "signal": f"SIG{name}"})
        try:
            sample = await channel.host.inspect(channel.id)
            await channel.host.signal(channel.id, name, target="foreground", epoch=channel.epoch)
            if sample.foreground != "shell":
                await channel.host.signal(channel.id, name, target="shell", epoch=channel.epoch)
            if name == "TERM":
                await ended_within(channel, GRACE_SECONDS / 2)
            elif name == "HUP":
                await hang_up(channel)
        except Exited:
            channel.live.pump()
        if await _exited_within(channel, KILLED_SECONDS if name == "KILL" else HANG_UP_SECONDS):
            return DoneResult(channel.cursor, how=name)
    return DoneResult(channel.cursor, how="running")


async def _signalled(channel: ConversationChannel, name: str, grace: float) -> bool:
    """Signal the foreground group and return whether that ended it in time.

    A shell that is about to start a program takes the signal for itself and may drop it (measured in bash 5.2 and
    zsh 5.9). So as long as it went to the shell it is sent again; a program gets it once, it may count.
    """
    if _is_far(channel.live.state):
        return await _press_key(channel, name, grace)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace
    while True:
        sample = await channel.host.inspect(channel.id)
        await channel.host.signal(channel.id, name, target="foreground", epoch=channel.epoch)
        left = deadline - loop.time()
        # A child that has not executed its program yet is the shell under another number.
        program = sample.foreground != "shell" and sample.foreground_name != channel.live.state.current.name
        # Behind END only the prompt is due, and fish that is interrupted while it makes one shows none.
        over = channel.live.state.shell is ShellState.RETURNING
        if program or over or left <= RETRY_SECONDS:
            return await ended_within(channel, left, program=program)
        if await ended_within(channel, RETRY_SECONDS):
            return True


async def _press_key(channel: ConversationChannel, name: str, grace: float) -> bool:
    """Press the key that stands for a signal, and return whether that ended the program in time.

    ssh passes a key on; a signal would end ssh. Of a Ctrl-C that comes when the far shell is about to start its program
    only the echo comes back: the shell has dropped it. So for a command that has just begun it is typed once more.
    """
    loop, live = asyncio.get_running_loop(), channel.live
    deadline = loop.time() + grace
    block = live.state.block
    starts = name == "INT" and block is not None and time.time() * 1000 - block.ts_begin < STARTS_MS
    begin = channel.cursor
    await channel.type(SIGNAL_KEYS[name], "engine")
    if starts:
        if await ended_within(channel, min(DROPPED_SECONDS, grace)):
            return True
        if live.stream.read(begin, len(ECHO) + 1) == ECHO:
            await channel.type(SIGNAL_KEYS[name], "engine")
    return await ended_within(channel, max(0, deadline - loop.time()))


async def end_shell(channel: ConversationChannel, *, leave: bool = False) -> list[dict[str, Any]]:
    """End the shell, if it runs, and all of its session; without `leave` also what has left the session.

    Returns what had left it, as `CloseResult.outside`.
    """
    channel.live.pump()
    outside: list[dict[str, Any]] = []
    try:
        outside = (await channel.host.close(channel.id, leave=leave, epoch=channel.epoch)).outside
    except (Exited, NotFound):
        # It had ended already, and so had all of its session.
        channel.live.pump()
    await channel.live.drain()
    return outside
