"""Tells output that nobody asked for from a shell that only draws, at a prompt that has been silent.

A shell that is hung up resets its terminal and goes to a new line: bytes with a line end in them, of which a person
sees nothing. As a block they would be one block more for each conversation that is closed at its prompt.

A prompt of several lines may be drawn again at any time: a theme has found out the state of a repository, a clock
ticks. The line editor then goes up to the first of the lines and writes them all. So a line end that leads back down to
where the cursor was before counts for nothing; a program that only prints does not go up.
"""

from __future__ import annotations

import re
from typing import Final

from blockpty.engine.scanner import Scanner, Token
from blockpty.engine.snapshot import MachineState

# Resetting takes some 30 bytes; what is longer is no shell that leaves, whatever it shows.
DRAWN_BYTES: Final = 64
# Control sequences that switch modes, keypad modes, and line ends.
_DRAWN: Final = re.compile(rb"(?:\x1b(?:\[[0-?]*[ -/]*[hlmr]|[=>])|[\r\n])*")
_UP_OR_DOWN: Final = re.compile(rb"\x1b\[(\d{0,3})A|\n")
_UP_BEGINS: Final = re.compile(rb"\x1b(?:\[\d{0,3})?\Z")


def first_line(state: MachineState, token: Token, scanner: Scanner) -> int:
    """Return the offset after the first line end that no shell draws, or -1; a token is taken once.

    `state.settled` is not None; it moves behind the lines that were drawn again.
    """
    data = state.rising + scanner.bytes_of(token, token.end - token.begin)
    base = token.end - len(data)
    for found in _UP_OR_DOWN.finditer(data):
        after = base + found.end()
        if found[1] is not None:
            state.raised = min(state.raised + int(found[1] or 1), state.size[1])
        elif state.raised:
            state.raised -= 1
            state.settled, state.unasked = after, b""
        elif not _is_drawn(state, data, base, after):
            return after
    _keep(state, data, base, token.end)
    partial = _UP_BEGINS.search(data, max(0, len(data) - 5))
    state.rising = partial[0] if partial is not None else b""
    return -1


def _is_drawn(state: MachineState, data: bytes, base: int, after: int) -> bool:
    """Whether nothing can be seen of what has come since the silence, up to a line end, and it is short."""
    _keep(state, data, base, after)
    length = after - (state.settled or 0)
    return length <= DRAWN_BYTES and _DRAWN.fullmatch(state.unasked, 0, length) is not None


def _keep(state: MachineState, data: bytes, base: int, end: int) -> None:
    """Keep the first of the bytes behind `state.settled`, up to `end`."""
    kept = (state.settled or 0) + len(state.unasked)
    limit = min(end, (state.settled or 0) + DRAWN_BYTES + 1)
    if limit > kept:
        state.unasked += data[kept - base : limit - base]
