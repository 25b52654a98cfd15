"""Checkpoints of a screen: its state as values that JSON has, and back.

Rules of this file: `restore(dump(s))` behaves like `s` for all that follows. The layout has a number, and what was
written with another is refused with `ValueError`: a checkpoint can always be made again from the stream.
"""

from __future__ import annotations

import re
from typing import Any, Final

from blockpty.screen.cells import Row
from blockpty.screen.pens import Link, Pen
from blockpty.screen.protocol import Cursor
from blockpty.screen.state import HeldFrame, SavedCursor, ScreenState

VERSION: Final = 2
_SAME: Final = re.compile(r"(.)\1*", re.DOTALL)
_PLAIN: Final = (
    *("cols", "rows", "title", "icon_title", "cwd", "zone", "alt", "x", "y", "pending", "top", "bottom", "left"),
    *("right", "shift", "single_shift", "guarded", "modify_other_keys", "cursor_style"),
)
_LISTS: Final = ("titles", "tabs", "charsets", "keyboard")


def dump(s: ScreenState) -> dict[str, Any]:
    """Return the state; the emulator adds what it has begun to read."""
    s.compact()
    held = s.held_frame
    pens = [list(s.brushes.pen(chr(number))) for number in range(len(s.brushes))]
    return {
        "version": VERSION,
        **{name: getattr(s, name) for name in _PLAIN},
        **{name: list(getattr(s, name)) for name in _LISTS},
        "bells": s.bells,
        "unhandled": dict(s.unhandled),
        "history_rows": s.history.maxlen,
        "pen": list(s.brush.pen),
        "pens": pens,
        "clusters": [s.clusters.text(chr(0x100000 + number)) for number in range(len(s.clusters))],
        "lines": [_row(row) for row in s.lines],
        "other_lines": [_row(row) for row in s.other_lines],
        "history": [_row(row) for row in s.history],
        "held": None
        if held is None
        else [[_row(row) for row in held.lines], list(held.cursor), list(held.pen), held.alt],
        "modes": [[number, on] for number, on in s.modes.items()],
        "saved_modes": [[number, on] for number, on in s.saved_modes.items()],
        "saved": [list(saved) for saved in s.saved],
        "last": s.last[-1:],
    }


def restore(s: ScreenState, dumped: dict[str, Any]) -> None:
    """Make a fresh state what `dump` was taken from.

    Raises:
        ValueError: it was written with another layout.
    """
    if dumped.get("version") != VERSION:
        raise ValueError(f"a screen's checkpoint of layout {dumped.get('version')!r}; this is {VERSION}")
    for name in _PLAIN:
        setattr(s, name, dumped[name])
    for name in _LISTS:
        setattr(s, name, list(dumped[name]))
    # A checkpoint of an older version has no counts: they begin there.
    s.bells, s.unhandled = dumped.get("bells", 0), dict(dumped.get("unhandled", {}))
    s.keyboard = [list(stack) for stack in dumped["keyboard"]]
    marks = [s.brushes.of(_pen(values)).mark for values in dumped["pens"]]
    stand_ins = {0x100000 + number: s.clusters.of(text) for number, text in enumerate(dumped["clusters"])}
    rows = [
        [Row(text.translate(stand_ins), "".join(marks[mark] * count for mark, count in runs), wrapped)
         for text, runs, wrapped in part]
        for part in (dumped["lines"], dumped["other_lines"], dumped["history"], (dumped["held"] or [[]])[0])
    ]  # fmt: skip
    s.lines, s.other_lines = rows[0], rows[1]
    s.history.extend(rows[2])
    if dumped["held"] is not None:
        _, cursor, pen, alt = dumped["held"]
        s.held_frame = HeldFrame(rows[3], Cursor(*cursor), _pen(pen), alt)
    s.brush = s.brushes.of(_pen(dumped["pen"]))
    s.modes.update(dict(dumped["modes"]))
    s.saved_modes = dict(dumped["saved_modes"])
    s.saved = [
        SavedCursor(x, y, pending, _pen(pen), origin, tuple(charsets), shift)
        for x, y, pending, pen, origin, charsets, shift in dumped["saved"]
    ]
    s.last = dumped["last"]
    s.settle()


def _row(row: Row) -> list[Any]:
    runs = [[ord(found.group(1)), found.end() - found.start()] for found in _SAME.finditer(row.attrs)]
    return [row.text, runs, row.wrapped]


def _pen(values: list[Any]) -> Pen:
    fg, bg, flags, underline, underline_color, link = values
    return Pen(fg, bg, flags, underline, underline_color, None if link is None else Link(*link))
