"""Snapshots: a frame with its place in the record, and as plain text, text for an agent, JSON, HTML, SVG or output.

Rules of this file: pure functions of a frame. Rows and columns count from 0, cursors are (column, row).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from blockpty.screen.accents import accents
from blockpty.screen.cells import width
from blockpty.screen.markup import html, svg
from blockpty.screen.pens import FLAG_NAMES, PROTECTED, RGB, UNDERLINES, Pen
from blockpty.screen.protocol import Frame, Line

FORMATS: Final = ("text", "json", "ansi", "html", "svg", "agent", "annotated")
_HEAD: Final = "[Terminal Screen"
_END: Final = "[End Terminal Screen]"


class Snapshot(Struct, frozen=True, dict=True):
    """A frame, and how it relates to earlier ones.

    Attributes:
        frame: what is shown.
        seqno: where in the record it was taken.
        offset: how much of the stream it shows.
        changed: rows that differ from what they were at `since`, or all.
        above: the rows that scrolled off last, four or as many as the text of the first row begins in.
        bells: how often the bell rang since the record began.
        unhandled: sequences that were not obeyed since then: how many of each kind.
    """

    frame: Frame
    seqno: int
    offset: int
    changed: tuple[int, ...]
    above: tuple[Line, ...] = ()
    bells: int = 0
    unhandled: Mapping[str, int] = field(default_factory=dict)

    @functools.cached_property
    def text_hash(self) -> str:
        """Of the characters."""
        return _digest("\n".join([line.text for line in self.frame.lines]))

    @functools.cached_property
    def attrs_hash(self) -> str:
        """Of how each cell is drawn."""
        return _digest("\n".join([_drawn(line) for line in self.frame.lines]))

    @functools.cached_property
    def cursor_hash(self) -> str:
        """Of the cursor: its place, and whether and how it is shown."""
        return _digest(repr(self.frame.cursor))


def render(snapshot: Snapshot, style: str) -> str | dict[str, Any]:
    """Return a snapshot in one of `FORMATS`; `json` gives values that JSON has.

    Raises:
        ValueError: there is no such format.
    """
    frame = snapshot.frame
    if style == "json":
        return as_json(snapshot)
    makers = {"text": text, "ansi": ansi, "agent": agent, "annotated": annotated, "html": html, "svg": svg}
    if style not in makers:
        raise ValueError(f"no screen format {style!r}; there are {', '.join(FORMATS)}")
    return makers[style](frame)


def text(frame: Frame) -> str:
    """Return the rows without the blanks at their ends, and without the empty ones at the end."""
    return "\n".join([line.text for line in frame.lines]).rstrip("\n")


def agent(frame: Frame) -> str:
    """Return the rows between two lines that say what they are. No row can pass for one of the two."""
    return between(frame, text(frame).split("\n"))


def between(frame: Frame, rows: Sequence[str]) -> str:
    """Return any rows of a terminal between these two lines."""
    shown = "Yes" if frame.alt else "No"
    head = f"{_HEAD} - {frame.cols}x{frame.rows} - Alt Screen: {shown} - Cursor: ({frame.cursor.x}, {frame.cursor.y})]"
    shown_rows = [f" {row}" if row.startswith((_HEAD, _END)) else row for row in rows]
    return "\n".join([head, *shown_rows, _END])


def annotated(frame: Frame) -> str:
    """Return what `agent` does, and a line for each text that is drawn to stand out; no row can pass for one."""
    return "\n".join([agent(frame), *(accent.sentence for accent in accents(frame))])


def as_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return everything, the cells as runs of cells drawn alike; what is default is left out of a run."""
    frame = snapshot.frame
    return {
        "cols": frame.cols,
        "rows": frame.rows,
        "alt_screen": frame.alt,
        "title": frame.title,
        "cwd": frame.cwd,
        "zone": frame.zone,
        "cursor": frame.cursor._asdict(),
        "modes": frame.modes._asdict(),
        "seqno": snapshot.seqno,
        "offset": snapshot.offset,
        "changed": list(snapshot.changed),
        "hash": {"text": snapshot.text_hash, "attrs": snapshot.attrs_hash, "cursor": snapshot.cursor_hash},
        "lines": [line_json(line) for line in frame.lines],
    }


def line_json(line: Line) -> dict[str, Any]:
    """Return one row: its runs, and whether its text goes on in the next row."""
    runs = [{"text": run.text, "width": run.width, **_pen_json(run.pen)} for run in line.runs]
    return {"runs": runs, "wrapped": True} if line.wrapped else {"runs": runs}


def _pen_json(pen: Pen) -> dict[str, Any]:
    values: dict[str, Any] = {name: True for flag, name in FLAG_NAMES.items() if pen.flags & flag}
    for name, color in (("fg", pen.fg), ("bg", pen.bg), ("underline_color", pen.underline_color)):
        if color is not None:
            values[name] = color if color < RGB else f"#{color - RGB:06x}"
    if pen.underline:
        values["underline"] = UNDERLINES[pen.underline]
    if pen.link is not None:
        values["link"] = pen.link.uri
    return values


