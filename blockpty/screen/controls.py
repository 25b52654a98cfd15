"""Control functions that set, save and reset: SM/RM, DECSET, the alternate screen, DECSC, DECSTR, SGR, keyboard modes.

Rules of this file: each function is one row of the table in sequences.py: the state, and the parameters. A mode that
is not in the table of modes.py changes nothing.
"""

from __future__ import annotations

from typing import Final

from blockpty.screen import frames
from blockpty.screen.modes import (
    ALLOW_DECCOLM,
    ALT,
    DECAWM,
    DECCKM,
    DECCOLM,
    DECLRMM,
    DECNKM,
    DECOM,
    DECTCEM,
    IRM,
    MOUSE,
    MOUSE_ENCODINGS,
    REVERSE_WRAP,
    SAVE_CURSOR,
    SYNCHRONIZED,
)  # fmt: skip
from blockpty.screen.pens import DEFAULT, PROTECTED
from blockpty.screen.state import SavedCursor, ScreenState

Parameters = tuple[int, ...]

_KEYBOARD_STACK: Final = 16


def set_modes(s: ScreenState, p: Parameters) -> None:
    for number in p:
        _switch_known(s, number, f"CSI {number} h", True)


def reset_modes(s: ScreenState, p: Parameters) -> None:
    for number in p:
        _switch_known(s, number, f"CSI {number} l", False)


def set_private_modes(s: ScreenState, p: Parameters) -> None:
    for number in p:
        _switch_known(s, number << 5, f"CSI ?{number} h", True)


def reset_private_modes(s: ScreenState, p: Parameters) -> None:
    for number in p:
        _switch_known(s, number << 5, f"CSI ?{number} l", False)


def _switch_known(s: ScreenState, mode: int, sequence: str, on: bool) -> None:
    if mode in s.modes:
        _switch(s, mode, on)
    else:
        s.pass_over(sequence)


def save_private_modes(s: ScreenState, p: Parameters) -> None:
    for number in p:
        if number << 5 in s.modes:
            s.saved_modes[number << 5] = s.modes[number << 5]


def restore_private_modes(s: ScreenState, p: Parameters) -> None:
    for number in p:
        if number << 5 in s.saved_modes:
            _switch(s, number << 5, s.saved_modes[number << 5])


def _switch(s: ScreenState, mode: int, on: bool) -> None:
    if mode in ALT:
        _switch_screen(s, mode, on)
        return
    if mode == SAVE_CURSOR:
        (save_cursor if on else restore_cursor)(s)
        return
    if mode == DECCOLM and not s.modes[ALLOW_DECCOLM]:
        return
    s.modes[mode] = on
    if mode in MOUSE:
        # The last one set is the one that counts; resetting any turns them off.
        s.modes.update(dict.fromkeys(MOUSE, False) | {mode: on})
    elif mode in MOUSE_ENCODINGS:
        s.modes.update(dict.fromkeys(MOUSE_ENCODINGS, False) | {mode: on})
    elif mode == SYNCHRONIZED:
        s.held_frame = frames.hold(s) if on else None
    elif mode == DECCOLM:
        # The size is the conversation's to change; the rest of what DECCOLM does is done.
        s.full_margins()
        s.lines[:] = [s.blank_row() for _ in range(s.rows)]
        home(s)
    elif mode == DECLRMM and not on:
        s.left, s.right = 0, s.cols - 1
    s.settle()
    if mode == DECOM:
        home(s)


def home(s: ScreenState) -> None:
    """Put the cursor where the first cell is, by origin mode."""
    s.x, s.y = (s.left, s.top) if s.origin else (0, 0)
    s.pending = False


def _switch_screen(s: ScreenState, mode: int, on: bool) -> None:
    if on:
        if mode == 1049 << 5:
            save_cursor(s)
        _show(s, True)
        if mode == 1049 << 5:
            s.lines[:] = [s.blank_row() for _ in range(s.rows)]
            s.pending = False
    else:
        if mode == 1047 << 5 and s.alt:
            s.lines[:] = [s.blank_row() for _ in range(s.rows)]
        _show(s, False)
        if mode == 1049 << 5:
            restore_cursor(s)
            # The main screen comes back as it was, also in the middle of wrapping.
            s.pending = s.saved[0].pending and s.x == s.cols - 1


