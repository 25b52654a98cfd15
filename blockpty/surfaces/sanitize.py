"""Sanitising of program output, so that it is safe to show.

Rules of this file: text in, text out; no surface, no terminal. Whatever is shown to a person who did not ask for the
exact bytes goes through here: a terminal would obey control sequences, and a reader would be misled by characters that
reorder or hide what is beside them.
"""

from __future__ import annotations

import functools
import re
from typing import Final

RESET: Final = "\x1b[0m"

_SGR: Final = r"\x1b\[[0-9;:]{0,64}m"
# C0 without tab and newline, DEL, C1, and the characters that reorder what is shown (Unicode's bidi controls).
_UNSAFE: Final = (
    rf"({_SGR})|\r(?=\n)|([\x00-\x08\x0b-\x1f\x7f])|([\x80-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff])"
)


@functools.cache
def _unsafe() -> re.Pattern[str]:
    # Compiled at first use, which takes three milliseconds.
    return re.compile(_UNSAFE)


def sanitize(text: str, *, colour: bool = True) -> str:
    """Return text that is safe to show: controls in caret notation, and of the control sequences only colours (SGR).

    Args:
        text: anything, also what a hostile program wrote.
        colour: let SGR sequences pass; what they set is reset at the end.
    """
    if text.isprintable():
        return text
    coloured = False

    def shown(match: re.Match[str]) -> str:
        nonlocal coloured
        sequence, control, other = match.groups()
        if sequence is not None:
            coloured = coloured or colour
            return sequence if colour else ""
        if control is not None:
            return f"^{chr(ord(control) ^ 0x40)}"
        return f"<U+{ord(other):04X}>" if other is not None else ""

    safe = _unsafe().sub(shown, text)
    return safe + RESET if coloured else safe


def one_line(text: str) -> str:
    """Return text that is safe to show and stands on one line."""
    return sanitize(text.replace("\r\n", "\n").replace("\n", "↵").replace("\t", " "), colour=False)
