"""Blocks: one command with its output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from blockpty.model.result import REVIVED
from blockpty.model.shown import preformatted, shortened

BLOCK_KINDS: Final = ("command", "session", "user", "background")
BLOCK_STATES: Final = (
    "running", "ended", "stopped", "rejected", "cancelled", "interrupted", "shell_exited", "lost", "connection_lost",
)  # fmt: skip

# The signals that have one number on Linux and macOS.
_SHARED: Final = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 8: "SIGFPE", 9: "SIGKILL",
    11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 21: "SIGTTIN", 22: "SIGTTOU", 24: "SIGXCPU",
    25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH",
}  # fmt: skip
# A record is read on other machines too, so the numbers stand here and are not asked of the system.
_SIGNALS: Final = {
    "linux": {
        **_SHARED, 7: "SIGBUS", 10: "SIGUSR1", 12: "SIGUSR2", 16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT",
        19: "SIGSTOP", 20: "SIGTSTP", 23: "SIGURG", 29: "SIGIO", 30: "SIGPWR", 31: "SIGSYS",
        34: "SIGRTMIN", **{34 + n: f"SIGRTMIN+{n}" for n in range(1, 30)}, 64: "SIGRTMAX",
    },
    "darwin": {
        **_SHARED, 7: "SIGEMT", 10: "SIGBUS", 12: "SIGSYS", 16: "SIGURG", 17: "SIGSTOP", 18: "SIGTSTP", 19: "SIGCONT",
        20: "SIGCHLD", 23: "SIGIO", 29: "SIGINFO", 30: "SIGUSR1", 31: "SIGUSR2",
    },
}  # fmt: skip
_STOPPING: Final = frozenset({"SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"})


def signal_of(exit_status: int | None, system: str = "linux") -> str | None:
    """Return the name of the signal that a shell reports as 128+n, or None when the status is no such number.

    `system` is the `sys.platform` of the shell's machine. A number that has no name there is given as `SIG<n>`.
    """
    if exit_status is None or not 128 < exit_status < 193:
        return None
    return signal_name(exit_status - 128, system)


def signal_name(number: int, system: str = "linux") -> str:
    """Return the name of a signal, such as SIGUSR1 or SIGRTMIN+2; `SIG<n>` where it has none on this system."""
    return _SIGNALS.get(system, _SHARED).get(number, f"SIG{number}")


def was_stopped(signal: str | None) -> bool:
    """Return whether a signal stops a program, which a shell reports as it reports an end: the job is still there."""
    return signal in _STOPPING


class Block(Struct, frozen=True):
    """One command with its output; the record of `blocks.jsonl`.

    Attributes:
        block_id: unique inside its conversation ("b7").
        seq: number of the block, from 1.
        kind: `command` (exec_block), `session` (exec_interactive), `user` (typed by a person), `background`
            (printed at an idle prompt, or after the shell's end, by no command of the foreground).
        cmd: command text; for kind `user` as the shell reported or showed it, empty where it is not known.
        cwd: working directory when it began, as text; None when unknown.
        cwd_b64: the same, exact bytes in base64.
        ts_begin, ts_end, duration_ms: ms; `ts_end` and `duration_ms` are None while it runs.
        state: one of `BLOCK_STATES`; `stopped`: its program is still there as a job of the shell (Ctrl-Z, SIGSTOP), as
            bash and zsh report it.
        exit_status: 0-255, or None when unknown (never a made-up 0).
        signal: name of the signal when the shell reported 128+n or died of one.
        span: `[begin, end)` of the output in the stream; `end` is None while it runs.
        out_path: the `.out` file, relative to the conversation's directory; out_bytes: its size; while the block
            runs, the length of its output in the stream so far.
        parts: how many BEGIN marks it took (a pasted text of several commands has several).
        author: who submitted it (`agent`, `user`, `engine`).
        session_id: set for kind `session`.
        degraded: why its borders are less than certain, or None.
    """

    block_id: str
    seq: int
    kind: str
    cmd: str
    cwd: str | None
    cwd_b64: str | None
    ts_begin: int
    ts_end: int | None
    duration_ms: int | None
    state: str
    exit_status: int | None
    signal: str | None
    span: tuple[int, int | None]
    out_path: str | None
    out_bytes: int
    parts: int
    author: str
    session_id: str | None = None
    degraded: str | None = None

    def __repr__(self) -> str:
        ended = "" if self.exit_status is None else f" {self.exit_status}"
        return f"<{type(self).__name__} {self.block_id} {shortened(self.cmd)} {self.state}{ended}>"

    def __hash__(self) -> int:
        return hash((self.block_id, self.ts_begin))

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return preformatted(f"$ {self.cmd}", summary=self.summary)

    @property
    def summary(self) -> str:
        """How it ended, in a few words."""
        status = "" if self.exit_status is None else f", exit status {self.exit_status}"
        took = "" if self.duration_ms is None else f", {self.duration_ms / 1000:.1f} s"
        return f"{self.block_id} {self.state}{status}{took}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        record = {name: getattr(self, name) for name in self.__struct_fields__}
        record["span"] = list(self.span)
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Block:
        """Build a block from its JSON form, ignoring fields of later versions."""
        known = {name: record[name] for name in cls.__struct_fields__ if name in record}
        known["span"] = tuple(record["span"])
        return cls(**known)


class ListedBlock(Block, frozen=True, eq=False):
    """A block as `blocks` lists it; these two only with `measure`, and where they are known.

    Without them it equals the block itself.

    Attributes:
        lines: lines of its output.
        screen: whether it moved the cursor, or used the alternate screen, so that only `rendered` shows what was seen.
    """

    lines: int | None = None
    screen: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        record = Block.to_dict(self)
        return {name: value for name, value in record.items() if name not in ("lines", "screen") or value is not None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self.to_dict() == other.to_dict()

    __hash__ = Block.__hash__


# With the class: a result that has one may be all that a process has imported.
REVIVED["Block"] = Block.from_dict
