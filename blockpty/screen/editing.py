"""Editing functions: erase, insert, delete, repeat and scroll.

Rules of this file: each function is one row of the table in sequences.py. An erased cell keeps the current background
and nothing else (background colour erase). ED and EL leave the cursor where it is. While a wrap is pending, the cursor
counts as behind the last column: EL 0 and ED 0 erase nothing of its row and the wrap stays pending, as in tmux and
xterm.js (docs/decisions/screen.md). ED 2 ends a pending wrap; ED 1, EL 1 and EL 2 do not, as in xterm. After SPA,
erasing leaves protected cells alone, as in xterm.
"""

from __future__ import annotations

from collections.abc import Callable

from blockpty.screen.cells import Row
from blockpty.screen.controls import home
from blockpty.screen.pens import PROTECTED
from blockpty.screen.state import ScreenState

Parameters = tuple[int, ...]


def _erase(s: ScreenState, y: int, x: int, end: int) -> None:
    row = s.lines[y]
    if x == 0:
        if y > 0:
            s.lines[y - 1].wrapped = 0
        if end == s.cols:
            row.text = " " * end
            row.attrs = s.blank_attrs(s.brush.blank)
            row.wrapped = 0
            return
    row.put(x, " " * (end - x), s.brush.blank)
    if end == s.cols:
        row.wrapped = 0


def _erase_selectively(s: ScreenState, y: int, x: int, end: int) -> None:
    row = s.lines[y]
    protected = {mark for mark in set(row.attrs[x:end]) if s.brushes.pen(mark).flags & PROTECTED}
    if not protected:
        _erase(s, y, x, end)
        return
    row.cut(x)
    row.cut(end)
    cells = list(zip(row.text[x:end], row.attrs[x:end], strict=True))
    text = "".join([character if mark in protected else " " for character, mark in cells])
    attrs = "".join([mark if mark in protected else s.brush.blank for _, mark in cells])
    row.text = row.text[:x] + text + row.text[end:]
    row.attrs = row.attrs[:x] + attrs + row.attrs[end:]


def erase_in_line(s: ScreenState, p: Parameters) -> None:
    _in_line(s, p, _erase_selectively if s.guarded else _erase)


def erase_in_line_selectively(s: ScreenState, p: Parameters) -> None:
    _in_line(s, p, _erase_selectively)


def erase_in_display(s: ScreenState, p: Parameters) -> None:
    if p[0] == 3:
        s.history.clear()
    else:
        _in_display(s, p, _erase_selectively if s.guarded else _erase)


def erase_in_display_selectively(s: ScreenState, p: Parameters) -> None:
    _in_display(s, p, _erase_selectively)


def _in_line(s: ScreenState, p: Parameters, erase: Callable[[ScreenState, int, int, int], None]) -> None:
    if p[0] > 2 or (p[0] == 0 and s.pending):
        return
    erase(s, s.y, s.x if p[0] == 0 else 0, s.x + 1 if p[0] == 1 else s.cols)


def _in_display(s: ScreenState, p: Parameters, erase: Callable[[ScreenState, int, int, int], None]) -> None:
    if p[0] > 2:
        return
    if p[0] == 0:
        if not s.pending:
            erase(s, s.y, s.x, s.cols)
        whole = range(s.y + 1, s.rows)
    elif p[0] == 1:
        whole = range(s.y)
        erase(s, s.y, 0, s.x + 1)
    else:
        whole = range(s.rows)
    for y in whole:
        erase(s, y, 0, s.cols)
    if p[0] == 2:
        s.pending = False


def erase_characters(s: ScreenState, p: Parameters) -> None:
    erase = _erase_selectively if s.guarded else _erase
    erase(s, s.y, s.x, min(s.x + (p[0] or 1), s.cols))
    s.pending = False


def insert_characters(s: ScreenState, p: Parameters) -> None:
    s.pending = False
    if s.left <= s.x <= s.right:
        s.lines[s.y].insert(s.x, p[0] or 1, s.right + 1, s.brush.blank)


def delete_characters(s: ScreenState, p: Parameters) -> None:
    s.pending = False
    if s.left <= s.x <= s.right:
        s.lines[s.y].delete(s.x, p[0] or 1, s.right + 1, s.brush.blank)


def insert_lines(s: ScreenState, p: Parameters) -> None:
    if _inside(s):
        s.scroll_down(s.y, p[0] or 1)
        s.x, s.pending = s.left, False


def delete_lines(s: ScreenState, p: Parameters) -> None:
    if _inside(s):
        s.scroll_up(s.y, p[0] or 1, keep=False)
        s.x, s.pending = s.left, False


def _inside(s: ScreenState) -> bool:
    return s.top <= s.y <= s.bottom and s.left <= s.x <= s.right


def scroll_up(s: ScreenState, p: Parameters) -> None:
    s.scroll_up(s.top, p[0] or 1)


def scroll_down(s: ScreenState, p: Parameters) -> None:
    # With more parameters `CSI T` is about tracking the mouse.
    if len(p) == 1:
        s.scroll_down(s.top, p[0] or 1)


def scroll_left(s: ScreenState, p: Parameters) -> None:
    for row in _region(s) if _inside(s) else ():
        row.delete(s.left, p[0] or 1, s.right + 1, s.brush.blank)


def scroll_right(s: ScreenState, p: Parameters) -> None:
    for row in _region(s) if _inside(s) else ():
        row.insert(s.left, p[0] or 1, s.right + 1, s.brush.blank)


def insert_columns(s: ScreenState, p: Parameters) -> None:
    if _inside(s):
        for row in _region(s):
            row.insert(s.x, p[0] or 1, s.right + 1, s.brush.blank)


def delete_columns(s: ScreenState, p: Parameters) -> None:
    if _inside(s):
        for row in _region(s):
            row.delete(s.x, p[0] or 1, s.right + 1, s.brush.blank)


def back_index(s: ScreenState, p: Parameters) -> None:
    """DECBI: a column to the left; at the left margin the region scrolls to the right."""
    if s.x == s.left:
        scroll_right(s, (1,))
    else:
        s.x, s.pending = max(0, s.x - 1), False


def forward_index(s: ScreenState, p: Parameters) -> None:
    """DECFI: a column to the right; at the right margin the region scrolls to the left."""
    if s.x == s.right:
        scroll_left(s, (1,))
    else:
        s.x, s.pending = min(s.cols - 1, s.x + 1), False


def _region(s: ScreenState) -> list[Row]:
    s.pending = False
    return s.lines[s.top : s.bottom + 1]


def repeat(s: ScreenState, p: Parameters) -> None:
    """REP: the character again that was drawn just before, at most a screen of them, since no more could be seen."""
    if s.last:
        character, mapping, s.mapping = s.last[-1], s.mapping, None
        s.draw(character * min(p[0] or 1, s.cols * s.rows))
        s.mapping = mapping


def alignment_display(s: ScreenState, p: Parameters) -> None:
    """DECALN: a screen full of E."""
    s.full_margins()
    s.settle()
    attrs = s.blank_attrs(s.brushes.default.mark)
    s.lines[:] = [Row("E" * s.cols, attrs) for _ in range(s.rows)]
    s.x = s.y = 0
    s.pending = False
    if s.origin:
        home(s)
