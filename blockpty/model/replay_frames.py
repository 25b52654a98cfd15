"""Replay frames: what a terminal did and when, as a replay gives it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from blockpty.model.block import Block

MOMENT_TYPES: Final = ("screen", "output", "resize", "block_begin", "block_end", "exit")


class Moment(Struct, frozen=True):
    """One thing that happened, at its recorded time.

    Attributes:
        type: one of `MOMENT_TYPES`. `screen` comes first and after every seek: clear, take the size, show `data`.
        at_ms: ms from the beginning of what is replayed, as recorded: no speed and no limit of silences changes it.
        ts: the same as wall clock in ms.
        cursor: how far the stream has gone with it.
        data: of `screen` and `output`, what to show: terminal bytes without our own marks.
        cols, rows: of `screen` and `resize`, the terminal's size.
        fresh: of `resize`, that another shell has begun, which finds the terminal as after another program.
        block: of `block_begin` and `block_end`, the block.
        exit_status: of `exit`, how the shell ended; None when unknown.
    """

    type: str
    at_ms: int
    ts: int
    cursor: int
    data: bytes = b""
    cols: int | None = None
    rows: int | None = None
    fresh: bool = False
    block: Block | None = None
    exit_status: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: `data` where it is UTF-8, else `data_b64`; what a type does not have is left out."""
        content: dict[str, Any] = {"type": self.type, "at_ms": self.at_ms, "ts": self.ts, "cursor": self.cursor}
        if self.type in ("screen", "output"):
            try:
                content["data"] = self.data.decode()
            except UnicodeDecodeError:
                content["data_b64"] = base64.b64encode(self.data).decode("ascii")
        if self.type in ("screen", "resize"):
            content |= {"cols": self.cols, "rows": self.rows}
        if self.fresh:
            content["fresh"] = True
        if self.block is not None:
            content["block"] = self.block.to_dict()
        if self.type == "exit":
            content["exit_status"] = self.exit_status
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Moment:
        """Build a moment from its JSON form, ignoring fields of later versions."""
        exact, block = content.get("data_b64"), content.get("block")
        return cls(
            type=str(content["type"]),
            at_ms=int(content["at_ms"]),
            ts=int(content["ts"]),
            cursor=int(content["cursor"]),
            data=str(content.get("data", "")).encode() if exact is None else base64.b64decode(exact),
            cols=content.get("cols"),
            rows=content.get("rows"),
            fresh=bool(content.get("fresh", False)),
            block=None if block is None else Block.from_dict(block),
            exit_status=content.get("exit_status"),
        )
