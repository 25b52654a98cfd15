"""Cursor motions.

Rules of this file: each function is one row of the table in sequences.py: the state, and the parameters. A parameter of
0 means 1 where a count is meant. A move never leaves the screen, and starts from the cell that the cursor is shown on,
so that it ends a pending wrap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from blockpty.screen import controls, modes
from blockpty.screen.state import ScreenState

Parameters = tuple[int, ...]


def new_line(s: ScreenState, p: Parameters = ()) -> None:
    """CR LF, which is how lines end on a terminal."""
    if s.narrowed:
        carriage_return(s)
    else:
        s.x = 0
    s.index()


def next_line(s: ScreenState, p: Parameters) -> None:
    """NEL: beside left and right margins it moves down before it moves to the margin, unlike CR LF."""
    s.index()
    carriage_return(s)


def line_feed(s: ScreenState, p: Parameters = ()) -> None:
    s.index()
    if s.newline:
        carriage_return(s)


def carriage_return(s: ScreenState, p: Parameters = ()) -> None:
    s.pending = False
    s.x = s.left if s.x >= s.left or s.origin else 0


def index(s: ScreenState, p: Parameters) -> None:
    s.index()


def reverse_index(s: ScreenState, p: Parameters) -> None:
    s.reverse_index()


def backspace(s: ScreenState, p: Parameters = ()) -> None:
    _back(s, 1)


def cursor_back(s: ScreenState, p: Parameters) -> None:
    _back(s, p[0] or 1)


def _back(s: ScreenState, count: int) -> None:
    pending, s.pending = s.pending, False
    left = s.left if s.x >= s.left else 0
    if not (s.modes[modes.REVERSE_WRAP] and s.autowrap):
        s.x = max(left, s.x - count)
        return
    # Reverse wrap: the pending wrap is a column of its own, and the rows of the region are one long line.
    count = min(count - pending, s.cols * s.rows)
    while count > s.x - left:
        count -= s.x - left + 1
        s.x = s.right
        s.y = s.y - 1 if s.y != s.top and s.y > 0 else s.bottom
    s.x -= count


def cursor_forward(s: ScreenState, p: Parameters) -> None:
    s.pending = False
    s.x = min(s.right if s.x <= s.right else s.cols - 1, s.x + (p[0] or 1))


def cursor_up(s: ScreenState, p: Parameters) -> None:
    s.pending = False
    s.y = max(s.top if s.y >= s.top else 0, s.y - (p[0] or 1))


def cursor_down(s: ScreenState, p: Parameters) -> None:
    s.pending = False
    s.y = min(s.bottom if s.y <= s.bottom else s.rows - 1, s.y + (p[0] or 1))


def cursor_next_line(s: ScreenState, p: Parameters) -> None:
    cursor_down(s, p)
    carriage_return(s)


def cursor_previous_line(s: ScreenState, p: Parameters) -> None:
    cursor_up(s, p)
    carriage_return(s)


def cursor_position(s: ScreenState, p: Parameters) -> None:
    _to_row(s, p[0])
    _to_column(s, p[1] if len(p) > 1 else 1)


def cursor_column(s: ScreenState, p: Parameters) -> None:
    _to_column(s, p[0])


def cursor_row_absolute(s: ScreenState, p: Parameters) -> None:
    """VPA: origin mode does not count."""
    s.y, s.pending = min((p[0] or 1), s.rows) - 1, False


def cursor_column_absolute(s: ScreenState, p: Parameters) -> None:
    """HPA: origin mode does not count."""
    s.x, s.pending = min((p[0] or 1), s.cols) - 1, False


def column_relative(s: ScreenState, p: Parameters) -> None:
    s.pending = False
    s.x = min(s.right if s.origin else s.cols - 1, s.x + (p[0] or 1))


def row_relative(s: ScreenState, p: Parameters) -> None:
    s.pending = False
    s.y = min(s.bottom if s.origin else s.rows - 1, s.y + (p[0] or 1))


def _to_row(s: ScreenState, row: int) -> None:
    s.pending = False
    first, last = (s.top, s.bottom) if s.origin else (0, s.rows - 1)
    s.y = min(first + (row or 1) - 1, last)


def _to_column(s: ScreenState, column: int) -> None:
    s.pending = False
    first, last = (s.left, s.right) if s.origin else (0, s.cols - 1)
    s.x = min(first + (column or 1) - 1, last)


# --- tab stops: a sorted list of columns ------------------------------------------------------------------------------


def tab(s: ScreenState, p: Parameters = (1,)) -> None:
    """HT and CHT. At the last column it moves nothing, and a pending wrap stays pending, as in xterm."""
    last = s.right if s.x <= s.right else s.cols - 1
    at = bisect_right(s.tabs, s.x) + (p[0] or 1) - 1
    s.x = min(s.tabs[at] if at < len(s.tabs) else last, last)


def back_tab(s: ScreenState, p: Parameters) -> None:
    """CBT. As in xterm, a pending wrap stays pending."""
    first = s.left if s.origin else 0
    at = bisect_left(s.tabs, s.x) - (p[0] or 1)
    s.x = max(s.tabs[at] if at >= 0 else 0, first)


def set_tab(s: ScreenState, p: Parameters) -> None:
    at = bisect_left(s.tabs, s.x)
    if s.tabs[at : at + 1] != [s.x]:
        s.tabs.insert(at, s.x)


def clear_tab(s: ScreenState, p: Parameters) -> None:
    if p[0] == 0 and s.x in s.tabs:
        s.tabs.remove(s.x)
    elif p[0] == 3:
        s.tabs.clear()


def default_tabs(s: ScreenState, p: Parameters) -> None:
    """DECST8C."""
    if p[0] == 5:
        s.tabs[:] = range(8, s.cols, 8)


# --- margins ----------------------------------------------------------------------------------------------------------


def set_margins(s: ScreenState, p: Parameters) -> None:
    """DECSTBM."""
    top = p[0] or 1
    bottom = min((p[1] if len(p) > 1 else 0) or s.rows, s.rows)
    if top < bottom:
        s.top, s.bottom = top - 1, bottom - 1
        controls.home(s)


def set_columns_or_save(s: ScreenState, p: Parameters) -> None:
    """DECSLRM where left and right margins are on, else SCOSC: the same sequence."""
    if not s.modes[modes.DECLRMM]:
        if p == (0,):
            controls.save_cursor(s)
        return
    left = p[0] or 1
    right = min((p[1] if len(p) > 1 else 0) or s.cols, s.cols)
    if left < right:
        s.left, s.right = left - 1, right - 1
        s.settle()
        controls.home(s)
