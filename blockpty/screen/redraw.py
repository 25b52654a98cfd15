"""Redrawing: output that makes a new emulator of the same size a copy of another, so that all that follows looks alike.

Rules of this file: pure; it takes an emulator between any two bytes. Unlike `snapshot.ansi`, which draws a frame, it
has both screens, the rows above, margins, tab stops, character sets, saved cursors, all modes, the pen, a pending wrap,
and the beginning of a sequence or a character at its end. While a synchronized update is open it shows the new picture,
not the one before. Of what REP repeats it has only a character of the cell before the cursor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from blockpty.screen import modes
from blockpty.screen.cells import PADDED, SPACER, Row, width
from blockpty.screen.parser import CSI, ESCAPE, GROUND, OSC, STRING
from blockpty.screen.pens import PROTECTED, Pen
from blockpty.screen.snapshot import change
from blockpty.screen.state import SavedCursor

if TYPE_CHECKING:
    from blockpty.screen.emulator import Emulator

# Those that are drawn with, and switched on last; the screens, the saved cursor and DECCOLM are no plain modes.
_LAST: Final = (modes.DECLRMM, modes.DECOM, modes.DECAWM, modes.IRM, modes.LNM, modes.CLUSTERS, modes.REVERSE_WRAP)
_SCREENS: Final = frozenset({47 << 5, 1047 << 5, 1049 << 5, 1048 << 5})
_NEVER: Final = frozenset({*_SCREENS, modes.DECCOLM, modes.SYNCHRONIZED, *_LAST})
# Where a wide character did not fit and another stands in its place now, this one makes the row go on.
_WIDE: Final = "\u6f22"


def redraw(s: Emulator, above: int | None = None) -> bytes:
    """Return output that makes a new emulator of the same size what this one is.

    `above`: at most so many of the rows above the screen, by default all that it has.
    """
    # DECCOLM clears the screen, so it comes first.
    parts = ["\x1bc\x1b[?40h"]
    for number, on in s.saved_modes.items():
        code, initial = number >> 5, "h" if modes.INITIAL.get(number) else "l"
        if number not in _SCREENS:
            parts.append(f"\x1b[?{code}{'h' if on else 'l'}\x1b[?{code}s\x1b[?{code}{initial}")
        elif not on:
            parts.append(f"\x1b[?{code}s")
    parts.append(f"\x1b[?3{'h' if s.modes[modes.DECCOLM] else 'l'}\x1b[?40l")
    main, alt = (s.other_lines, s.lines) if s.alt else (s.lines, s.other_lines)
    history = [*s.history] if above is None else [*s.history][max(0, len(s.history) - above) :]
    pen = _rows(s, [*history, *main], parts, Pen())
    pen = _saved(s, 0, parts, pen)
    _keyboard(s.keyboard[0], parts)
    parts.append("\x1b[?1047h")
    parts += [f"\x1b[?{number >> 5}s" for number, on in s.saved_modes.items() if on and number in _SCREENS]
    pen = _rows(s, alt, parts, pen)
    pen = _saved(s, 1, parts, pen)
    _keyboard(s.keyboard[1], parts)
    if not s.alt:
        # 1047 would clear it on leaving.
        parts.append("\x1b[?47l")
    parts += _titles(s)
    for number, on in s.modes.items():
        if number not in _NEVER and on != modes.INITIAL[number]:
            parts.append(f"\x1b[?{number >> 5}{'h' if on else 'l'}")
    if s.modify_other_keys:
        parts.append(f"\x1b[>4;{s.modify_other_keys}m")
    if s.cursor_style:
        parts.append(f"\x1b[{s.cursor_style} q")
    parts.append("\x1b[3g" + "".join(f"\x1b[1;{stop + 1}H\x1bH" for stop in s.tabs))
    if s.modes[modes.DECLRMM]:
        parts.append(f"\x1b[?69h\x1b[{s.left + 1};{s.right + 1}s")
    if (s.top, s.bottom) != (0, s.rows - 1):
        parts.append(f"\x1b[{s.top + 1};{s.bottom + 1}r")
    return "".join(parts).encode() + _end(s, pen)


def _end(s: Emulator, pen: Pen) -> bytes:
    """Return the cursor, the pen, what printing depends on, and what has begun."""
    parts = []
    if s.guarded:
        # DECSCA after it would end it; SPA leaves its flag in the pen.
        parts.append("\x1bV")
        pen = pen._replace(flags=pen.flags | PROTECTED)
    if s.origin:
        parts.append("\x1b[?6h")
    row, column = (s.y - s.top, s.x - s.left) if s.origin else (s.y, s.x)
    x = s.x
    if s.pending:
        cell, mark, columns = _cell(s, s.lines[s.y], s.x)
        parts.append(f"\x1b[{row + 1};{column + 2 - columns}H")
        parts += [change(pen, s.brushes.pen(mark)), _drawn(cell, columns)]
        pen = s.brushes.pen(mark)
    else:
        parts.append(f"\x1b[{row + 1};{column + 1}H")
    repeats = s.last[-1:] if s.last and (x or s.pending) else ""
    parts.append(change(pen, s.brush.pen))
    for number in (modes.DECAWM, modes.IRM, modes.LNM, modes.REVERSE_WRAP, modes.CLUSTERS):
        on = s.modes[number]
        if on != modes.INITIAL[number]:
            private, code = ("?", number >> 5) if number >= 32 else ("", number)
            parts.append(f"\x1b[{private}{code}{'h' if on else 'l'}")
    if s.modes[modes.SYNCHRONIZED]:
        parts.append("\x1b[?2026h")
    parts += [f"\x1b{intermediate}{charset}" for intermediate, charset in zip("()*+", s.charsets, strict=True)]
    parts.append(("\x0f", "\x0e", "\x1bn", "\x1bo")[s.shift])
    if repeats:
        parts.append(_again(s, row, column))
    if s.single_shift:
        parts.append("\x1bN" if s.single_shift == 2 else "\x1bO")
    return "".join(parts).encode() + _begun(s)


def _again(s: Emulator, row: int, column: int) -> str:
    """Return the cell before the cursor, printed again as the last thing, of which REP repeats the character."""
    cell, mark, columns = _cell(s, s.lines[s.y], s.x if s.pending else s.x - 1)
    if mark != s.brush.mark or not width(s.last[-1]) or cell[:1] != s.last[-1] or s.insert:
        return ""
    if (mapping := s.mapping) is not None:
        cell = "".join(next((chr(code) for code, to in mapping.items() if to == one), one) for one in cell)
    column -= columns - 1 if s.pending else columns
    return f"\x1b[{row + 1};{column + 1}H{cell}"


def _begun(s: Emulator) -> bytes:
    """Return the beginning of a sequence or a character that more bytes finish."""
    state, held, _ = s.parser.dump()
    if state == STRING:
        # Half a picture would be drawn as one: only that a string has begun.
        return b"\x1bP" + s.undecoded
    begun = {GROUND: "", ESCAPE: "\x1b", CSI: "\x1b[", OSC: "\x1b]"}[int(str(state))] + str(held)
    return begun.encode() + s.undecoded


def _rows(s: Emulator, rows: list[Row], parts: list[str], pen: Pen) -> Pen:
    """Draw rows one below the other from the top; those that are too many scroll off, and are the rows above."""
    parts.append("\x1b[H")
    joined = padded = False
    for number, row in enumerate(rows):
        if number and not joined:
            parts.append(change(pen, Pen()) + "\r\n")
            pen = Pen()
        # A row that goes on in the next one is full, or padded for a wide character.
        goes_on = bool(row.wrapped) and number + 1 < len(rows)
        end = len(row.text) - (row.wrapped == PADDED and goes_on)
        if not goes_on:
            blank = s.brushes.default.mark
            end = max(len(row.text.rstrip(" ")), len(row.attrs.rstrip(blank)), 2 * padded or int(joined))
        x = 0
        while x < end:
            cell, mark, columns = _cell(s, row, x)
            drawn = s.brushes.pen(mark)
            parts.append(change(pen, drawn) + _drawn(cell, columns))
            pen = drawn
            x += columns
        joined, padded = goes_on, goes_on and row.wrapped == PADDED
        if padded:
            drawn = s.brushes.pen(row.attrs[-1])
            parts.append(f"{change(pen, drawn)}{_WIDE}\r")
            pen = drawn
    return pen


def _cell(s: Emulator, row: Row, x: int) -> tuple[str, str, int]:
    """Return what is in a cell, its mark and its columns; `x` may be the right half of it."""
    if row.text[x] == SPACER:
        x -= 1
    columns = 2 if row.text[x + 1 : x + 2] == SPACER else 1
    return s.clusters.text(row.text[x]), row.attrs[x], columns


def _drawn(cell: str, columns: int) -> str:
    """Return a cell as printed; one that only grapheme clusters make, in that mode."""
    widths = [width(character) for character in cell]
    if widths[0] == columns and not any(widths[1:]):
        return cell
    return f"\x1b[?2027h{cell}\x1b[?2027l"


def _saved(s: Emulator, number: int, parts: list[str], pen: Pen) -> Pen:
    """Save a cursor as DECSC did."""
    saved = s.saved[number]
    if saved == SavedCursor():
        return pen
    charsets = "".join(f"\x1b{intermediate}{one}" for intermediate, one in zip("()*+", saved.charsets, strict=True))
    parts.append(f"\x1b[{saved.y + 1};{saved.x + 1}H")
    if saved.pending:
        rows = (s.other_lines if s.alt else s.lines) if number == 0 else (s.lines if s.alt else s.other_lines)
        x, y = min(saved.x, s.cols - 1), min(saved.y, s.rows - 1)
        cell, mark, columns = _cell(s, rows[y], x)
        parts.append(f"\x1b[{y + 1};{x + 2 - columns}H{change(pen, s.brushes.pen(mark))}{_drawn(cell, columns)}")
        pen = s.brushes.pen(mark)
    parts += [change(pen, saved.pen), charsets, ("\x0f", "\x0e", "\x1bn", "\x1bo")[saved.shift]]
    if saved.origin:
        # DECOM moves the cursor, so it is switched where the cursor is home, and only then.
        parts.append("\x1b[?6h" + f"\x1b[{saved.y + 1};{saved.x + 1}H")
    parts.append("\x1b7\x1b[?6l\x0f\x1b(B\x1b)B\x1b*B\x1b+B")
    return saved.pen


def _keyboard(stack: list[int], parts: list[str]) -> None:
    parts.append(f"\x1b[={stack[0]}u" + "".join(f"\x1b[>{flags}u" for flags in stack[1:]) if stack != [0] else "")


def _titles(s: Emulator) -> list[str]:
    titles = [f"\x1b]2;{title}\x1b\\\x1b[22t" for title in s.titles]
    return [
        *titles, f"\x1b]1;{s.icon_title}\x1b\\", f"\x1b]2;{s.title}\x1b\\",
        f"\x1b]7;{s.cwd}\x1b\\" if s.cwd else "", f"\x1b]133;{s.zone}\x1b\\" if s.zone else "",
    ]  # fmt: skip
