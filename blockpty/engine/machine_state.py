"""The machine's state between two bytes: small, copyable, JSON-compatible, so parsing can resume anywhere."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from blockpty.engine.alternate import AlternateScreen
from blockpty.engine.authentication import Shell
from blockpty.engine.background import BackgroundText
from blockpty.engine.command_line import CommandLine, UnreadInput
from blockpty.engine.states import ShellState
from blockpty.engine.submission_echo import SubmissionEcho


class OpenBlock(Struct):
    """A block that has begun and not been closed; see `blockpty.model.block.Block` for the fields they share.

    `incomplete`: its text is one that the shell found incomplete, so it can only be rejected. `awaited`: its caller
    waits for its end, and the next wait begins there.
    """

    seq: int
    kind: str
    cmd: str
    cwd: str | None
    cwd_b64: str | None
    ts_begin: int
    begin: int
    author: str
    session_id: str | None
    request: str | None
    state: str = "running"
    parts: int = 1
    ended_at: int | None = None
    ts_end: int | None = None
    exit_status: int | None = None
    signal: str | None = None
    degraded: str | None = None
    incomplete: bool = False
    awaited: bool = False

    @property
    def block_id(self) -> str:
        """The name of the block inside its conversation."""
        return f"b{self.seq}"


OPENED: Final = 8
"""Blocks that requests opened and that are remembered."""

# The end of the output that is kept, to see whether it was a query to the terminal.
TAIL_BYTES: Final = 48


class OutputRegion(Struct):
    """Kind of the bytes that come now.

    Attributes:
        kind: "output" of a block, "idle" (background output at a prompt) or None (prompt, echo).
        delta_begin, delta_ts: what of the output has no delta yet, and when the last one was cut.
        tail: the last bytes that came, since the last input.
    """

    kind: str | None = None
    delta_begin: int | None = None
    delta_ts: int = 0
    tail: bytes = b""

    def keep_tail(self, data: bytes, count: int) -> None:
        """Keep the end of the first `count` bytes: they are classified, so no mark begins in them any more."""
        self.tail = (self.tail + data[max(0, count - TAIL_BYTES) : count])[-TAIL_BYTES:]

    def forget_tail(self) -> None:
        """Input came, so what was printed before it waits for no answer."""
        self.tail = b""


class MachineState(Struct):
    """Everything that decides what the next byte or entry means.

    Each part is changed by the object that it is, or by the one that is named with it.

    Attributes:
        classified: stream offset up to which bytes are text or mark.
        ts: time of the last entry.
        next_event, next_block: numbers to give out next.
        shell: where the shell is; `states.TRANSITIONS` changes it.
        current: the shell that speaks; outer: the shells that it was entered from, the nearest last.
        line: the command line at its prompt; unread: input that a program may not have read.
        submission: the submit object of a command that has not begun, with `ts` and `author`.
        echo: what came back for it.
        block: the open block, and region: what the bytes are now; `BlockBuilder` changes both.
        background: the open block of what comes at an idle prompt, or after the shell's end; never beside `block`.
        unattributed: text at an idle prompt of which no block has been made.
        screen: which screen is shown.
        hooked, instance, pid: of the process that the host started.
        cwd_pieces: the pieces of a directory that is being reported.
        last_opened: (request, number, time) of the last blocks that requests opened, at most `OPENED`; other lines may
            have followed them before any reader looked.
        wait_cursor: where the next wait begins by default: after the last one, at the last submission, or behind the
            prompt of a block whose end was waited for; awaited_over: whether such a block was closed since the last
            prompt.
        hints: how many hints the running block has printed that became events.
        nested: what its output says of another shell in it: "marks" (ours, as such a shell writes them), "hints" (a
        prompt of its own); None when nothing does.
        inputs: typed since the last silence: (offset, bytes, echo, canonical); their echo may still come.
        tty: the terminal's modes at the last silence, and where that was (`at`).
        prompt_depth: how deep in its stack the shell waited at its last prompt; None when that is not known.
        control: what the last note of control said, as `control_of` keeps it; None before there was one.
        requests: the digests of approvals that were asked for and not decided, by id; for a person's input "".
        pictures: whether the record has events that speak of the screen, since an owner said so.
        dirty: whether something is typed at this prompt that may still stand on its line.
        owed: how many prompts were taken for granted and may still be drawn.
        source: what the terminal shows that is no shell of this machine, as the spawn entry says it; None for a shell.
        ending: whether a request has ended that source, so that its end is no accident.
        seam: where the picture of a tmux pane was drawn anew last; None before that.
        offered: the shell that was offered our hooks and has not said HELLO yet, as the note says it; None for none.
        boot, system: which start of the machine the shell was started in, and the machine's `sys.platform`.
    """

    classified: int = 0
    ts: int = 0
    next_event: int = 0
    next_block: int = 1
    shell: ShellState = ShellState.STARTING
    current: Shell = field(default_factory=Shell)
    outer: list[Shell] = field(default_factory=list)
    line: CommandLine = field(default_factory=CommandLine)
    unread: UnreadInput = field(default_factory=UnreadInput)
    submission: dict[str, Any] | None = None
    echo: SubmissionEcho = field(default_factory=SubmissionEcho)
    block: OpenBlock | None = None
    region: OutputRegion = field(default_factory=OutputRegion)
    background: OpenBlock | None = None
    unattributed: BackgroundText = field(default_factory=BackgroundText)
    screen: AlternateScreen = field(default_factory=AlternateScreen)
    hooked: bool = True
    instance: int = 0
    pid: str = ""
    exit_status: int | None = None
    cwd_pieces: list[str] = field(default_factory=list)
    last_opened: tuple[tuple[str, int, int], ...] = ()
    wait_cursor: int = 0
    hints: int = 0
    nested: str | None = None
    inputs: list[tuple[int, bytes, bool, bool]] = field(default_factory=list)
    dirty: bool = False
    owed: int = 0
    incomplete: bool = False
    interrupted: bool = False
    session_over: bool = False
    awaited_over: bool = False
    hooks_lost: bool = False
    tty: dict[str, Any] | None = None
    prompt_depth: int | None = None
    size: tuple[int, int] = (80, 24)
    exit: dict[str, Any] | None = None
    eof: bool = False
    source: dict[str, Any] | None = None
    ending: bool = False
    seam: dict[str, Any] | None = None
    offered: dict[str, Any] | None = None
    boot: str = ""
    system: str = "linux"
    control: dict[str, Any] | None = None
    requests: dict[str, str] = field(default_factory=dict)
    pictures: bool = False

    def opened_by(self, request: str) -> tuple[int, int] | None:
        """Return number and time of the block that a request opened; None when none did, or long ago."""
        for opened, seq, ts in reversed(self.last_opened):
            if opened == request:
                return seq, ts
        return None

    def wants_input(self) -> bool:
        """Whether the program in front waits for input, and has printed nothing since that was seen."""
        tty = self.tty or {}
        # A shell that has not shown its first prompt edits its line in raw mode.
        lines_only = self.shell is not ShellState.RUNNING
        if (lines_only and self.shell is not ShellState.STARTING) or self.classified > tty.get("at", -1):
            return False
        if tty.get("icanon") is True:
            return asks_password(tty) or tty.get("reads") is True or tty.get("wants_input") is True
        if tty.get("wants_input") is not True or lines_only:
            return False
        from blockpty.screen.queries import ends_with_question

        # What it waits for is the terminal's own answer.
        return not ends_with_question(self.region.tail)

    def wants_more(self, tty: Mapping[str, Any] | None) -> bool:
        """Whether the shell waits for the rest of a command: it asked for more, and did not read a line since.

        `tty` is how the terminal was read then. A shell with an editor of its own leaves raw mode when it has a line,
        and may be at work for a while before it asks again or runs the command.
        """
        if not self.incomplete or tty is None or tty.get("busy") is True:
            return False
        # Which program reads is known on Linux only.
        left_editor = self.system == "linux" and tty.get("icanon") is True
        return not left_editor or tty.get("reads") is True or tty.get("wants_input") is True

    def copy(self) -> MachineState:
        """Return a copy that shares nothing mutable."""
        # Not copy.copy: each command takes copies, and the search for the right method costs more than a copy.
        twin: MachineState = replace(self)
        for part in _COPIED:
            value = getattr(self, part)
            if value is not None:
                setattr(twin, part, replace(value))
        twin.inputs = list(self.inputs)
        twin.outer = [replace(shell) for shell in self.outer]
        twin.requests = dict(self.requests)
        return twin

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, for a checkpoint; it does not change with the state."""
        record: dict[str, Any] = {}
        for name in _PLAIN:
            value = getattr(self, name)
            record[name] = value.copy() if isinstance(value, (list, dict)) else value
        for name, stored in _PARTS.items():
            record |= _stored(getattr(self, name), stored)
        for name in ("block", "background"):
            record[name] = asdict(record[name]) if record[name] is not None else None
        record["shell"] = self.shell.value
        record["outer"] = [_stored(shell, _PARTS["current"]) for shell in self.outer]
        record["inputs"] = [[at, data.decode("latin-1"), echo, icanon] for at, data, echo, icanon in self.inputs]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> MachineState:
        """Rebuild a state; raises KeyError, TypeError or ValueError when the record is not one of this version."""
        known = {name: record[name] for name in _PLAIN if name in record or name not in _LATER}
        known["shell"] = ShellState(record["shell"])
        for name, part in _CLASSES.items():
            known[name] = part(**_loaded(record, _PARTS[name]))
        known["outer"] = [Shell(**_loaded(shell, _PARTS["current"])) for shell in record["outer"]]
        known["inputs"] = [(at, data.encode("latin-1"), echo, icanon) for at, data, echo, icanon in record["inputs"]]
        for name in ("block", "background"):
            known[name] = OpenBlock(**record[name]) if record[name] is not None else None
        known["size"] = tuple(record["size"])
        known["last_opened"] = tuple((request, seq, ts) for request, seq, ts in record["last_opened"])
        opening = known["echo"].opening
        known["echo"].opening = tuple(opening) if opening is not None else None
        return cls(**known)


