"""The last output that a wait has looked at, as it came, so that it can be shown in any view afterwards."""

from __future__ import annotations

from collections import deque
from typing import Final

KEPT_BYTES: Final = 64 * 1024


class ShownOutput:
    """Pieces of the stream with their places; older ones are dropped when there are more than `KEPT_BYTES`."""

    def __init__(self) -> None:
        self._pieces: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self.whole = True

    def add(self, offset: int, data: bytes) -> None:
        """Take what follows."""
        if not data:
            return
        if len(data) > KEPT_BYTES:
            offset, data, self.whole = offset + len(data) - KEPT_BYTES, data[-KEPT_BYTES:], False
        self._pieces.append((offset, data))
        self._size += len(data)
        while self._size - len(self._pieces[0][1]) >= KEPT_BYTES:
            self._size -= len(self._pieces.popleft()[1])
            self.whole = False

    def before(self, end: int | None = None) -> bytes:
        """Return what lies before a stream offset; by default all of it."""
        if end is None:
            return b"".join([data for _, data in self._pieces])
        return b"".join([data[: end - offset] for offset, data in self._pieces if offset < end])
