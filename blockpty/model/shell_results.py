"""Results about a shell: opened, its state, closed."""

from __future__ import annotations

from typing import Any

from msgspec import field

from blockpty.model.result import Result


class OpenResult(Result, frozen=True):
    """A conversation is open; `shell_id` names this shell instance inside it."""

    conversation_id: str
    shell_id: str
    pid: int
    cursor: int
    mode: str


class StatusResult(Result, frozen=True):
    """State of a conversation's shell and terminal.

    Attributes:
        mode: `starting`, `idle`, `block_running`, `interactive` or `exited`.
        tty: `at_prompt`, `running`, `reads_line`, `password`, `raw`, `alt_screen`, `incomplete_input`, or None when
            there is no terminal any more.
        integrity: `ok` when blocks and exit statuses are exact, else `degraded`; integrity_reason says why.
        transport: how the host moves bytes: `splice` (a killed recorder loses nothing) or `read`.
        exit: {"status", "signal"} of the ended shell, else None; with "reason" `connection_lost` when the way to a far
            shell broke, and what ran there may run on.
        lost: why it is not known how the shell ended: `host_gone` (every process that held its terminal was killed) or
            `machine_restarted`; None when it is known, or it runs.
        nested: {"program", "evidence"} while another shell, a remote or an interpreter has the terminal inside the
            running block; evidence `foreground`: by its process, `marks`: the block has printed our marks as a shell
            does that inherited our prompts, `hints`: it has printed an OSC 133;A, as at a prompt.
        next_seq: number that the next event will have, to follow `events` from here.
        control: `agent`, `user` (a person has it alone) or `shared`; control_by: that person; control_since: ms since
            1970, None when it has never changed.
        halted: who halted agents, here or in all conversations; None when they may type.
        sandbox: what holds around the shell: {"profile", "method", "network", "writable", "hidden", "not_held"}; None
            without a sandbox.
        source: `shell`, or what `open` was given: `exec:...`, `ssh:...`, `tmux:...`, `container:...`.
        connection: of an ssh source with `resume`, what the connection does: {"state", "reason", "connections"}; state
            `up`, `lost` (it is made again by itself; the shell over there runs on) or `plain` (neither blockpty nor
            tmux is installed there, so it is an ssh like any other); reason says why it is not up, or that a tmux keeps
            the shell; connections how many there were. None for all else.
    """

    conversation_id: str
    mode: str
    tty: str | None
    integrity: str
    integrity_reason: str | None
    active_session_id: str | None
    active_block_id: str | None
    shell_id: str
    shell: str
    pid: int | None
    cursor: int
    cols: int
    rows: int
    cwd: str | None
    control: str
    foreground: str | None
    transport: str | None
    owner: bool
    exit: dict[str, Any] | None
    nested: dict[str, Any] | None = None
    next_seq: int = 0
    lost: str | None = None
    control_by: str | None = None
    control_since: int | None = None
    halted: str | None = None
    sandbox: dict[str, Any] | None = None
    source: str = "shell"
    connection: dict[str, Any] | None = None


class DoneResult(Result, frozen=True):
    """Something was done; `how` says in one word or two what it took, where there are several ways."""

    cursor: int
    how: str | None = None


class ScrollbackResult(Result, frozen=True):
    """Number of lines above the screen that can be requested."""

    cursor: int
    scrollback_lines: int


class CloseResult(Result, frozen=True):
    """The shell is gone; the transcript stays.

    Attributes:
        exit: how it ended, as in `status`.
        outside: `pid`, `command` and `ended` of each process that had left the shell's session (a daemon); with
            `ended` false it runs on.
    """

    cursor: int
    exit: dict[str, Any] | None
    outside: list[dict[str, Any]] = field(default_factory=list)