def asks_password(tty: Mapping[str, Any] | None) -> bool:
    """Return whether a program asks for a password: the terminal is read in lines and does not echo.

    A busy program does not ask: it has just turned the echo off, or is about to turn it on again.
    """
    return tty is not None and tty.get("icanon") is True and tty.get("echo") is False and tty.get("busy") is not True


def _stored(part: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a part under the names that they have in a checkpoint."""
    record = {}
    for name, stored in names.items():
        value = getattr(part, name)
        record[stored] = value.decode("latin-1") if isinstance(value, bytes) else copy.copy(value)
    return record


def _loaded(record: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a part that a checkpoint has; raises KeyError where it lacks one that it should have."""
    known = {name: record[stored] for name, stored in names.items() if stored in record or stored not in _LATER}
    return {name: value.encode("latin-1") if names[name] in _BYTES else value for name, value in known.items()}


_CLASSES: Final[dict[str, type[Any]]] = {
    "current": Shell, "line": CommandLine, "unread": UnreadInput, "echo": SubmissionEcho, "region": OutputRegion,
    "unattributed": BackgroundText, "screen": AlternateScreen,
}  # fmt: skip
# A checkpoint has the fields of the parts beside each other, some under older names.
_STORED_AS: Final = {
    "current": {"mark_id": "identity", "name": "shell_name", "version": "shell_version", "names": "shell_names",
                "user": "shell_user", "host": "shell_host"},
    "line": {"pieces": "cmd_pieces", "reported": "told", "lines": "entered"},  # words: on disk
    "echo": {"begin": "submitted_at", "data": "echoed"},
    "region": {"kind": "region"},
    "unattributed": {"undrawn": "unasked"},  # words: on disk
    "screen": {"shown": "alternate", "partial": "switching"},
}
_PARTS: Final[dict[str, dict[str, str]]] = {
    part: {name: _STORED_AS.get(part, {}).get(name, name) for name in of.__struct_fields__}
    for part, of in _CLASSES.items()
}
_COPIED: Final = (*_PARTS, "block", "background")
_BYTES: Final = frozenset({
    "echoed", "prologue", "drawn", "fed", "shown", "rising", "switching", "tail",
    "unasked",  # words: on disk
})  # fmt: skip
# What the beginning of a record that was cut by an older version does not have.
_LATER: Final = frozenset({
    "pictures", "alternate", "switching", "system", "line_end", "opening", "prologue", "raised", "rising",
    "prompt_depth", "awaited_over", "control", "requests", "source", "ending", "tail", "seam", "gap",
    "shell_names", "shell_user", "shell_host", "offered",
})  # fmt: skip

_PLAIN: Final = tuple(name for name in MachineState.__struct_fields__ if name not in _PARTS and name != "outer")
