"""Events: the journaled facts of a conversation (`events.jsonl`, and the same objects live)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

EVENT_TYPES: Final = frozenset(
    {
        "agent_block_begin", "agent_block_delta", "agent_block_end",
        "agent_session_begin", "agent_session_end",
        "prompt", "input", "resize", "wait_begin", "wait_end",
        "screen_snapshot", "alt_screen",
        "control", "approval_requested", "approval_decided", "user_input_requested", "user_input_done",
        "spoofed_mark", "hint", "anomaly", "storage", "reset", "shell_exit", "eof", "shell_entered", "shell_left",
        "seam", "file_transfer",
    }
)  # fmt: skip


# What every event has; no field of a type may be called so.
ENVELOPE: Final = frozenset({"seq", "ts", "cursor", "type", "conversation_id"})


class Event(Struct, frozen=True):
    """One line of `events.jsonl`.

    Attributes:
        seq: dense number from 0 inside the conversation.
        ts: ms, taken from the timeline, never from a clock.
        cursor: the stream offset at which this became true.
        type: one of `EVENT_TYPES`.
        fields: the fields of this type (spool_schema/event-v1.json).
    """

    seq: int
    ts: int
    cursor: int
    type: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self, conversation_id: str) -> dict[str, Any]:
        """Return the line as written, keys in the order of the file format."""
        return {
            "seq": self.seq,
            "ts": self.ts,
            "cursor": self.cursor,
            "type": self.type,
            "conversation_id": conversation_id,
            **self.fields,
        }

    @classmethod
    def from_dict(cls, line: Mapping[str, Any]) -> Event:
        """Build an event from a decoded line; raises KeyError or TypeError when it is none."""
        fields = {key: value for key, value in line.items() if key not in ENVELOPE}
        return cls(int(line["seq"]), int(line["ts"]), int(line["cursor"]), str(line["type"]), fields)


# Not frozen: a frozen one takes several times as long to make.
class Signal(Struct):
    """A fact for waits only, with the place where it became true; it is never written to disk.

    Kinds and values: `region` ("output", "idle" or None: what the bytes are from here on), `prompt` (whether an
    interactive session ended with it), `silence` ({"ms", "ts", "password", "incomplete", "input"}), `input` (the
    timeline entry), `output` (a region begins here, in bytes that have passed; the value is the offset at which that
    was decided), `exit`, `eof`, `spawn`, `hooks_lost`.
    """

    kind: str
    offset: int
    value: Any = None
