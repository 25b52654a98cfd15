"""Records for the tests of this room."""

from __future__ import annotations

from blockpty.model.block import Block, ListedBlock

BLOCK = Block(
    block_id="b1", seq=1, kind="command", cmd="true", cwd="/", cwd_b64="Lw==", ts_begin=5, ts_end=9, duration_ms=4,
    state="ended", exit_status=0, signal=None, span=(10, 20), out_path="blocks/1.out", out_bytes=10, parts=1,
    author="agent",
)  # fmt: skip


EVIL = "<script>alert('x')</script>\" onload=\"f()"


def block(**fields: object) -> ListedBlock:
    return ListedBlock.from_dict(
        {
            "block_id": "b7", "seq": 7, "kind": "command", "cmd": EVIL, "cwd": "/", "cwd_b64": "Lw==", "ts_begin": 1,
            "ts_end": 1201, "duration_ms": 1200, "state": "ended", "exit_status": 2, "signal": None, "span": [0, 5],
            "out_path": None, "out_bytes": 0, "parts": 1, "author": "agent", **fields,
        }
    )  # type: ignore[return-value]  # fmt: skip
