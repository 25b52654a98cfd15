"""Timeline entries: what happened at which stream offset, apart from the bytes themselves.

The recorder writes them, one JSON object a line (spool_schema/timeline-v1.json); this file only knows their shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

ENTRY_KINDS: Final = frozenset(
    {"spawn", "tick", "silence", "input", "input_cut", "resize", "note", "exit", "eof", "storage"}
)


# What a reader makes of lines that it cannot read; no writer ever writes one.
DAMAGED: Final = "damaged"

# Checksums of the line and of what is before it (files/lines.py); they say nothing about what happened.
SEALS: Final = ("sum", "prev", "crc")
_FRAME: Final = frozenset({"offset", "ts", "kind", *SEALS})
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


# No dataclass: the host's processes would take a sixth of their start to import what that needs.
class Entry(NamedTuple):
    """One line of the timeline.

    Attributes:
        offset: bytes of the stream that had been written when this happened; never decreases.
        ts: wall clock in ms, made non-decreasing by the recorder.
        kind: one of `ENTRY_KINDS`; a reader ignores kinds it does not know.
        fields: everything else of the line.
    """

    offset: int
    ts: int
    kind: str
    fields: Mapping[str, Any] = _NONE

    @classmethod
    def from_dict(cls, line: Mapping[str, Any]) -> Entry:
        """Build an entry from a decoded timeline line; raises KeyError, TypeError or ValueError when it is none."""
        fields = {key: value for key, value in line.items() if key not in _FRAME}
        if line["kind"] == DAMAGED:
            raise ValueError(DAMAGED)
        return cls(int(line["offset"]), int(line["ts"]), str(line["kind"]), fields)

    def to_dict(self) -> dict[str, Any]:
        """Return the line as written, keys in the order of the file format."""
        return {"offset": self.offset, "ts": self.ts, "kind": self.kind, **self.fields}


def terminal_size(entry: Entry) -> tuple[int, int] | None:
    """Return the columns and rows that an entry gives the terminal; None for any other entry."""
    if entry.kind not in ("spawn", "resize"):
        return None
    cols, rows = entry.fields.get("cols"), entry.fields.get("rows")
    if not isinstance(cols, int) or not isinstance(rows, int) or not 0 < cols <= 1000 or not 0 < rows <= 1000:
        return None
    return cols, rows
