"""The text that a wait's result shows: the end of what was looked at, in the view that was asked for."""

from __future__ import annotations

from typing import Final

from blockpty.api.limits import SHOWN_BYTES
from blockpty.engine.views import transform
from blockpty.runtime.reading import is_drawn

# As far behind a match its lines are looked for.
CONTEXT_BYTES: Final = 8192


def shown_in(data: bytes, view: str, size: tuple[int, int], *, whole: bool = True) -> str:
    """Return the last `SHOWN_BYTES` of what bytes of the stream are in a view, as text.

    Args:
        data: bytes of the stream, without what is no output.
        view: as in `read`.
        size: columns and rows of the terminal, for the view `rendered`.
        whole: whether they begin where the output does; else they may begin inside a control sequence.
    """
    if view != "rendered":
        return transform(view, data)[-SHOWN_BYTES:].decode("utf-8", "replace")
    if not whole:
        data = data.partition(b"\n")[2] or data
    return rendered(transform("ansi", data), size).encode("utf-8", "replace")[-SHOWN_BYTES:].decode("utf-8", "ignore")


def rendered(ansi: bytes, size: tuple[int, int]) -> str:
    """Return what is seen in the end of the view `ansi` of an output, on a terminal of this size."""
    if not is_drawn(ansi):
        return transform("text", ansi).decode("utf-8", "replace")
    from blockpty.screen.rendered import Rendered

    screen = Rendered(*size)
    # The view has LF for the terminal's CR LF.
    parts = screen.parts(ansi.replace(b"\n", b"\r\n"))
    return "".join([*(part.text for part in parts), screen.finish()])


def lines_around(before: str, match: str, after: str, count: int) -> str:
    """Return the lines that a match stands on, with so many lines above and below them."""
    above = before.split("\n")[-count - 1 :]
    below = after.split("\n")[: count + 1]
    return "\n".join(above) + match + "\n".join(below)
