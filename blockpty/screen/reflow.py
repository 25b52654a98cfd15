"""Reflow: the rows after a change of size.

The rule, for the main screen: soft-wrapped rows are one line, and lines are wrapped anew at the new width (blanks at a
line's end, and blank rows below the cursor, are not content). The cursor stays on its character. What was the top row
stays the top row where the content still fits; else as many rows as needed go to the history. Where the cursor was on
the last row and there is more room than before, rows come back from the history. The row of the cursor is never lost;
rows below it are, if there is no room. A saved cursor stays on its character, too. The alternate screen is cropped or
padded, since its program draws it anew: at the right and at the bottom, or at the top where its cursor's row would go.
Margins become the whole screen, new columns get default tab stops, an open synchronized update ends.
"""

from __future__ import annotations

from msgspec import Struct

from blockpty.screen.cells import PADDED, SPACER, WRAPPED, Row
from blockpty.screen.state import SavedCursor, ScreenState


class _FollowedCell(Struct):
    """A place to be followed: its row among all rows, its column (after the last one where a wrap is pending).

    `holds`: its line reaches to it, also over blanks. `beyond`: columns that it is behind its line otherwise.
    """

    row: int
    x: int
    found: bool = False
    holds: bool = True
    beyond: int = 0


def resize(s: ScreenState, cols: int, rows: int) -> None:
    """Apply the rule above."""
    if (cols, rows) == (s.cols, s.rows):
        return
    blank = s.brushes.default.mark
    saved = s.saved[0]
    main, alt = (s.other_lines, s.lines) if s.alt else (s.lines, s.other_lines)
    x, y, pending = (saved.x, min(saved.y, s.rows - 1), saved.pending) if s.alt else (s.x, s.y, s.pending)
    cursor = _FollowedCell(len(s.history) + y, x + pending)
    at_bottom = cursor.row == len(s.history) + s.rows - 1
    top = _FollowedCell(len(s.history), 0)
    # On the alternate screen the cursor of the main one is the saved one. What was never saved stays at home.
    kept = _FollowedCell(len(s.history) + min(saved.y, s.rows - 1), saved.x + saved.pending, holds=False)
    follows = not s.alt and saved != SavedCursor()
    content = _without_blank_end([*s.history, *main], cursor.row, blank)
    if cols != s.cols:
        before = len(content)
        content = _wrapped(content, cols, blank, (cursor, top, kept))
        if not kept.found:
            kept.row += len(content) - before
    first = top.row
    if len(content) - first > rows or at_bottom:
        first = max(0, len(content) - rows)
    first = min(first, cursor.row)
    s.history.clear()
    s.history.extend(content[:first])
    main[:] = content[first : first + rows]
    main.extend(_blank(cols, blank) for _ in range(rows - len(main)))
    for row in alt:
        _fit(row, cols, blank)
    above = max(0, s.y - rows + 1) if s.alt else 0
    del alt[:above]
    del alt[rows:]
    alt.extend(_blank(cols, blank) for _ in range(rows - len(alt)))
    x, y, pending = cursor.x, cursor.row - first, cursor.x >= cols
    if s.alt:
        s.saved[0] = saved._replace(x=min(x, cols - 1), y=y, pending=pending)
        s.saved[1] = s.saved[1]._replace(y=max(0, s.saved[1].y - above))
        x, y, pending = s.x, s.y - above, False
    elif follows:
        x_kept = min(kept.x + kept.beyond, cols - 1)
        s.saved[0] = saved._replace(x=x_kept, y=min(max(0, kept.row - first), rows - 1), pending=kept.x >= cols)
    s.x, s.y, s.pending = min(x, cols - 1), min(y, rows - 1), pending
    s.tabs = [stop for stop in s.tabs if stop < cols]
    s.tabs += [stop for stop in range(8, cols, 8) if stop >= s.cols]
    s.cols, s.rows = cols, rows
    s.held_frame = None
    s.full_margins()
    s.settle()


def _blank(cols: int, mark: str) -> Row:
    return Row(" " * cols, mark * cols)


def _fit(row: Row, cols: int, mark: str) -> None:
    row.cut(cols)
    row.text = row.text[:cols].ljust(cols)
    row.attrs = row.attrs[:cols].ljust(cols, mark)
    row.wrapped = 0


def _without_blank_end(rows: list[Row], cursor_row: int, mark: str) -> list[Row]:
    end = len(rows)
    while end > cursor_row + 1 and not rows[end - 1].text.strip(" ") and not rows[end - 1].attrs.strip(mark):
        end -= 1
    return rows[:end]


def _wrapped(rows: list[Row], cols: int, mark: str, places: tuple[_FollowedCell, ...]) -> list[Row]:
    """Return the rows wrapped at another width, with the places moved along."""
    made: list[Row] = []
    begin = 0
    while begin < len(rows):
        end = begin
        text = attrs = ""
        inside: dict[int, int] = {}
        while True:
            row = rows[end]
            for number, place in enumerate(places):
                if place.row == end and not place.found:
                    inside[number] = len(text) + place.x
            keep = len(row.text) - (row.wrapped == PADDED)
            text += row.text[:keep]
            attrs += row.attrs[:keep]
            end += 1
            if not row.wrapped or end == len(rows):
                break
        content = max(len(text.rstrip(" ")), len(attrs.rstrip(mark)))
        # The line reaches to the cursor.
        content = max([content, 1, *(offset for number, offset in inside.items() if places[number].holds)])
        for number, offset in inside.items():
            places[number].beyond = max(0, offset - content)
            inside[number] = min(offset, content)
        text, attrs = text[:content].ljust(content), attrs[:content].ljust(content, mark)
        _cut_line(text, attrs, cols, mark, made, [(places[number], offset) for number, offset in inside.items()])
        begin = end
    return made


def _cut_line(
    text: str, attrs: str, cols: int, mark: str, made: list[Row], inside: list[tuple[_FollowedCell, int]]
) -> None:
    at = 0
    while at < len(text):
        end = min(at + cols, len(text))
        how = WRAPPED if end < len(text) else 0
        if how and text[end] == SPACER and cols > 1:
            end, how = end - 1, PADDED
        for place, offset in inside:
            if (at <= offset < end or offset == end == len(text)) and not place.found:
                place.row, place.x, place.found = len(made), offset - at, True
        made.append(Row(text[at:end].ljust(cols), attrs[at:end].ljust(cols, mark), how))
        at = end