def _show(s: ScreenState, alt: bool) -> None:
    if s.alt != alt:
        s.alt = alt
        s.lines, s.other_lines = s.other_lines, s.lines
    for mode in ALT:
        s.modes[mode] = alt


def save_cursor(s: ScreenState, p: Parameters = ()) -> None:
    s.saved[s.alt] = SavedCursor(s.x, s.y, s.pending, s.brush.pen, s.origin, tuple(s.charsets), s.shift)


def restore_cursor(s: ScreenState, p: Parameters = ()) -> None:
    """DECRC. A pending wrap does not come back, as in the xterm of the conformance cases."""
    saved = s.saved[s.alt]
    s.x, s.y = min(saved.x, s.cols - 1), min(saved.y, s.rows - 1)
    s.pending = False
    # A hyperlink is not part of the rendition that DECSC saves.
    s.brush = s.brushes.of(saved.pen._replace(link=s.brush.pen.link))
    s.modes[DECOM] = saved.origin
    s.charsets[:] = saved.charsets
    s.shift = saved.shift
    s.settle()


def soft_reset(s: ScreenState, p: Parameters) -> None:
    """DECSTR: what a program may have left behind, without touching what is shown."""
    for mode in (IRM, DECOM, DECCKM, DECNKM, REVERSE_WRAP, DECLRMM):
        s.modes[mode] = False
    s.modes[DECTCEM] = s.modes[DECAWM] = True
    s.full_margins()
    s.brush = s.brushes.of(DEFAULT)
    s.guarded = False
    s.charsets[:] = "BBBB"
    s.shift = s.single_shift = 0
    s.saved[s.alt] = SavedCursor()
    s.pending = False
    s.settle()


def full_reset(s: ScreenState, p: Parameters) -> None:
    s.reset()


def protect(s: ScreenState, p: Parameters) -> None:
    """DECSCA: cells that selective erasing leaves alone."""
    _protect(s, p[0] == 1)
    if p[0] == 1:
        s.guarded = False


def guard(s: ScreenState, p: Parameters) -> None:
    """SPA: cells that ED, EL and ECH leave alone as well, until DECSCA is used."""
    _protect(s, True)
    s.guarded = True


def end_guard(s: ScreenState, p: Parameters) -> None:
    """EPA: what comes now is not protected."""
    _protect(s, False)


def _protect(s: ScreenState, on: bool) -> None:
    pen = s.brush.pen
    s.brush = s.brushes.of(pen._replace(flags=pen.flags | PROTECTED if on else pen.flags & ~PROTECTED))


def cursor_style(s: ScreenState, p: Parameters) -> None:
    s.cursor_style = p[0] if p[0] <= 6 else s.cursor_style


def application_keypad(s: ScreenState, p: Parameters) -> None:
    s.modes[DECNKM] = True


def numeric_keypad(s: ScreenState, p: Parameters) -> None:
    s.modes[DECNKM] = False


# --- the kitty keyboard protocol, and xterm's modifyOtherKeys: a stack of flags for each screen -----------------------


def push_keyboard(s: ScreenState, p: Parameters) -> None:
    stack = s.keyboard[s.alt]
    stack.append(p[0] & 31)
    if len(stack) > _KEYBOARD_STACK:
        del stack[0]


def pop_keyboard(s: ScreenState, p: Parameters) -> None:
    stack = s.keyboard[s.alt]
    del stack[max(0, len(stack) - max(1, p[0])) :]
    if not stack:
        stack.append(0)


def set_keyboard(s: ScreenState, p: Parameters) -> None:
    stack, flags = s.keyboard[s.alt], p[0] & 31
    how = p[1] if len(p) > 1 else 1
    stack[-1] = {2: stack[-1] | flags, 3: stack[-1] & ~flags}.get(how, flags)


def modify_keys(s: ScreenState, p: Parameters) -> None:
    if p[0] == 4:
        s.modify_other_keys = min(p[1], 3) if len(p) > 1 else 0
    elif p == (0,):
        s.modify_other_keys = 0
