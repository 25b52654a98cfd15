"""Public names of a machine's state: modes and terminal states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from blockpty.control.state import AGENT, ControlState
from blockpty.engine.machine_state import MachineState, asks_password
from blockpty.engine.states import ShellState
from blockpty.model.results import StatusResult
from blockpty.spool.stream import StreamReader

if TYPE_CHECKING:
    from blockpty.host.client import Inspected
    from blockpty.runtime.controlled import ControlledTerminal

# How far back in the output the modes of a program are looked for.
MODES_WINDOW: Final = 1024 * 1024
ALTERNATE_SCREENS: Final = frozenset({47, 1047, 1049})

# Programs that run commands of their own: shells, those that start one as another user or elsewhere, interpreters.
NESTING: Final = frozenset(
    {
        "bash", "zsh", "fish", "sh", "dash", "ash", "ksh", "mksh", "busybox", "tcsh", "csh", "pwsh", "nu",
        "su", "sudo", "doas", "login", "ssh", "mosh", "mosh-client", "telnet", "docker", "podman", "kubectl",
        "nsenter", "lxc", "chroot", "screen", "tmux", "python", "ipython", "node", "irb", "ruby", "perl",
        "lua", "psql", "sqlite3", "mysql", "gdb",
    }
)  # fmt: skip

_PRIVATE_MODE: Final = re.compile(rb"\x1b\[\?([0-9;]{1,64})([hl])")


def is_session(state: MachineState) -> bool:
    """Whether what runs, or was just submitted, is an interactive session."""
    if state.block is not None:
        return state.block.kind == "session"
    return state.submission is not None and state.submission.get("kind") == "session"


def mode_of(state: MachineState) -> str:
    """Return `starting`, `idle`, `block_running`, `interactive` or `exited`."""
    if state.shell is ShellState.EXITED:
        return "exited"
    if state.shell is ShellState.STARTING:
        return "starting"
    if state.block is not None or state.submission is not None:
        return "interactive" if is_session(state) else "block_running"
    return "block_running" if state.shell is ShellState.RUNNING else "idle"


def private_modes(stream: StreamReader, begin: int, end: int) -> frozenset[int]:
    """Return the private modes (DECSET) that are on at `end`, from what the program has printed since `begin`."""
    on: set[int] = set()
    begin = min(end, max(begin, stream.begin))
    tail = stream.read(max(begin, end - MODES_WINDOW), min(MODES_WINDOW, end - begin))
    for found in _PRIVATE_MODE.finditer(tail):
        for number in (int(part) for part in found.group(1).split(b";") if part):
            (on.add if found.group(2) == b"h" else on.discard)(number)
    return frozenset(on)


async def inspect_in_step(channel: ControlledTerminal) -> Inspected:
    """Return a look at the terminal that is not older than what is known of the shell then.

    A command that begins while the answer is on its way would seem to have set the modes of the shell's own editor.
    """
    state = channel.live.state
    channel.live.pump()
    while True:
        known = state.shell, state.next_block
        seen = await channel.host.inspect(channel.id)
        channel.live.pump()
        if (state.shell, state.next_block) == known:
            return seen


def tty_of(state: MachineState, sample: Mapping[str, Any] | None, modes: frozenset[int] = frozenset()) -> str | None:
    """Return what the terminal is doing, from marks, a sample of its modes and the modes that the program has set."""
    if state.shell is ShellState.EXITED:
        return None
    if state.incomplete and (sample is None or state.wants_more(sample)):
        return "incomplete_input"
    if state.shell in (ShellState.IDLE, ShellState.EDITING):
        return "at_prompt"
    tty = sample or {}
    if asks_password(tty):
        return "password"
    if state.shell is ShellState.RUNNING and modes & ALTERNATE_SCREENS:
        return "alt_screen"
    if tty.get("icanon") is False and state.shell is ShellState.RUNNING:
        return "raw"
    reads = tty.get("icanon") is True and (tty.get("reads") is True or tty.get("wants_input") is True)
    if reads and state.shell in (ShellState.RUNNING, ShellState.STARTING):
        return "reads_line"
    return "running"


def nested_of(
    state: MachineState, foreground: str | None, kind: str | None, *, copy: bool | None = None
) -> dict[str, Any] | None:
    """Return what has taken the terminal inside the running block and may run commands of its own, or None.

    The process says it surely, unless it is a `copy` of the shell itself: a `(...)`, or on its way to a program. What
    the block has printed says it where the process is a wrapper that is not known.
    """
    if state.shell is not ShellState.RUNNING or kind != "child" or foreground is None:
        return None
    name = foreground.lstrip("-")
    if not copy and (name in NESTING or name.rstrip("0123456789.") in NESTING):
        return {"program": name, "evidence": "foreground"}
    if state.block is not None and state.nested is not None:
        return {"program": name, "evidence": state.nested}
    return None


def integrity_of(state: MachineState) -> str:
    """Return `ok` or `degraded`."""
    return "degraded" if state.current.integrity_reason else "ok"


def source_text(state: MachineState) -> str:
    """Return where the bytes come from: `shell`, or what `open` was given as source."""
    return "shell" if state.source is None else f"{state.source['kind']}:{state.source['target']}"


def status_of(
    conversation_id: str,
    state: MachineState,
    tty: str | None,
    *,
    cursor: int,
    foreground: str | None,
    transport: str | None,
    owner: bool,
    nested: dict[str, Any] | None = None,
    control: ControlState = AGENT,
    halted: str | None = None,
    pid: int | None = None,
    sandbox: dict[str, Any] | None = None,
    connection: dict[str, Any] | None = None,
) -> StatusResult:
    """Return the whole status."""
    if pid is None and state.pid.isdigit():
        pid = int(state.pid)
    running = state.block is not None or state.submission is not None
    seq = state.block.seq if state.block is not None else state.next_block
    return StatusResult(
        conversation_id=conversation_id,
        mode=mode_of(state),
        tty=tty,
        integrity=integrity_of(state),
        integrity_reason=state.current.integrity_reason,
        active_session_id=f"s{seq}" if running and is_session(state) else None,
        active_block_id=f"b{seq}" if running else None,
        shell_id=f"{conversation_id}.{state.instance}",
        shell=state.current.name,
        pid=pid if state.shell is not ShellState.EXITED else None,
        cursor=cursor,
        cols=state.size[0],
        rows=state.size[1],
        cwd=state.current.cwd,
        control=control.state,
        foreground=foreground,
        transport=transport,
        owner=owner,
        exit=state.exit,
        nested=nested,
        next_seq=state.next_event,
        lost=state.exit.get("lost") if state.exit is not None else None,
        control_by=control.who,
        control_since=control.since,
        halted=control.halted or halted,
        sandbox=sandbox,
        source=source_text(state),
        connection=connection,
    )
