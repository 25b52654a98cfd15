"""Scrollback: the rows above a screen, rendered from the stream on request.

Rules of this file: no row is kept between two requests. A page costs a scan of the bytes of the span (most of which
fast-forward skips) and the drawing of the rows from the page down. How far up a client may go is `limit`, a setting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from blockpty.screen import fastforward, frames
from blockpty.screen.emulator import Emulator
from blockpty.screen.lazy import STEP
from blockpty.screen.protocol import Line

LIMIT: Final = 1000


class Resize(NamedTuple):
    """A change of size at a stream offset."""

    offset: int
    cols: int
    rows: int


class ScrollbackPage(NamedTuple):
    """Rows that scrolled off, oldest first.

    Attributes:
        lines: the rows; fewer than asked for at the top.
        before: how many rows lie between the page and the screen.
        more: there are further rows above, within the limit.
    """

    lines: tuple[Line, ...]
    before: int
    more: bool

    @property
    def text(self) -> str:
        """The rows as text, soft-wrapped ones joined."""
        parts = []
        for line in self.lines:
            whole = "".join([run.text for run in line.runs])
            parts.append(whole if line.wrapped else whole.rstrip(" ") + "\n")
        return "".join(parts)


def page(
    read: Callable[[int, int], bytes],
    begin: int,
    end: int,
    *,
    size: tuple[int, int] = (80, 24),
    checkpoint: dict[str, Any] | None = None,
    resizes: Sequence[Resize] = (),
    before: int = 0,
    count: int = 100,
    limit: int = LIMIT,
) -> ScrollbackPage:
    """Render the rows above the screen at offset `end` of a stream.

    `checkpoint` is an emulator's dump at `begin`; without it the screen is a fresh one of `size` there, and what came
    earlier is not known. `before` rows next to the screen are left out, and `count` returned.
    """
    depth = max(0, min(limit, before + count))
    # One more, to know whether there is more.
    kept = depth + (depth < limit)
    if checkpoint is not None:
        emulator = Emulator.restore({**checkpoint, "history_rows": kept})
    else:
        emulator = Emulator(*size, history_rows=kept)
    at = begin
    for resize in [*(step for step in resizes if begin <= step.offset <= end), None]:
        stop = end if resize is None else resize.offset
        while at < stop:
            step = min(at + STEP, stop)
            fastforward.feed(emulator, read(at, step))
            at = step
        if resize is not None:
            emulator.resize(resize.cols, resize.rows)
    rows = list(emulator.history)
    newest = max(0, len(rows) - before)
    oldest = max(0, len(rows) - depth)
    lines = tuple([frames.line(emulator, row) for row in rows[oldest:newest]])
    return ScrollbackPage(lines, before, oldest > 0)