def ansi(frame: Frame) -> str:
    """Return output that draws the frame on a terminal of the same size that has just been reset.

    Cells, cursor, pen, title and what the program asked of keyboard and mouse come out the same. Margins, tab stops and
    modes that change how text is printed (IRM, DECOM, DECAWM, LNM) are not part of it.
    """
    parts = ["\x1b[?1049h" if frame.alt else "", "\x1b[H\x1b[2J"]
    pen = Pen()
    joined = False
    for y, line in enumerate(frame.lines):
        goes_on = line.wrapped and y + 1 < frame.rows
        runs = list(line.runs)
        if not goes_on:
            while runs and runs[-1].pen == Pen() and not runs[-1].text.strip(" "):
                runs.pop()
        if joined and not runs:
            runs = [line.runs[0]]
        if runs and not joined:
            parts.append(f"\x1b[{y + 1}H")
        for run in runs:
            parts.append(change(pen, run.pen))
            parts.append(run.text)
            pen = run.pen
        joined = goes_on
    cursor = frame.cursor
    if cursor.pending:
        # Print the last cell again, so that the wrap is pending again.
        last = frame.lines[cursor.y].runs[-1]
        parts.append(_last_cell(frame, pen))
        pen = last.pen
    else:
        parts.append(f"\x1b[{cursor.y + 1};{cursor.x + 1}H")
    parts.append(change(pen, frame.pen))
    parts.append(_modes(frame))
    return "".join(parts)


def _last_cell(frame: Frame, pen: Pen) -> str:
    y = frame.cursor.y
    last = frame.lines[y].runs[-1]
    at = len(last.text)
    while at > 1 and not width(last.text[at - 1]):
        at -= 1
    cell = last.text[max(0, at - 1) :]
    columns = max(1, width(cell[:1]))
    return f"\x1b[{y + 1};{max(1, frame.cols + 1 - columns)}H{change(pen, last.pen)}{cell}"


def change(old: Pen, new: Pen) -> str:
    """Return what makes one pen another."""
    if old == new:
        return ""
    parts = []
    if old[:5] != new[:5]:
        parts.append(f"\x1b[{sgr(new)}m")
    if (old.flags ^ new.flags) & PROTECTED:
        parts.append('\x1b[1"q' if new.flags & PROTECTED else '\x1b[0"q')
    if old.link != new.link:
        link = new.link
        parts.append(f"\x1b]8;{'id=' + link.id if link.id else ''};{link.uri}\x1b\\" if link else "\x1b]8;;\x1b\\")
    return "".join(parts)


def sgr(pen: Pen) -> str:
    """Return the parameters that make this pen of any other."""
    codes = [str(code) for code, flag in _CODES if pen.flags & flag]
    if pen.underline:
        codes.append("4" if pen.underline == 1 else f"4:{pen.underline}")
    for color, base in ((pen.fg, 30), (pen.bg, 40)):
        if color is not None:
            codes.append(str(base + color) if color < 8 else _extended(color, base + 8, ";"))
    if pen.underline_color is not None:
        codes.append(_extended(pen.underline_color, 58, ":"))
    return ";".join(["0", *codes])


_CODES: Final = ((1, 1), (2, 2), (3, 4), (5, 8), (7, 16), (8, 32), (9, 64), (53, 128))


def _extended(color: int, code: int, between: str) -> str:
    if color < RGB:
        return f"{code}{between}5{between}{color}"
    channels = between.join(str(color >> shift & 255) for shift in (16, 8, 0))
    return f"{code}{between}2{between}{':' if between == ':' else ''}{channels}"


SHAPE_CODES: Final = {("block", True): 1, ("block", False): 2, ("underline", True): 3, ("underline", False): 4,
                       ("bar", True): 5, ("bar", False): 6}  # fmt: skip
MOUSE_CODES: Final = {"press": 9, "click": 1000, "drag": 1002, "motion": 1003}
ENCODING_CODES: Final = {"utf8": 1005, "sgr": 1006, "urxvt": 1015, "sgr-pixels": 1016}


def _modes(frame: Frame) -> str:
    cursor, modes = frame.cursor, frame.modes
    private = [
        (1, modes.application_cursor),
        (5, modes.reverse_video),
        (66, modes.application_keypad),
        (1004, modes.focus_events),
        (2004, modes.bracketed_paste),
        (MOUSE_CODES.get(modes.mouse), modes.mouse != "off"),
        (ENCODING_CODES.get(modes.mouse_encoding), modes.mouse_encoding != "x10"),
    ]
    parts = [f"\x1b[?{number}h" for number, on in private if on]
    if not cursor.visible:
        parts.append("\x1b[?25l")
    parts.append(f"\x1b[{SHAPE_CODES[cursor.shape, cursor.blink]} q")
    if modes.keyboard:
        parts.append(f"\x1b[={modes.keyboard}u")
    if modes.modify_other_keys:
        parts.append(f"\x1b[>4;{modes.modify_other_keys}m")
    if frame.title:
        parts.append(f"\x1b]2;{frame.title}\x1b\\")
    return "".join(parts)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@functools.lru_cache(4096)
def _pen(pen: Pen) -> str:
    return repr(tuple(pen))


def _drawn(line: Line) -> str:
    return ";".join([f"{run.width}{_pen(run.pen)}" for run in line.runs])
