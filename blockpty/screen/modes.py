"""The modes of a terminal: their numbers, and what they are at first.

Rules of this file: data only; controls.py switches them. A mode that is not in the table is neither obeyed nor
remembered, so memory does not depend on what a program sets. As in pyte, a shift of 5 bits keeps the numbers of private
modes apart from those of ANSI modes.
"""

from __future__ import annotations

from typing import Final

from blockpty.screen.protocol import Mouse

IRM: Final = 4
LNM: Final = 20
DECCOLM: Final = 3 << 5
DECSCNM: Final = 5 << 5
DECOM: Final = 6 << 5
DECAWM: Final = 7 << 5
DECTCEM: Final = 25 << 5
DECCKM: Final = 1 << 5
X10_MOUSE: Final = 9 << 5
BLINK_CURSOR: Final = 12 << 5
ALLOW_DECCOLM: Final = 40 << 5
REVERSE_WRAP: Final = 45 << 5
DECNKM: Final = 66 << 5
DECLRMM: Final = 69 << 5
BRACKETED_PASTE: Final = 2004 << 5
FOCUS_EVENTS: Final = 1004 << 5
SYNCHRONIZED: Final = 2026 << 5
CLUSTERS: Final = 2027 << 5
MOUSE: Final[dict[int, Mouse]] = {X10_MOUSE: "press", 1000 << 5: "click", 1002 << 5: "drag", 1003 << 5: "motion"}
MOUSE_ENCODINGS: Final = {1005 << 5: "utf8", 1006 << 5: "sgr", 1015 << 5: "urxvt", 1016 << 5: "sgr-pixels"}
ALT: Final = {47 << 5, 1047 << 5, 1049 << 5}
SAVE_CURSOR: Final = 1048 << 5

INITIAL: Final[dict[int, bool]] = {
    IRM: False,
    LNM: False,
    **dict.fromkeys(
        (
            *(DECCKM, DECCOLM, DECSCNM, DECOM, BLINK_CURSOR, ALLOW_DECCOLM, REVERSE_WRAP, DECNKM, DECLRMM),
            *(*MOUSE, *MOUSE_ENCODINGS, FOCUS_EVENTS, 1007 << 5, BRACKETED_PASTE, SYNCHRONIZED, CLUSTERS),
            *(47 << 5, 1047 << 5, SAVE_CURSOR, 1049 << 5),
        ),
        False,
    ),
    DECAWM: True,
    DECTCEM: True,
}


def key(number: int, private: bool) -> int:
    """Return the table's key of a mode."""
    return number << 5 if private else number
