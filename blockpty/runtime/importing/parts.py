"""Parts of a recording, whichever format it has, and its errors.

Rules of this file: a recording comes from anywhere and may say anything. What a reader yields has been checked: sizes
from 1 to 1000, times that are finite and never go back.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from blockpty.errors import BadRequest

MAX_SIZE: Final = 1000
# Longest line of a text format that is read; the longest of real recordings are some MiB.
MAX_LINE: Final = 64 * 1024 * 1024
# A hundred years; no clock of a recording needs more, and all times stay below 2^53 ms.
MAX_SECONDS: Final = 100 * 366 * 86400.0
MAX_TITLE: Final = 1000


class Header(NamedTuple):
    """Header of a recording.

    Attributes:
        style: name and version of the format; ts: when it began, in ms, None when it does not say.
        cols, rows: size of the terminal at its begin.
        title, command, shell: as it says, "" where it does not.
    """

    style: str
    cols: int
    rows: int
    ts: int | None = None
    title: str = ""
    command: str = ""
    shell: str = ""


class Shown(NamedTuple):
    """Bytes that the terminal showed so many ms after the begin."""

    at_ms: int
    data: bytes


class Sized(NamedTuple):
    """The terminal got another size."""

    at_ms: int
    cols: int
    rows: int


class Border(NamedTuple):
    """A block ends here, and with `cmd` another begins."""

    at_ms: int
    cmd: str | None
    status: int | None = None


class Over(NamedTuple):
    """The program of the recording ended; None when how is not known."""

    at_ms: int
    status: int | None


class Cut(NamedTuple):
    """The file ends in the middle of something: it was cut, or its writer killed."""

    at_ms: int


Part = Header | Shown | Sized | Border | Over | Cut


def bad(where: str, what: str, hint: str = "") -> BadRequest:
    """Return the error for a file that is no recording, or a damaged one."""
    known = "asciicast 1, 2 and 3 and the pairs of script(1) can be imported"
    return BadRequest(f"{where}: {what}", hint=hint or known)


def checked_size(where: str, cols: Any, rows: Any) -> tuple[int, int]:
    """Return a terminal's size, or raise BadRequest."""
    for value in (cols, rows):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SIZE:
            raise bad(where, f"a terminal cannot have {str(cols)[:20]} columns and {str(rows)[:20]} rows")
    return cols, rows


def seconds_of(where: str, value: Any) -> float:
    """Return a time in seconds, or raise BadRequest."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise bad(where, f"{str(value)[:20]!r} is not a time")
    if not 0 <= value <= MAX_SECONDS:
        raise bad(where, f"the time {value:.6g} s lies before the begin, or more than a hundred years after it")
    return float(value)


def status_of(value: Any) -> int | None:
    """Return an exit status, None for what is none."""
    try:
        status = int(value)
    except (TypeError, ValueError):
        return None
    return status if 0 <= status <= 255 else None


def text_of(value: Any) -> str:
    """Return a text of a header on one line, "" for what is none."""
    if not isinstance(value, str):
        return ""
    return " ".join(value.encode("utf-8", "replace").decode().split())[:MAX_TITLE]
