"""Presentation of what waits for a person: the exact text, set off so that it cannot pass for our own words.

Rules of this file: no surface, no terminal. Each line of a text begins with a bar; where lines have a width, a text
that is wider is divided here, because a terminal would continue it at the left margin.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from blockpty.control.approvals import visible
from blockpty.surfaces.sanitize import one_line, sanitize

BAR: Final = "  | "
_NARROWEST: Final = 20
# What `sanitize` would drop, or let pass.
_KEPT: Final = str.maketrans({"\x1b": "^[", "\r": "^M", "\t": "^I"})


def heading(approval: Mapping[str, Any]) -> str:
    """Return who asks for what, and where, on one line."""
    return one_line(
        f"{approval['approval_id']} in {approval['conversation_id']}: {approval.get('principal')} asks for "
        f"{str(approval.get('operation')).replace('_', '-')}"
    )


def body(approval: Mapping[str, Any], *, width: int | None = None) -> Iterator[str]:
    """Yield the lines that say what is asked: the reason, the exact text, the directory and the rule."""
    yield f"  {one_line(str(approval['sentence']))}"
    text = approval.get("text")
    if text is None:
        yield "  What would be typed is a secret, and is not shown."
    else:
        yield from quoted(text, width=width)
    if approval.get("cwd") is not None:
        yield f"  directory  {one_line(visible(approval['cwd']))}"
    if approval.get("block_id") is not None:
        yield f"  input to   the program of block {one_line(approval['block_id'])}"
    yield f"  rule       {one_line(str(approval.get('rule')))}"


def quoted(text: str, *, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a text, each behind a bar; `width`: of what they are shown on, in columns."""
    room = None if width is None else max(_NARROWEST, width - len(BAR) - 1)
    for line in sanitize(text.translate(_KEPT), colour=False).split("\n"):
        yield from (f"{BAR}{piece}" for piece in _pieces(line, room))


def _pieces(line: str, room: int | None) -> Iterator[str]:
    if room is None or len(line) * 2 <= room:
        yield line
        return
    begin = used = 0
    for index, character in enumerate(line):
        columns = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used + columns > room:
            yield line[begin:index]
            begin, used = index, 0
        used += columns
    yield line[begin:]


def seconds_left(approval: Mapping[str, Any], now_ms: int) -> int:
    """Return for how many seconds a question still waits."""
    return max(0, (int(approval["expires_ts"]) - now_ms) // 1000)


def commands(approval: Mapping[str, Any]) -> tuple[str, str]:
    """Return the commands that allow and refuse this."""
    words = [str(approval[name]) for name in ("conversation_id", "approval_id", "digest")]
    given = " ".join(shlex.quote(word) for word in words)
    return f"blockpty approve {given}", f"blockpty deny {given}"
