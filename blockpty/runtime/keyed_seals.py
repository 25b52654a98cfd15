"""Seals by a key: a note in the timeline that says, to those who have the key, what the record was up to a place.

The lines of the timeline are linked (spool/chain.py), so the link at a place is a digest of all that came before:
entries and stream. A seal is the HMAC-SHA-256 of that link with the user's key. Who has no key can neither change the
record before a seal nor make another one; the key itself is kept by the user and written nowhere.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from blockpty.errors import BadRequest
from blockpty.runtime.record_reader import Position
from blockpty.spool.timeline import TimelineReader

KEY_BYTES: Final = 16
_CONTEXT: Final = b"blockpty seal 1\n"
_NAME_DIGITS: Final = 16


class Key:
    """A key of the user's.

    Attributes:
        name: what a seal calls it: a digest, from which the key does not follow.
    """

    def __init__(self, text: str) -> None:
        self._key = text.encode("utf-8", "surrogatepass")
        if len(self._key) < KEY_BYTES:
            hint = "for instance what `head -c 32 /dev/urandom | base64` prints"
            raise BadRequest(f"a key has {KEY_BYTES} bytes or more", hint=hint)
        self.name = self._mac(b"name")[:_NAME_DIGITS]

    def _mac(self, text: bytes) -> str:
        return hmac.new(self._key, _CONTEXT + text, hashlib.sha256).hexdigest()

    def seal(self, conversation_id: str, at: Position, head: str) -> dict[str, Any]:
        """Return the note that seals a record up to a place, where it has this link."""
        return {
            "type": "seal", "horizon": at._asdict(), "key": self.name, "mac": self._of(conversation_id, at, head)
        }  # fmt: skip

    def made(self, note: Mapping[str, Any], conversation_id: str, at: Position, head: str) -> bool:
        """Whether this key has sealed what has this link."""
        return hmac.compare_digest(str(note.get("mac")).encode(), self._of(conversation_id, at, head).encode())

    def _of(self, conversation_id: str, at: Position, head: str) -> str:
        return self._mac(f"{conversation_id}\n{at.offset}\n{at.timeline}\n{head}".encode())


def seals_in(path: Path, until: int) -> list[tuple[Position, Mapping[str, Any]]]:
    """Return the seals in a timeline up to a position, each with the place that it is of."""
    reader, found = TimelineReader(path, holding=b'"seal"'), []
    try:
        while True:
            for entry, _ in reader.read_new(until, some=True):
                note = entry.fields.get("note") if entry.kind == "note" else None
                if isinstance(note, Mapping) and note.get("type") == "seal":
                    horizon = note.get("horizon")
                    place = horizon if isinstance(horizon, Mapping) else {}
                    if type(place.get("offset")) is int and type(place.get("timeline")) is int:
                        found.append((Position(place["offset"], place["timeline"]), note))
            if reader.ended:
                return found
    finally:
        reader.close()
