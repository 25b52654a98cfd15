"""Block records made of the machine's state, and the fields of timeline entries."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from blockpty.engine.machine_state import MachineState, OpenBlock
from blockpty.engine.marks import NONCE_LENGTH
from blockpty.model.block import Block, signal_of, was_stopped
from blockpty.model.entries import Entry

# Questions to a person that are remembered while they are open.
OPEN_REQUESTS: Final = 64
# What a terminal answers by itself: numbers in a fixed frame, its own name, colours.
_ANSWER: Final = re.compile(
    rb"\x1b\[[?>]?[0-9;]{0,24}(?:[cnRut]|\$y)|\x1bP>\|blockpty\x1b\\"
    rb"|\x1bP[01]\$r[0-9;:]{0,128}(?:[mrs]| q|\"[pq])?\x1b\\"
    rb"|\x1b\](?:4;[0-9]{1,3}|1[012]);rgb:[0-9a-f/]{14}(?:\x07|\x1b\\)"
)


def is_answer(author: object, data: bytes) -> bool:
    """Whether an input is the terminal's own answer to a program, which no user typed and no line editor shows."""
    return author == "engine" and _ANSWER.fullmatch(data) is not None


def finished(block: OpenBlock, system: str = "linux") -> dict[str, Any]:
    """Return a block that has ended in the JSON form of `Block`; `out_path` and `out_bytes` are the journal's to fill.

    `system` is the one whose signals the shell reports.
    """
    assert block.ended_at is not None and block.ts_end is not None  # _close has set both
    signal = block.signal or signal_of(block.exit_status, system)
    return {
        "block_id": block.block_id, "seq": block.seq, "kind": block.kind, "cmd": block.cmd, "cwd": block.cwd,
        "cwd_b64": block.cwd_b64, "ts_begin": block.ts_begin, "ts_end": block.ts_end,
        "duration_ms": max(0, block.ts_end - block.ts_begin),
        "state": "stopped" if block.state == "ended" and was_stopped(signal) else block.state,
        "exit_status": block.exit_status, "signal": signal, "span": [block.begin, max(block.begin, block.ended_at)],
        "out_path": None, "out_bytes": 0, "parts": block.parts, "author": block.author,
        "session_id": block.session_id, "degraded": block.degraded,
    }  # fmt: skip


def open_record(block: OpenBlock, state: MachineState) -> Block:
    """Return the record of a block that has not been closed, with the size of its output so far."""
    return Block(
        block_id=block.block_id, seq=block.seq, kind=block.kind, cmd=block.cmd, cwd=block.cwd, cwd_b64=block.cwd_b64,
        ts_begin=block.ts_begin, ts_end=None, duration_ms=None, state="running", exit_status=None, signal=None,
        span=(block.begin, None), out_path=None, out_bytes=max(0, state.classified - block.begin), parts=block.parts,
        author=block.author, session_id=block.session_id, degraded=block.degraded,
    )  # fmt: skip


def pending_record(state: MachineState) -> Block:
    """Return the record of a submission that has not begun."""
    submission = state.submission or {}
    kind = str(submission.get("kind", "command"))
    return Block(
        block_id=f"b{state.next_block}",
        seq=state.next_block,
        kind=kind,
        cmd=str(submission.get("cmd", "")),
        cwd=state.current.cwd,
        cwd_b64=state.current.cwd_b64,
        ts_begin=int(submission.get("ts", state.ts)),
        ts_end=None,
        duration_ms=None,
        state="running",
        exit_status=None,
        signal=None,
        span=(state.classified, None),
        out_path=None,
        out_bytes=0,
        parts=0,
        author=str(submission.get("author", "agent")),
        session_id=f"s{state.next_block}" if kind == "session" else None,
    )


def input_bytes(fields: Mapping[str, Any]) -> bytes:
    """Return the bytes of an `input` entry; empty when they were not recorded."""
    if isinstance(fields.get("data"), str):
        return str(fields["data"]).encode("utf-8")
    try:
        return binascii.a2b_base64(fields.get("data_b64") or "")
    except (binascii.Error, TypeError, ValueError):
        return b""


def number(fields: Mapping[str, Any], key: str, default: int) -> int:
    """Return a whole number of an entry, or the default where it is none: a damaged line must not stop the machine."""
    value = fields.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53 else default


def exit_number(fields: Mapping[str, Any]) -> int | None:
    """Return the exit status of an entry, 0 to 255, or None."""
    status = number(fields, "status", -1)
    return status if 0 <= status <= 255 else None


def word(fields: Mapping[str, Any], key: str) -> str | None:
    """Return a text of an entry, or None."""
    value = fields.get(key)
    return value if isinstance(value, str) else None


def new_nonce(entry: Entry) -> str:
    """Return the nonce that is to be hidden from this timeline entry on, "" for an entry that brings none."""
    note = entry.fields.get("note")
    if isinstance(note, dict) and note.get("type") in ("enter", "offer"):
        return nonce_of(note)
    return nonce_of(entry.fields) if entry.kind == "spawn" else ""


def nonce_of(fields: Mapping[str, Any]) -> str:
    """Return the nonce of a spawn entry, or an empty one, with which no mark is accepted and nothing is masked."""
    nonce = word(fields, "nonce") or ""
    return nonce if len(nonce) == NONCE_LENGTH and nonce.isascii() else ""


def control_of(note: Mapping[str, Any], ts: int) -> dict[str, Any]:
    """Return who may type, as a note of control says it: state, who has control, since when, and who halted agents."""
    state = word(note, "state")
    return {
        "state": state if state in ("user", "shared") else "agent",
        "who": word(note, "who"),
        "holder": word(note, "holder"),
        "halted": word(note, "halted"),
        "lease": note.get("lease") is True,
        "since": ts,
    }


def note_request(requests: dict[str, str], note: Mapping[str, Any]) -> None:
    """Add what a note asks of a person to those that are open, or take away what it answers."""
    name = word(note, "approval_id") or word(note, "request_id") or ""
    if note["type"] in ("approval_decided", "user_input_done"):
        requests.pop(name, None)
    elif len(requests) < OPEN_REQUESTS:
        requests[name] = word(note, "digest") or ""
