"""Redaction of a stream while it grows, as far as later bytes can change nothing: the input of a wait.

Rules of this file: pure. What is redacted depends on the bytes and their offsets, never on the pieces they come in: a
secret is looked for in all that is kept, and what is kept changes at multiples of a step alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from blockpty.redact.redaction import LONGEST, find_shown, line_begin, redact_spans

STEP: Final = 8 * 1024
# What may still name a secret on the lines behind it.
_BEFORE: Final = 256
_KEY: Final = b"-----"


class StreamRedactor:
    """Redacts the secrets in a contiguous range of the stream.

    Args:
        before: returns so many bytes of the stream as there are, at most, before an offset.
        step: so many bytes are looked at together; for what comes in pieces that are much smaller, few are cheaper.

    Attributes:
        settled: up to this offset it is known what is redacted.
    """

    def __init__(self, before: Callable[[int, int], bytes], step: int = STEP) -> None:
        self._before = before
        self._step = step
        self.restart(0)

    def restart(self, offset: int, *, attach: bool = False) -> None:
        """Begin at an offset; with `attach` in the middle of a text, and what stands before it is looked at too."""
        known = self._before(offset, LONGEST) if attach else b""
        begin = _line(known, len(known))
        self._data, self._base = bytearray(known[begin:]), offset - len(known) + begin
        self._spans: list[tuple[int, int]] = []
        self._open: list[tuple[int, int]] = []
        self.settled = offset

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        at = 0
        while at < len(data):
            end = self._base + len(self._data)
            count = min(len(data) - at, self._step - end % self._step)
            self._data += data[at : at + count]
            at += count
            forgets = (end + count) % self._step == 0 and self._forgets(end + count)
            if forgets or at == len(data):
                whole = bytes(self._data)
                self._look(whole)
                if forgets:
                    self._forget(whole)

    def flush(self) -> None:
        """Settle everything: what may be the beginning of a secret is one."""
        self._settle(self._base + len(self._data))

    def redact(self, offset: int, data: bytes) -> bytes:
        """Return bytes of the stream redacted, all of them settled; the offsets that are asked for never go back."""
        while self._spans and self._spans[0][1] <= offset:
            del self._spans[0]
        end = offset + len(data)
        spans = [(max(begin, offset) - offset, min(last, end) - offset) for begin, last in self._spans if begin < end]
        return redact_spans(data, spans) if spans else data

    def _look(self, data: bytes) -> None:
        found = find_shown(data, more=True)
        self._open = [(self._base + begin, self._base + end) for begin, end in found.spans]
        self._settle(self._base + found.settled)

    def _settle(self, offset: int) -> None:
        if offset > self.settled:
            self._spans += [
                (max(begin, self.settled), min(end, offset))
                for begin, end in self._open
                if begin < offset and end > self.settled
            ]
            self.settled = offset

    def _forgets(self, end: int) -> bool:
        """Whether something can be forgotten at a step: of a long line only after many steps, since it is kept."""
        return end % LONGEST == 0 or b"\n" in self._data

    def _forget(self, data: bytes) -> None:
        """Keep what may decide on what follows: the line, and a key that is open."""
        begin = _line(data, max(0, min(len(data) - _BEFORE, self.settled - self._base)))
        if len(data) - begin > LONGEST:
            begin = len(data) - LONGEST
            self._settle(self._base + begin)
        del self._data[:begin]
        self._base += begin


def _line(data: bytes, at: int) -> int:
    """Return where the line at a place begins, or the first line of a key that may be open there."""
    key = data.find(_KEY, 0, at)
    return line_begin(data, at if key < 0 else key)
