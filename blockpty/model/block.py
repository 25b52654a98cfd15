"""Blocks: one command with its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

BLOCK_KINDS: Final = ("command", "session", "user", "background")
BLOCK_STATES: Final = ("running", "ended", "rejected", "cancelled", "interrupted", "shell_exited", "lost")

# Only the signals that have one number on Linux and macOS; others are named by number.
_SIGNALS: Final = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 8: "SIGFPE", 9: "SIGKILL",
    11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
}  # fmt: skip


def signal_of(exit_status: int | None) -> str | None:
    """Return the name of the signal that a shell reports as 128+n, or None when the status is no such number."""
    if exit_status is None or not 128 < exit_status < 193:
        return None
    return _SIGNALS.get(exit_status - 128, f"SIG{exit_status - 128}")


@dataclass(frozen=True, slots=True)
class Block:
    """One command with its output; the record of `blocks.jsonl`.

    Attributes:
        block_id: unique inside its conversation ("b7").
        seq: number of the block, from 1.
        kind: `command` (exec_block), `session` (exec_interactive), `user` (typed by a person), `background`
            (printed at an idle prompt, or after the shell's end, by nobody's command).
        cmd: command text; for kind `user` as the shell reported or showed it, empty where it is not known.
        cwd: working directory when it began, as text; None when unknown.
        cwd_b64: the same, exact bytes in base64.
        ts_begin, ts_end, duration_ms: ms; `ts_end` and `duration_ms` are None while it runs.
        state: one of `BLOCK_STATES`.
        exit_status: 0-255, or None when unknown (never a made-up 0).
        signal: name of the signal when the shell reported 128+n or died of one.
        span: `[begin, end)` of the output in the stream; `end` is None while it runs.
        out_path: the `.out` file, relative to the conversation's directory; out_bytes: its size.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__}
        record["span"] = list(self.span)
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Block:
        """Build a block from its JSON form, ignoring fields of later versions."""
        known = {name: record[name] for name in cls.__dataclass_fields__ if name in record}
        known["span"] = tuple(record["span"])
        return cls(**known)
