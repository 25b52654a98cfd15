"""The mouse as the bytes that a terminal sends for it, in the encoding that the program has asked for.

Rules of this file: columns and rows count from 0, as the screen's do. What a program does not listen to is refused.
The encodings are those of xterm (ctlseqs, "Mouse Tracking").
"""

from __future__ import annotations

import re
from typing import Final

from blockpty.errors import BadRequest

# What a button is called in the protocol; wheel "buttons" are pressed and never released.
_BUTTONS: Final = {"CLICK": 0, "MCLICK": 1, "RCLICK": 2, "SCROLLUP": 64, "SCROLLDOWN": 65}
_WHEEL: Final = 64
MOUSE_NAMES: Final = tuple(_BUTTONS)
MOUSE: Final = re.compile(
    rf"\[((?:[CMS]-)*)({'|'.join(_BUTTONS)}) ([0-9]{{1,4}}),([0-9]{{1,4}})\]", re.IGNORECASE
)
_BITS: Final = {"S": 4, "M": 8, "C": 16}
# One byte holds up to 223, two bytes of UTF-8 up to 2015.
_LIMITS: Final = {"x10": 222, "utf8": 2014}


def encode_mouse(found: re.Match[str], tracking: str, encoding: str) -> bytes:
    """Return what a terminal sends for a token that `MOUSE` matches; raises BadRequest where it sends nothing."""
    name, x, y = found[2].upper(), int(found[3]), int(found[4])
    if tracking == "off":
        raise BadRequest(f"keys: {found.group()}: the program does not listen to the mouse", hint="use its keys")
    limit = _LIMITS.get(encoding, 9999)
    if max(x, y) > limit:
        raise BadRequest(f"keys: {found.group()}: this program's mouse reaches to {limit}", hint="count from 0")
    button = _BUTTONS[name]
    for letter in found[1].upper().split("-")[:-1]:
        # Only presses are told to a program that asked for no more (mode 9), and nothing of modifiers.
        button |= _BITS[letter] if tracking != "press" else 0
    pressed = _report(encoding, button, x, y, down=True)
    if button & _WHEEL or tracking == "press":
        return pressed
    return pressed + _report(encoding, button, x, y, down=False)


def _report(encoding: str, button: int, x: int, y: int, *, down: bool) -> bytes:
    column, row = x + 1, y + 1
    if encoding in ("sgr", "sgr-pixels"):
        if encoding == "sgr-pixels":
            column, row = x * 8 + 4, y * 17 + 8
        return f"\x1b[<{button};{column};{row}{'M' if down else 'm'}".encode()
    # The others do not say which button was released.
    code = (button if down else button & ~3 | 3) + 32
    if encoding == "urxvt":
        return f"\x1b[{code};{column};{row}M".encode()
    if encoding == "utf8":
        return b"\x1b[M" + "".join(map(chr, (code, column + 32, row + 32))).encode()
    return b"\x1b[M" + bytes((code, column + 32, row + 32))
