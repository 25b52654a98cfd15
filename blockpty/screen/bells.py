"""Bells in a stream: BEL that ends no string, found without drawing a screen.

Rules of this file: bytes without BEL cost a look for one. Content of a string is not kept.
"""

from __future__ import annotations

import re
from typing import Final

BEL: Final = b"\x07"
# What comes within so many ms after a bell is the same one: a program may ring without end.
ONE_BELL_MS: Final = 2000
_CONTENT: Final = rb"\x1b[\]PX^_][^\x07\x1b\x18\x1a]*"
_STRING: Final = re.compile(_CONTENT + rb"(?:\x07|\x1b\\)")
_OPEN: Final = re.compile(_CONTENT + rb"|\x1b")


class Bells:
    """Listens to a stream that comes in any pieces.

    Attributes:
        last: when the bell rang last, in ms since 1970; None when it has not.
    """

    def __init__(self) -> None:
        self.last: int | None = None
        # The beginning of a string, or of one perhaps, that the next bytes may end.
        self._held = b""

    def feed(self, data: bytes, ts: int) -> None:
        """Take the next bytes, which came at `ts`."""
        data = self._held + data
        rang = BEL in data and BEL in _STRING.sub(b"", data)
        begin = data.rfind(b"\x1b")
        self._held = data[begin : begin + 2] if begin >= 0 and _OPEN.fullmatch(data, begin) else b""
        if rang and (self.last is None or ts - self.last >= ONE_BELL_MS):
            self.last = ts
