"""Tells output that nobody asked for from a shell that only draws, at a prompt that has been silent.

A shell that is hung up resets its terminal and goes to a new line: bytes with a line end in them, of which a person
sees nothing. As a block they would be one block more for each conversation that is closed at its prompt.
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


def first_line(state: MachineState, token: Token, scanner: Scanner) -> int:
    """Return the offset after the first line end behind which something can be seen, or -1; a token is taken once."""
    before = len(state.unasked)
    begin = token.begin - before
    state.unasked += scanner.bytes_of(token, DRAWN_BYTES + 1 - before)
    at = state.unasked.find(b"\n", before)
    while at >= 0:
        if at >= DRAWN_BYTES or not _DRAWN.fullmatch(state.unasked, 0, at + 1):
            return begin + at + 1
        at = state.unasked.find(b"\n", at + 1)
    # What is kept has no such line end; behind it every line end counts.
    return scanner.line_end(token, max(token.begin, begin + len(state.unasked)))
