"""Redaction of an emulator: all of its state that could show a secret, so that it can be drawn elsewhere.

Rules of this file: the emulator belongs to the caller and is changed. Rows are redacted as those of a `screen` result
are, each of the two screens with the rows above it; columns stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockpty.redact.redaction import redact_address, redact_title
from blockpty.runtime.redactor import Redactor
from blockpty.screen import frames
from blockpty.screen.cells import SPACER, Row
from blockpty.screen.emulator import Emulator
from blockpty.screen.parser import OSC
from blockpty.screen.pens import Pen
from blockpty.screen.protocol import Cursor, Frame, Line
from blockpty.screen.snapshot import Snapshot
from blockpty.spool.stream import StreamReader

_ASTERISK = "*"


def redact_emulator(emulator: Emulator, redactor: Redactor, stream: StreamReader, offset: int) -> None:
    """Redact everything that an emulator holds at an offset of the stream."""
    main, alt = emulator.lines, emulator.other_lines
    if emulator.alt:
        main, alt = alt, main
    above = len(emulator.history)
    for rows, first, is_alt in (([*emulator.history, *main], above, False), (alt, 0, True)):
        cursor = frames.cursor(emulator)
        if is_alt != emulator.alt:
            saved = emulator.saved[is_alt]
            cursor = Cursor(min(saved.x, emulator.cols - 1), min(saved.y, emulator.rows - 1), pending=saved.pending)
        lines = tuple([frames.line(emulator, row) for row in rows])
        cursor = cursor._replace(y=cursor.y + first)
        frame = Frame(emulator.cols, len(rows), lines, cursor, alt=is_alt)
        seen, _ = redactor.screen(Snapshot(frame, offset, offset, ()), stream)
        for row, before, after in zip(rows, lines, seen.frame.lines, strict=True):
            _redact_row(emulator, row, before, after)
    _redact_pens(emulator, redactor)
    emulator.title = _title(redactor, emulator.title)
    emulator.icon_title = _title(redactor, emulator.icon_title)
    emulator.titles = [_title(redactor, title) for title in emulator.titles]
    emulator.cwd = _address(redactor, emulator.cwd)
    state, held, too_long = emulator.parser.dump()
    if state == OSC:
        emulator.parser.restore([state, redactor.text(str(held), more=True), too_long])


def _redact_row(emulator: Emulator, row: Row, before: Line, after: Line) -> None:
    """Replace the text of a row by the redacted one, cell by cell."""
    text = "".join([run.text for run in after.runs])
    if text == "".join([run.text for run in before.runs]):
        return
    cells: list[str] = []
    at = 0
    for character in row.text:
        if character == SPACER:
            cells.append(SPACER if cells[-1] != _ASTERISK else " ")
            continue
        whole = emulator.clusters.text(character)
        cells.append(character if text[at : at + len(whole)] == whole else _ASTERISK)
        at += len(whole)
    row.text = "".join(cells)


def _redact_pens(emulator: Emulator, redactor: Redactor) -> None:
    """Redact the addresses of links."""
    brushes = emulator.brushes
    marks = {}
    for number in range(len(brushes)):
        pen = brushes.pen(chr(number))
        if (redacted := _pen(redactor, pen)) != pen:
            marks[number] = brushes.of(redacted).mark
    if not marks:
        return
    rows: Sequence[Row] = emulator.all_rows()
    for row in rows:
        row.attrs = row.attrs.translate(marks)
    emulator.brush = brushes.of(_pen(redactor, emulator.brush.pen))
    emulator.saved = [saved._replace(pen=_pen(redactor, saved.pen)) for saved in emulator.saved]


def _pen(redactor: Redactor, pen: Pen) -> Pen:
    return pen if pen.link is None else pen._replace(link=pen.link._replace(uri=_address(redactor, pen.link.uri)))


def _title(redactor: Redactor, text: str) -> str:
    return redact_title(redactor.text(text)) if redactor.redact else redactor.text(text)


def _address(redactor: Redactor, text: str) -> str:
    return redact_address(redactor.text(text)) if redactor.redact else redactor.text(text)
