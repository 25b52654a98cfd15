"""Frames: pictures of a screen, rows as runs of cells drawn alike. A frame never changes."""

from __future__ import annotations

import re
from typing import Final

from blockpty.screen import modes
from blockpty.screen.cells import SPACER, Row
from blockpty.screen.protocol import Cursor, CursorShape, Frame, Line, Modes, Run
from blockpty.screen.state import HeldFrame, ScreenState

_SAME: Final = re.compile(r"(.)\1*", re.DOTALL)
_SHAPES: Final[tuple[CursorShape, ...]] = ("block", "block", "block", "underline", "underline", "bar", "bar")


def line(s: ScreenState, row: Row) -> Line:
    """Return a row as it is shown."""
    text, attrs = s.clusters.text(row.text), row.attrs
    if attrs == attrs[0] * len(attrs):
        return Line((Run(text.replace(SPACER, ""), len(attrs), s.brushes.pen(attrs[0])),), bool(row.wrapped))
    # A stand-in is one column and may be several characters, so the cut comes first.
    shown = s.clusters.text
    runs = [
        Run(
            shown(row.text[found.start() : found.end()]).replace(SPACER, ""),
            found.end() - found.start(),
            s.brushes.pen(found.group(1)),
        )
        for found in _SAME.finditer(attrs)
    ]
    return Line(tuple(runs), bool(row.wrapped))


def cursor(s: ScreenState) -> Cursor:
    """Return the cursor as it is now."""
    style = s.cursor_style
    blink = style % 2 == 1 if style else s.modes[modes.BLINK_CURSOR]
    return Cursor(s.x, s.y, s.modes[modes.DECTCEM], _SHAPES[style], blink, s.pending)


def hold(s: ScreenState) -> HeldFrame:
    """Keep what is shown now; a picture that is kept already stays."""
    return s.held_frame or HeldFrame([row.copy() for row in s.lines], cursor(s), s.brush.pen, s.alt)


def asked(s: ScreenState) -> Modes:
    """Return the modes that matter to a user who types or looks."""
    mode = s.modes
    return Modes(
        application_cursor=mode[modes.DECCKM],
        application_keypad=mode[modes.DECNKM],
        bracketed_paste=mode[modes.BRACKETED_PASTE],
        focus_events=mode[modes.FOCUS_EVENTS],
        mouse=next((name for number, name in modes.MOUSE.items() if mode[number]), "off"),
        mouse_encoding=next((name for number, name in modes.MOUSE_ENCODINGS.items() if mode[number]), "x10"),
        keyboard=s.keyboard[s.alt][-1],
        modify_other_keys=s.modify_other_keys,
        reverse_video=mode[modes.DECSCNM],
        synchronized=s.held_frame is not None,
        insert=mode[modes.IRM],
        origin=mode[modes.DECOM],
        autowrap=mode[modes.DECAWM],
        newline=mode[modes.LNM],
    )


def frame(s: ScreenState) -> Frame:
    """Return what is shown; while a synchronized update is open, what was shown when it began."""
    held = s.held_frame or HeldFrame(s.lines, cursor(s), s.brush.pen, s.alt)
    known, s.shown = s.shown, {}
    for row in held.lines:
        key = row.text, row.attrs, row.wrapped
        if key not in s.shown:
            s.shown[key] = known.get(key) or line(s, row)
    return Frame(
        s.cols,
        s.rows,
        tuple([s.shown[row.text, row.attrs, row.wrapped] for row in held.lines]),
        held.cursor,
        asked(s),
        held.pen,
        held.alt,
        s.title,
        s.cwd,
        s.zone,
    )
