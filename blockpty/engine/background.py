"""Background output at a silent prompt, as distinct from a shell that only draws.

A shell that is hung up resets its terminal and goes to a new line: bytes with a line end in them, of which a person
sees nothing. As a block they would be one block more for each conversation that is closed at its prompt.

A prompt of several lines may be drawn again at any time: a theme has found out the state of a repository, a clock
ticks. The line editor then goes up to the first of the lines and writes them all. So a line end that leads back down to
where the cursor was before counts for nothing; a program that only prints does not go up.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from blockpty.engine.scanner import Scanner, StreamToken

# Resetting takes some 30 bytes; what is longer is no shell that leaves, whatever it shows.
DRAWN_BYTES: Final = 64
# Control sequences that switch modes, keypad modes, and line ends.
_DRAWN: Final = re.compile(rb"(?:\x1b(?:\[[0-?]*[ -/]*[hlmr]|[=>])|[\r\n])*")
_UP_OR_DOWN: Final = re.compile(rb"\x1b\[(\d{0,3})A|\n")
_UP_BEGINS: Final = re.compile(rb"\x1b(?:\[\d{0,3})?\Z")


class BackgroundText(Struct):
    """Text that no command has printed, from a silence on until it is known to be output.

    Attributes:
        settled: where it begins; None while the shell may still draw.
        undrawn: its first bytes, while none of it can be seen.
        raised: how many lines it has gone up and not yet come down, at most the screen's.
        rising: the beginning of a sequence that goes up, where its end has not come.
    """

    settled: int | None = None
    undrawn: bytes = b""
    raised: int = 0
    rising: bytes = b""

    def start(self, offset: int) -> None:
        """What comes from here on is background output."""
        self.settled = offset

    def stop(self) -> None:
        """What comes now belongs to the shell or a command, until the next silence."""
        self.settled, self.undrawn, self.raised, self.rising = None, b"", 0, b""

    def first_line(self, token: StreamToken, scanner: Scanner, rows: int) -> int:
        """Return the offset after the first line end that no shell draws, or -1; a token is taken once.

        `settled` is not None; it moves behind the lines that were drawn again.
        """
        data = self.rising + scanner.bytes_of(token, token.end - token.begin)
        base = token.end - len(data)
        for found in _UP_OR_DOWN.finditer(data):
            after = base + found.end()
            if found[1] is not None:
                self.raised = min(self.raised + int(found[1] or 1), rows)
            elif self.raised:
                self.raised -= 1
                self.settled, self.undrawn = after, b""
            elif not self._is_drawn(data, base, after):
                return after
        self._keep(data, base, token.end)
        partial = _UP_BEGINS.search(data, max(0, len(data) - 5))
        self.rising = partial[0] if partial is not None else b""
        return -1

    def _is_drawn(self, data: bytes, base: int, after: int) -> bool:
        """Whether nothing can be seen of what has come since the silence, up to a line end, and it is short."""
        self._keep(data, base, after)
        length = after - (self.settled or 0)
        return length <= DRAWN_BYTES and _DRAWN.fullmatch(self.undrawn, 0, length) is not None

    def _keep(self, data: bytes, base: int, end: int) -> None:
        """Keep the first of the bytes behind `settled`, up to `end`."""
        kept = (self.settled or 0) + len(self.undrawn)
        limit = min(end, (self.settled or 0) + DRAWN_BYTES + 1)
        if limit > kept:
            self.undrawn += data[kept - base : limit - base]
