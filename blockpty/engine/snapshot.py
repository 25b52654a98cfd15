"""What the machine remembers between two bytes: small, copyable, JSON-compatible, so parsing can resume anywhere."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from blockpty.engine.states import ShellState


@dataclass(slots=True)
class OpenBlock:
    """A block that has begun and not been closed; see `blockpty.model.block.Block` for the fields they share.

    `incomplete`: its text is one that the shell found incomplete, so it can only be rejected.
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

    @property
    def block_id(self) -> str:
        """The name of the block inside its conversation."""
        return f"b{self.seq}"


OPENED: Final = 8
"""Blocks that requests opened and that are remembered."""
LEVEL: Final = (
    "nonce", "identity", "features", "shell_name", "shell_version", "prompt_only", "seq", "count", "prompt", "begins",
    "cwd", "cwd_b64", "integrity_reason",
)  # fmt: skip
"""What belongs to one shell and comes back when the shell that was entered from it has ended."""


@dataclass(slots=True)
class MachineState:
    """Everything that decides what the next byte or entry means.

    Attributes:
        classified: stream offset up to which bytes are text or mark.
        ts: time of the last entry.
        next_event, next_block: numbers to give out next.
        shell: where the shell is.
        pid: the process that the host started; identity: what the shell calls itself in its marks, "" until it has
            said so; features, shell_version: what it said about itself, "" before that.
        outer: the shells that this one was entered from, the nearest last: what `LEVEL` names of each.
        seq, count, prompt: numbers of the last accepted marks.
        begins: whether the shell said at its last prompt that the next command will have a BEGIN.
        prompt_only: whether this shell can mark nothing but its prompt, so that no BEGIN ever comes.
        submission: the submit object of a command that has not begun, with `ts` and `author`.
        cmd_pieces, told: the command's text as the shell reports it, piece by piece and whole; None when it has not.
        drawn, column: what bash printed since its last END or for its command line, and where its prompt ended.
        entered: the lines of an incomplete command that was typed.
        hidden: whether some of it was typed with echo off in line mode, as a secret is.
        submitted_at, echoed: where that command was typed and what came back before its BEGIN (at most 4 KiB).
        line_end: where the line that our key loaded ended on the screen; None before that.
        opening, prologue: begin and end of the BEGIN of such a line in fish and whether its terminal is a dumb one,
            while the shell itself still prints behind it, and what has come of that.
        block: the open block.
        background: the open block of what comes at an idle prompt, or after the shell's end; never beside `block`.
        settled: from here on text is background output; None while the shell may still draw.
        unasked: the first bytes of that text, while none of it can be seen.
        raised, rising: how many lines that text has gone up and not yet come down, at most the screen's; the beginning
            of a sequence that goes up, where its end has not come.
        last_opened: (request, number, time) of the last blocks that requests opened, at most `OPENED`; other lines may
            have followed them before anybody looked.
        wait_cursor: where the next wait begins unless told: after the last one, or at the last submission.
        hints: how many hints the running block has printed that were told.
        nested: what its output says of another shell in it: "marks" (ours, as such a shell writes them), "hints" (a
        prompt of its own); None when nothing does.
        out_end: where zsh said that the output ended.
        region: what the bytes are now: "output" of a block, "idle" (background output at a prompt) or None (prompt,
        echo).
        delta_begin, delta_ts: what of the output has no delta yet, and when the last one was cut.
        inputs: typed since the last silence: (offset, bytes, echo, canonical); their echo may still come.
        tty: the terminal's modes at the last silence.
        prompt_depth: how deep in its stack the shell waited at its last prompt; None when that is not known.
        fed, shown: the end of what was typed into a program, until the prompt after it has been silent, and what was
            drawn there.
        pictures: whether the record has events that speak of the screen, since an owner said so.
        alternate, switching: whether the alternate screen is shown, and the beginning of a sequence that may say so.
        dirty: whether something is typed at this prompt that may still stand on its line.
        owed: how many prompts were taken for granted and may still be drawn.
        boot, system: which start of the machine the shell was started in, and the machine's `sys.platform`.
        integrity_reason: why borders are less than certain; None when all is well.
    """

    classified: int = 0
    ts: int = 0
    next_event: int = 0
    next_block: int = 1
    shell: ShellState = ShellState.STARTING
    shell_name: str = ""
    shell_version: str = ""
    hooked: bool = True
    instance: int = 0
    nonce: str = ""
    pid: str = ""
    identity: str = ""
    features: str = ""
    outer: list[dict[str, Any]] = field(default_factory=list)
    seq: int = 0
    count: int = 0
    prompt: int = 0
    begins: bool = True
    prompt_only: bool = False
    exit_status: int | None = None
    cwd: str | None = None
    cwd_b64: str | None = None
    cwd_pieces: list[str] = field(default_factory=list)
    cmd_pieces: list[str] = field(default_factory=list)
    told: str | None = None
    drawn: bytes = b""
    column: int = 0
    entered: list[str] = field(default_factory=list)
    hidden: bool = False
    submission: dict[str, Any] | None = None
    submitted_at: int = 0
    echoed: bytes = b""
    line_end: int | None = None
    opening: tuple[int, int, bool] | None = None
    prologue: bytes = b""
    block: OpenBlock | None = None
    background: OpenBlock | None = None
    settled: int | None = None
    unasked: bytes = b""
    raised: int = 0
    rising: bytes = b""
    last_opened: tuple[tuple[str, int, int], ...] = ()
    wait_cursor: int = 0
    hints: int = 0
    nested: str | None = None
    out_end: int | None = None
    region: str | None = None
    delta_begin: int | None = None
    delta_ts: int = 0
    inputs: list[tuple[int, bytes, bool, bool]] = field(default_factory=list)
    fed: bytes = b""
    shown: bytes = b""
    dirty: bool = False
    owed: int = 0
    incomplete: bool = False
    interrupted: bool = False
    session_over: bool = False
    hooks_lost: bool = False
    integrity_reason: str | None = None
    tty: dict[str, Any] | None = None
    prompt_depth: int | None = None
    size: tuple[int, int] = (80, 24)
    exit: dict[str, Any] | None = None
    eof: bool = False
    boot: str = ""
    system: str = "linux"
    pictures: bool = False
    alternate: bool = False
    switching: bytes = b""

    def offers(self, feature: str) -> bool:
        """Return whether the shell has said this of itself in its HELLO."""
        return feature in self.features.split(",")

    def opened_by(self, request: str) -> tuple[int, int] | None:
        """Return number and time of the block that a request opened; None when none did, or long ago."""
        return next(((seq, ts) for opened, seq, ts in reversed(self.last_opened) if opened == request), None)

    def copy(self) -> MachineState:
        """Return a copy that shares nothing mutable."""
        twin = object.__new__(MachineState)
        for name in _NAMES:
            setattr(twin, name, getattr(self, name))
        twin.block, twin.background = copy.copy(self.block), copy.copy(self.background)
        twin.inputs = list(self.inputs)
        twin.outer = list(self.outer)
        return twin

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, for a checkpoint; it does not change with the state."""
        # `asdict` takes five times as long, and this is done for every conversation that prints, every second.
        record: dict[str, Any] = {}
        for name in _NAMES:
            value = getattr(self, name)
            record[name] = value.copy() if isinstance(value, (list, dict)) else value
        for name in ("block", "background"):
            record[name] = asdict(record[name]) if record[name] is not None else None
        record["shell"] = self.shell.value
        for name in _BYTES:
            record[name] = getattr(self, name).decode("latin-1")
        record["inputs"] = [[at, data.decode("latin-1"), echo, icanon] for at, data, echo, icanon in self.inputs]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> MachineState:
        """Rebuild a state; raises KeyError, TypeError or ValueError when the record is not one of this version."""
        known = {name: record[name] for name in cls.__dataclass_fields__ if name in record or name not in _LATER}
        known["shell"] = ShellState(record["shell"])
        for name in _BYTES:
            known[name] = str(record.get(name, "") if name in _LATER else record[name]).encode("latin-1")
        known["inputs"] = [(at, data.encode("latin-1"), echo, icanon) for at, data, echo, icanon in record["inputs"]]
        for name in ("block", "background"):
            known[name] = OpenBlock(**record[name]) if record[name] is not None else None
        known["size"] = tuple(record["size"])
        known["opening"] = tuple(record["opening"]) if record.get("opening") is not None else None
        known["last_opened"] = tuple((request, seq, ts) for request, seq, ts in record["last_opened"])
        return cls(**known)


_BYTES = ("echoed", "prologue", "drawn", "fed", "shown", "unasked", "rising", "switching")
# What the beginning of a record that was cut by an older version does not have.
_LATER = frozenset({
    "pictures", "alternate", "switching", "system", "line_end", "opening", "prologue", "raised", "rising",
    "prompt_depth",
})  # fmt: skip

# Copying by name takes a fifth of the time that the module copy needs, and a copy is made at every prompt.
_NAMES = tuple(MachineState.__dataclass_fields__)
