"""Rows as text with SGR: colours and styles in control sequences that are made here, and no other control character.

Rules of this file: each run ends with a reset, so that a line means the same wherever it stands. What a program printed
chooses colours, and never a byte of a sequence.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from blockpty.screen.pens import Pen
from blockpty.screen.protocol import Line
from blockpty.screen.rendered import RowStyle
from blockpty.screen.snapshot import sgr

RESET: Final = "\x1b[0m"
# Also those of eight bits, which some terminals obey.
_OTHER_CONTROL: Final = re.compile(r"\x1b(?!\[[0-9;:]*m)|[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f]")
_CUT: Final = re.compile(r"\x1b(?:\[[0-9;:]*)?\Z")


def only_sgr(text: str) -> str:
    """Return a text without control characters, other than line feeds and those of whole SGR sequences."""
    return _OTHER_CONTROL.sub("", text)


def cut_sgr(line: str, length: int) -> str:
    """Return the beginning of a line, without half a sequence at its end, and with a reset behind it."""
    return _CUT.sub("", line[:length]) + RESET


def _text(text: str) -> str:
    return text


# A program uses a handful of pens, and a hostile one as many as it likes.
@functools.lru_cache(maxsize=4096)
def _around(pen: Pen) -> tuple[str, str]:
    codes = sgr(pen)
    return ("", "") if codes == "0" else (f"\x1b[{codes}m", RESET)


def _row(line: Line) -> str:
    runs = list(line.runs)
    if not line.wrapped:
        # Blanks that were drawn with nothing are not part of the line.
        while runs and _around(runs[-1].pen) == ("", ""):
            text = runs[-1].text.rstrip(" ")
            if text:
                runs[-1] = runs[-1]._replace(text=text)
                break
            runs.pop()
    parts = []
    for run in runs:
        before, behind = _around(run.pen)
        parts.append(f"{before}{run.text}{behind}")
    return "".join(parts) + ("" if line.wrapped else "\n")


SGR_ROWS: Final = RowStyle(_row, _text, _around, unpadded=True)
