"""Output that would do harm if it came through to a terminal."""

from __future__ import annotations

# Title, screen clear, cursor report, device string, C1 in UTF-8 and as a byte, lone ESC, CR, backspace, BEL, bidi, SGR.
HOSTILE = (
    b"\x1b]0;OWNED\x07\x1b[2J\x1b[6n\x1bP$qm\x1b\\\xc2\x9b5n\x1b]52;c;aGk=\x1b\\over\rwritten\x08\xe2\x80\xae\x1b[31mred"
    b"\x1b"
)
