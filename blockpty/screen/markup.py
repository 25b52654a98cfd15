"""A frame as a picture: HTML or SVG, complete in itself, with nothing of the stream that a browser could take for more.

Rules of this file: every text and attribute is escaped; a hyperlink is one only with a scheme that cannot run anything.
"""

from __future__ import annotations

import functools
from html import escape
from typing import Final

from blockpty.screen.pens import BOLD, CONCEAL, FAINT, ITALIC, OVERLINE, REVERSE, RGB, STRIKE, UNDERLINES, Pen
from blockpty.screen.protocol import Frame, Line

FOREGROUND: Final = "#d8d8d8"
BACKGROUND: Final = "#181818"
_FONT: Final = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_SCHEMES: Final = ("http://", "https://", "mailto:")
# Of a cell, in the picture's units; a monospace font of size 14 is about this wide.
_CELL_WIDTH: Final = 8.4
_CELL_HEIGHT: Final = 17
_BASELINE: Final = 13
_MARGIN: Final = 8


@functools.cache
def palette(number: int) -> str:
    """Return a colour of the palette, 0 to 255, as `#rrggbb`."""
    # Imported with the first picture: pyte takes a while.
    from pyte.graphics import FG_BG_256

    return f"#{FG_BG_256[number]}"


def _color(color: int | None, default: str) -> str:
    if color is None:
        return default
    return palette(color) if color < RGB else f"#{color - RGB:06x}"


def _colors(pen: Pen, reverse: bool) -> tuple[str, str]:
    """Return the foreground and background as drawn."""
    fg, bg = _color(pen.fg, FOREGROUND), _color(pen.bg, BACKGROUND)
    if bool(pen.flags & REVERSE) != reverse:
        fg, bg = bg, fg
    return (bg, bg) if pen.flags & CONCEAL else (fg, bg)


def _style(pen: Pen) -> list[str]:
    """Return the style of the text but for its colours."""
    style = []
    if pen.flags & BOLD:
        style.append("font-weight:bold")
    if pen.flags & ITALIC:
        style.append("font-style:italic")
    if pen.flags & FAINT:
        style.append("opacity:0.6")
    lines = [name for flag, name in ((STRIKE, "line-through"), (OVERLINE, "overline")) if pen.flags & flag]
    if pen.underline:
        name = {"single": "solid", "curly": "wavy"}.get(UNDERLINES[pen.underline], UNDERLINES[pen.underline])
        lines += ["underline", name]
        if pen.underline_color is not None:
            lines.append(_color(pen.underline_color, FOREGROUND))
    if lines:
        style.append(f"text-decoration:{' '.join(lines)}")
    return style


def html(frame: Frame) -> str:
    """Return a page that shows the frame."""
    reverse = frame.modes.reverse_video
    rows = "\n".join([_html_row(line, reverse) for line in frame.lines])
    fg, bg = _colors(Pen(), reverse)
    title = escape(frame.title) or "screen"
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{title}</title></head>\n'
        f'<body style="margin:0;background:{bg}"><pre style="margin:8px;color:{fg};background:{bg};'
        f'font:14px/17px {_FONT}">{rows}</pre></body></html>\n'
    )


PAGE_END: Final = "</pre></body></html>\n"


def page_begin(title: str) -> str:
    """Return the beginning of a page of lines: nothing in it can run or load anything."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{policy}"><title>{escape(title)}</title></head>\n'
        f'<body style="margin:0;background:{BACKGROUND}"><pre style="margin:8px;white-space:pre-wrap;'
        f'overflow-wrap:anywhere;color:{FOREGROUND};font:14px/17px {_FONT}">\n'
    )


def html_text(text: str) -> str:
    """Return a text as it stands in a page."""
    return escape(text)


def html_around(pen: Pen) -> tuple[str, str]:
    """Return what stands before and behind a text that is drawn with a pen in the rows of such a page."""
    return _around(pen, False)


def html_line(line: Line) -> str:
    """Return a row of such a page, with its line end unless it goes on in the next row."""
    return _html_row(line, False) + ("" if line.wrapped else "\n")


# A program uses a handful of pens, and a hostile one as many as it likes.
@functools.lru_cache(maxsize=4096)
def _around(pen: Pen, reverse: bool) -> tuple[str, str]:
    """Return the tags around a text, both "" for one that is drawn with nothing."""
    before = behind = ""
    if pen != Pen():
        fg, bg = _colors(pen, reverse)
        style = ";".join([f"color:{fg}", f"background:{bg}", *_style(pen)])
        before, behind = f'<span style="{style}">', "</span>"
    if pen.link is not None and pen.link.uri.lower().startswith(_SCHEMES):
        link = f'<a rel="noopener noreferrer" style="color:inherit" href="{escape(pen.link.uri)}">'
        before, behind = f"{link}{before}", f"{behind}</a>"
    return before, behind


def _html_row(line: Line, reverse: bool) -> str:
    parts = []
    for run in line.runs:
        before, behind = _around(run.pen, reverse)
        parts.append(f"{before}{escape(run.text)}{behind}")
    row = "".join(parts)
    return row if line.wrapped else row.rstrip(" ")


def svg(frame: Frame) -> str:
    """Return a picture of the frame; the cursor, where it is visible, is an outline."""
    reverse = frame.modes.reverse_video
    width = round(frame.cols * _CELL_WIDTH + 2 * _MARGIN, 1)
    height = frame.rows * _CELL_HEIGHT + 2 * _MARGIN
    fg, bg = _colors(Pen(), reverse)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="{_FONT}" font-size="14">\n<title>{escape(frame.title) or "screen"}</title>\n'
        f'<rect width="100%" height="100%" fill="{bg}"/>\n'
    ]
    for y, line in enumerate(frame.lines):
        x = 0
        for run in line.runs:
            parts.append(_svg_run(run.text, x, y, run.width, run.pen, reverse, bg))
            x += run.width
    if frame.cursor.visible:
        left, top = round(_MARGIN + frame.cursor.x * _CELL_WIDTH, 1), _MARGIN + frame.cursor.y * _CELL_HEIGHT
        parts.append(
            f'<rect x="{left}" y="{top}" width="{_CELL_WIDTH}" height="{_CELL_HEIGHT}" fill="none" stroke="{fg}"/>\n'
        )
    parts.append("</svg>\n")
    return "".join(parts)


def _svg_run(text: str, x: int, y: int, columns: int, pen: Pen, reverse: bool, page: str) -> str:
    fg, bg = _colors(pen, reverse)
    left, top = round(_MARGIN + x * _CELL_WIDTH, 1), _MARGIN + y * _CELL_HEIGHT
    length = round(columns * _CELL_WIDTH, 1)
    parts = []
    if bg != page:
        parts.append(f'<rect x="{left}" y="{top}" width="{length}" height="{_CELL_HEIGHT}" fill="{bg}"/>\n')
    style = _style(pen)
    shown = text if style else text.rstrip(" ")
    if shown.strip(" ") or pen.underline:
        # The length makes columns meet whatever font there is.
        columns -= len(text) - len(shown)
        parts.append(
            f'<text x="{left}" y="{top + _BASELINE}" xml:space="preserve" fill="{fg}" '
            f'textLength="{round(columns * _CELL_WIDTH, 1)}" lengthAdjust="spacingAndGlyphs"'
            f"{_svg_style(style)}>{escape(shown)}</text>\n"
        )
    return "".join(parts)


def _svg_style(style: list[str]) -> str:
    return f' style="{";".join(style)}"' if style else ""
