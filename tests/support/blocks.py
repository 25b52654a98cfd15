"""Records for the tests of this room."""

from __future__ import annotations

from blockpty.model.block import Block

BLOCK = Block(
    block_id="b1", seq=1, kind="command", cmd="true", cwd="/", cwd_b64="Lw==", ts_begin=5, ts_end=9, duration_ms=4,
    state="ended", exit_status=0, signal=None, span=(10, 20), out_path="blocks/1.out", out_bytes=10, parts=1,
    author="agent",
)  # fmt: skip
