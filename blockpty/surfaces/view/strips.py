"""Strips: what a program wrote as text and colours for Textual, and nothing else of it. Pure.

Rules of this file: every text of a program becomes a segment here, and here it is made safe. Styles have no links.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from blockpty.control.approvals import visible as all_visible
from blockpty.screen.markup import palette
from blockpty.screen.pens import BOLD, CONCEAL, FAINT, ITALIC, OVERLINE, REVERSE, RGB, STRIKE, Pen
from blockpty.screen.protocol import Run
from blockpty.surfaces.sanitize import sanitize
from blockpty.surfaces.view.theme import Colours

# What shows nothing, but joins or reorders what is beside it: a terminal may take it for something else.
_INVISIBLE: Final = re.compile("[\u00ad\u200b\u200c\u2060-\u2064\ufeff\U000e0000-\U000e007f]")


def safe(text: str) -> str:
    """Return text of a program that is safe to show on one line."""
    if text.isascii() and text.isprintable():
        return text
    return sanitize(_INVISIBLE.sub("", text).translate(_TO_ONE_LINE), colour=False)


_TO_ONE_LINE: Final = str.maketrans({"\n": "↵", "\t": " ", "\x1b": "\u241b"})


def visible(text: str) -> str:
    """Return a text of which a person decides something: every character can be seen; on one line."""
    return all_visible(text).replace("\n", "↵")


@functools.lru_cache(maxsize=4096)
def style(pen: Pen, colours: Colours, ground: str, reverse: bool = False) -> Style:
    """Return the style of a pen on a ground; `reverse`: the screen is in reverse video."""
    front = _colour(pen.fg, colours) or colours.text
    back = _colour(pen.bg, colours) or ground
    flags = pen.flags
    if bool(flags & REVERSE) != reverse:
        front, back = back, front
    if flags & CONCEAL:
        front = back
    return Style(
        color=Color.parse(front), bgcolor=Color.parse(back), bold=bool(flags & BOLD), dim=bool(flags & FAINT),
        italic=bool(flags & ITALIC), strike=bool(flags & STRIKE), overline=bool(flags & OVERLINE),
        underline=pen.underline == 1 or pen.underline > 2, underline2=pen.underline == 2,
    )  # fmt: skip


def _colour(colour: int | None, colours: Colours) -> str | None:
    if colour is None:
        return None
    if colour < len(colours.ansi):
        return colours.ansi[colour]
    return palette(colour) if colour < RGB else f"#{colour - RGB:06x}"


def segments(
    runs: Iterable[Run], colours: Colours, ground: str, *, reverse: bool = False, exact: bool
) -> list[Segment]:
    """Return runs as segments; `exact`: each as wide as the run says, so that columns stay in their places."""
    made = []
    for run in runs:
        text = safe(run.text)
        if exact and cell_len(text) != run.width:
            text = set_cell_size(text, run.width)
        made.append(Segment(text, style(run.pen, colours, ground, reverse)))
    return made


def marked(parts: list[Segment], text: str, colours: Colours) -> list[Segment]:
    """Return segments with each place marked where a text stands, in upper and lower case."""
    if not text:
        return parts
    whole = "".join(part.text for part in parts)
    places = [found.span() for found in re.finditer(re.escape(text), whole, re.IGNORECASE)]
    if not places:
        return parts
    cuts = sorted({place for span in places for place in span})
    made, at = [], 0
    look = Style(bgcolor=Color.parse(colours.wait), color=Color.parse(colours.surface))
    for part in parts:
        end = at + len(part.text)
        inner = [cut for cut in cuts if at < cut < end]
        for begin, stop in zip([at, *inner], [*inner, end], strict=True):
            inside = any(first <= begin and stop <= last for first, last in places)
            own = part.style or Style()
            made.append(Segment(part.text[begin - at : stop - at], own + look if inside else own))
        at = end
    return made


def strip(parts: Iterable[tuple[str, str]], width: int, ground: str) -> Strip:
    """Return a line of our own words: texts, which must be safe, each with its colours in Rich's form."""
    made = [Segment(text, Style.parse(f"{look} on {ground}")) for text, look in parts if text]
    return Strip(made).adjust_cell_length(width, Style(bgcolor=Color.parse(ground)))


def fitted(text: str, width: int) -> str:
    """Return as much of a safe text as fits, with "…" where something is left out."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 0 else ""
