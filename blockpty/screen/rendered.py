"""Rendered output: what a person sees of it in the end, progress bars collapsed, cursor moves and overwriting applied.

Rules of this file: the output is drawn on a screen of the terminal's size, and a row is text once it has left the top,
since nothing can change it any more. So memory is bounded by the screen, and the text comes in order. Soft-wrapped rows
are one line; blanks at a line's end are gone; what was on the alternate screen is not part of it. Long runs of plain
lines take a way around the drawing that gives the same text (tests compare both).
"""

from __future__ import annotations

import binascii
import re
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from ahocorasick_rs import BytesAhoCorasick

from blockpty.screen import fastforward, frames
from blockpty.screen.cells import NARROW_RANGES, PADDED, SPACER, Row
from blockpty.screen.emulator import Emulator
from blockpty.screen.pens import Brush, Brushes, Pen
from blockpty.screen.protocol import Line

_SLICE: Final = 256 * 1024
_LEAST_RUN: Final = 8 * 1024
# Digits and separators as one range: a tenth faster than as a set.
_SHOWS_NOTHING: Final = re.compile(rb"\x1b\[(?:[0-;]{0,255}+m|0?K)")
_NO_COLOUR: Final = re.compile(rb"\x1b(?!\[[0-;]{0,255}+m)")
# Quoted-printable takes out all from "=" CR to the next LF: these are exchanged with the ends of a colour, ESC [ and m.
_SWAPPED: Final = bytes.maketrans(b"\x1b[m=\r\n", b"=\r\n\x1b[m")
# What lines consist of beside their ends, in ASCII and in UTF-8.
_PRINTABLE: Final = bytes(range(0x20, 0x7F))
_ABOVE_ASCII: Final = bytes(range(0x80, 0x100))
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[0-9;:]{0,255})?")
_LONGEST_SEQUENCE: Final = 258
# Ten times as fast as `in`. A sequence between CR and LF can erase the line.
_ERASED: Final = BytesAhoCorasick([b"\r\x1b"])
_BLANKS: Final = BytesAhoCorasick([b" \n"])
_DRAWS_NOTHING: Final = re.compile(r"(\x1b\[[0-;]{0,255}+[mK])")
# A text with none of these is the same in every style.
_MARKUP: Final = b"&<>\"'"
_TO_THE_END: Final = ("\x1b[K", "\x1b[0K")
# Of a hostile program each character has another colour.
_REMEMBERED: Final = 4096
# Characters of its sequences together, where how a line is written is remembered.
_LONGEST_KNOWN: Final = 512
_PLAIN: Final = re.compile(f"[{NARROW_RANGES}\r\n\x07\x1b]*")


class Part(NamedTuple):
    """Text that is final.

    Attributes:
        text: the text.
        as_printed: these are whole lines from a fresh line on that show what the program printed, character by
            character, but for colours and the blanks at the ends of lines.
    """

    text: str
    as_printed: bool = False


class Rendered:
    """Output on its way to what is seen in the end. Any bytes, in any pieces."""

    def __init__(self, cols: int = 80, rows: int = 24, least_run: int = _LEAST_RUN) -> None:
        self._emulator = Emulator(cols, rows, history_rows=0)
        self._emulator.scrolled_off = self._scrolled_off
        self._left: list[str] = []
        # Which of these are as printed.
        self._as_printed: list[int] = []
        self._blanks = 0
        # Rows at the top of the screen that only stand for what has been written.
        self._written = 0
        self._least_run = least_run
        # What follows a run of plain lines: it is drawn once it is known that the run does not go on.
        self._held = b""

    def feed(self, data: bytes) -> str:
        """Take the next bytes; return the text that is final now."""
        return "".join([part.text for part in self.parts(data)])

    def parts(self, data: bytes, shown: bytes | None = None) -> list[Part]:
        """Take the next bytes; return the text that is final now, and which of it is as printed.

        `shown`: what `plain_lines` makes of the data, where that is known already.
        """
        for at in range(0, len(data), _SLICE):
            self._feed(data[at : at + _SLICE], shown if len(data) <= _SLICE else None)
        parts, begin = [], 0
        for number in self._as_printed:
            parts += [Part("".join(self._left[begin:number])), Part(self._left[number], True)]
            begin = number + 1
        parts.append(Part("".join(self._left[begin:])))
        self._left.clear()
        self._as_printed.clear()
        return [part for part in parts if part.text]

    def resize(self, cols: int, rows: int) -> str:
        """Change the size of the screen; return the text that is final now."""
        self._draw_held()
        for row in _resized(self._emulator, cols, rows):
            self._leave(row)
        return self._drawn()

    def finish(self) -> str:
        """Return what is still on the screen, because nothing follows."""
        self._draw_held()
        rows = _remaining(self._emulator)
        for row in rows:
            self._leave(row)
        text = self._drawn()
        return text if rows[-1].wrapped else text[:-1]

    def _drawn(self) -> str:
        text = "".join(self._left)
        self._left.clear()
        return text

    def _scrolled_off(self, row: Row) -> None:
        if self._written:
            self._written -= 1
        else:
            self._leave(row)

    def _leave(self, row: Row) -> None:
        text = self._emulator.clusters.text(row.text[:-1] if row.wrapped == PADDED else row.text).replace(SPACER, "")
        shown = text.rstrip(" ")
        if shown and self._blanks:
            self._left.append(" " * self._blanks)
        self._left.append(shown)
        if row.wrapped:
            # Blanks where a line wraps belong to it only if something follows them.
            self._blanks = len(text) - len(shown) + (0 if shown else self._blanks)
        else:
            self._left.append("\n")
            self._blanks = 0

    def _draw_held(self) -> None:
        held, self._held = self._held, b""
        self._emulator.feed(held)

    def _feed(self, data: bytes, shown: bytes | None = None) -> None:
        resumed = bool(self._held)
        if resumed and shown is not None:
            held = plain_lines(self._held)
            shown = None if held is None else held + shown
        data, self._held = self._held + data, b""
        at = 0
        if len(data) >= self._least_run:
            # Mostly all of it is plain lines, which costs less to find out while they are written than before.
            at = self._write_run(data, 0, 0, _finished(data), whole=False, resumed=resumed, shown=shown)
            for begin, end in fastforward.pure_runs(data, self._least_run) if not self._held else ():
                at = self._write_run(data, at, max(begin, at), end, whole=True)
        if not self._held:
            self._emulator.feed(data[at:] if at else data)

    def _write_run(
        self,
        data: bytes,
        at: int,
        begin: int,
        end: int,
        *,
        whole: bool,
        resumed: bool = False,
        shown: bytes | None = None,
    ) -> int:
        """Write the plain lines of a run, drawing what stands before it from `at`; return how far that went.

        `whole`: all of the run is known to be pure. `resumed`: the run goes on at a fresh line. `shown`: what
        `plain_lines` makes of all the data, where the run begins with them.
        """
        emulator = self._emulator
        first = begin if resumed else data.find(b"\n", begin, end) + 1
        cut = fastforward.cut(data, first, end, 2 * emulator.rows) if first or resumed else None
        if cut is None or not (whole or fastforward.is_pure(data[cut:end])):
            return at
        emulator.feed(data[at:first])
        # With so many line feeds the cursor is on the last row, wherever it was.
        if not self._on_fresh_line() or fastforward.cut(data, first, cut, emulator.rows) is None:
            return first
        if shown is not None:
            begin = shown.find(b"\n") + 1 if first else 0
            shown = shown[begin : fastforward.line_end(shown, data.count(b"\n", cut))]
        seen = self._seen(data[first:cut], shown)
        if seen is None:
            return first
        for row in emulator.lines[self._written : emulator.y]:
            self._leave(row)
        if self._blanks and not seen.startswith("\n"):
            self._left.append(" " * self._blanks)
        self._as_printed.append(len(self._left))
        self._left.append(seen)
        self._blanks = 0
        fastforward.carry(emulator, data, first, cut)
        # What stands above it has been written; all of it leaves before the run ends.
        emulator.lines[:] = [emulator.blank_row() for _ in range(emulator.rows)]
        emulator.y = self._written = emulator.rows - 1
        if end >= _finished(data) and len(data) - cut < _SLICE:
            self._held = data[cut:]
        return cut

    def _seen(self, data: bytes, shown: bytes | None) -> str | None:
        """Return whole lines from a fresh line on as they will be seen; None where they must be drawn for that."""
        return _plain(plain_lines(data) if shown is None else shown)

    def _on_fresh_line(self) -> bool:
        """Whether lines that come now only push up what is there."""
        s = self._emulator
        ready = fastforward.ready(s) and s.plain and s.autowrap and not s.alt and s.x == 0 and not s.pending
        return ready and not any(row.text.strip(" ") for row in s.lines[s.y :])


class RowStyle(NamedTuple):
    """Style in which rows are written.

    Attributes:
        row: a row as it is drawn, with its line end unless it goes on in the next one.
        text: a text that is drawn with nothing.
        around: what stands before and behind a text that is drawn with a pen; both empty for the default one.
        unpadded: leave out the cell that a wide character had no room in at the end of a row.
    """

    row: Callable[[Line], str]
    text: Callable[[str], str]
    around: Callable[[Pen], tuple[str, str]]
    unpadded: bool = False


class Drawing(Rendered):
    """Output as `Rendered` takes it, but each row as a style writes what is drawn.

    Lines with nothing but text and colours need no screen for that, as long as no background is among these: it would
    be that of the cells beside the text, too.
    """

    def __init__(self, cols: int, rows: int, style: RowStyle, least_run: int = _LEAST_RUN) -> None:
        super().__init__(cols, rows, least_run)
        self._style = style
        self._rows: dict[str, _KnownRow | None] = {}

    def finish(self) -> str:
        """Return what is still on the screen, because nothing follows."""
        self._draw_held()
        for row in _remaining(self._emulator):
            self._leave(row)
        return self._drawn()

    def _leave(self, row: Row) -> None:
        line = frames.line(self._emulator, row)
        if self._style.unpadded and row.wrapped == PADDED:
            last = line.runs[-1]
            line = line._replace(runs=(*line.runs[:-1], last._replace(text=last.text[:-1], width=last.width - 1)))
        self._left.append(self._style.row(line))

    def _on_fresh_line(self) -> bool:
        s = self._emulator
        blank = s.blank_attrs(s.brushes.default.mark)
        return super()._on_fresh_line() and all(row.attrs == blank for row in s.lines[s.y :])

    def _seen(self, data: bytes, shown: bytes | None) -> str | None:
        s = self._emulator
        if s.brush.pen.bg is not None or s.brush.pen.link is not None:
            return None
        if shown is None and plain_lines(data) is None:
            return None
        text = data.decode("utf-8", "replace")
        text = text.replace("\x07", "") if "\x07" in text else text
        if _is_wide(text):
            return None
        if len(self._rows) > _REMEMBERED:
            self._rows.clear()
        markup = len(data.translate(None, _MARKUP)) != len(data)
        return _LineWriter(self._style, s.cols, s.brushes, self._rows, markup).written(text, s.brush)


class _KnownRow(NamedTuple):
    """How lines are written that have the same sequences, with some text between each two.

    Attributes:
        tags: what stands in place of each sequence.
        last: the last sequence in whose place something stands.
        before: characters of the sequences before that one.
    """

    tags: list[str]
    last: str
    before: int


class _LineWriter:
    """Lines in a style: text that has no background, in rows of so many columns.

    A run of text with one brush is written as one, within its row. Blanks that nothing follows on the last row of a
    line were never drawn. Most lines begin and end with the default brush, and many have the same sequences: for these
    it is known what is written in place of each.
    """

    def __init__(
        self, style: RowStyle, cols: int, brushes: Brushes, known: dict[str, _KnownRow | None], markup: bool
    ) -> None:
        self._style = style
        self._cols = cols
        self._brushes = brushes
        self._known = known
        self._markup = markup
        self._out: list[str] = []
        # Columns of the row that are written, the run that it ends with, what ends that, and where in `_out` it begins.
        self._x = 0
        self._run: Brush | None = None
        self._behind = ""
        self._begin = 0

    def written(self, text: str, brush: Brush) -> str | None:
        """Return whole lines as they are written, from a brush on; None where there is more than is written here."""
        out, default, known, cols = self._out, self._brushes.default, self._known, self._cols
        markup = self._markup
        if brush is default and "\x1b" not in text and " \r" not in text:
            plain = text.replace("\r\n", "\n")
            return self._style.text(plain) if markup else plain
        # In most texts no two sequences stand together, and to ask each line takes a tenth of the time.
        adjacent = "m\x1b" in text or "K\x1b" in text
        for line in text[:-2].split("\r\n"):
            if brush is default:
                if "\x1b" not in line:
                    last = max(0, len(line) - 1) // cols * cols
                    plain = line[:last] + line[last:].rstrip(" ") if line.endswith(" ") else line
                    out.append(self._style.text(plain) if markup else plain)
                    continue
                pieces = _DRAWS_NOTHING.split(line)
                sequences = "".join(pieces[1::2])
                row = known.get(sequences)
                if row is None and sequences not in known and len(sequences) <= _LONGEST_KNOWN:
                    row = known[sequences] = self._row(pieces[1::2])
                if (
                    row is not None
                    and not (adjacent and "" in pieces[2:-1:2])
                    and (len(line) - len(sequences) <= cols or line.rfind(row.last) - row.before <= cols)
                ):
                    pieces[1::2] = row.tags
                    if markup:
                        pieces[::2] = map(self._style.text, pieces[::2])
                    whole = "".join(pieces)
                    if not whole.endswith(" "):
                        out.append(whole)
                        continue
            after = self._write_line(line, brush)
            if after is None:
                return None
            brush = after
        out.append("")
        return "\n".join(out)

    def _row(self, sequences: list[str]) -> _KnownRow | None:
        """Return how lines are written whose texts have these sequences between them; None where that is not known."""
        default = run = self._brushes.default
        known, before = _KnownRow([], "", 0), 0
        for sequence in sequences:
            brush = self._after(run, sequence)
            if brush is None or brush.pen.bg is not None:
                return None
            known.tags.append("" if brush is run else self._around(run)[1] + self._around(brush)[0])
            if brush is not run:
                known = known._replace(last=sequence, before=before)
            before += len(sequence)
            run = brush
        return known if run is default else None

    def _after(self, brush: Brush, sequence: str) -> Brush | None:
        """Return the brush after a sequence; None where one erases what stands before it."""
        if sequence in _TO_THE_END:
            return brush  # behind the text there is nothing to erase
        return None if sequence[-1] == "K" else brush.after.get(sequence) or self._brushes.apply(brush, sequence)

    def _around(self, brush: Brush) -> tuple[str, str]:
        return self._style.around(brush.pen)

    def _write_line(self, line: str, brush: Brush) -> Brush | None:
        """Write a line piece by piece; return the brush behind it, None where there is more than is written here."""
        first = len(self._out)
        each = iter([*_DRAWS_NOTHING.split(line), ""])
        for text, sequence in zip(each, each, strict=True):
            self._write(brush, text)
            after = self._after(brush, sequence) if sequence else brush
            if after is None or after.pen.bg is not None:
                return None
            brush = after
        if self._run is self._brushes.default and self._out[-1].endswith(" "):
            self._out[self._begin :] = ["".join(self._out[self._begin :]).rstrip(" ")]
        self._end_run()
        self._out[first:] = ["".join(self._out[first:])]
        self._x = 0
        return brush

    def _write(self, brush: Brush, text: str) -> None:
        """Write a text with a brush, in as many rows as it takes."""
        while text:
            piece, text = text[: self._cols - self._x], text[self._cols - self._x :]
            if piece:
                if brush is not self._run:
                    self._begin_run(brush)
                self._x += len(piece)
                self._out.append(self._style.text(piece) if self._markup else piece)
            if text:
                self._end_run()
                self._x = 0

    def _begin_run(self, brush: Brush) -> None:
        before, behind = self._around(brush)
        self._out.append(self._behind)
        self._begin = len(self._out)
        self._out.append(before)
        self._run, self._behind = brush, behind

    def _end_run(self) -> None:
        self._out.append(self._behind)
        self._run, self._behind = None, ""


def _finished(data: bytes) -> int:
    """Return where a sequence begins that goes on behind data, or the end."""
    at = data.rfind(b"\x1b", -_LONGEST_SEQUENCE)
    return at if at >= 0 and _UNFINISHED.fullmatch(data, at) else len(data)


def _resized(emulator: Emulator, cols: int, rows: int) -> list[Row]:
    """Change the size, and return the rows that leave the top by that."""
    kept, emulator.history = emulator.history, deque()
    emulator.resize(cols, rows)
    left, emulator.history = list(emulator.history), kept
    return left


def _remaining(emulator: Emulator) -> list[Row]:
    """Return the rows of the main screen that hold something, at least down to the cursor."""
    rows, y = (emulator.other_lines, emulator.saved[0].y) if emulator.alt else (emulator.lines, emulator.y)
    last = max([number for number, row in enumerate(rows) if row.text.strip(" ")] + [min(y, len(rows) - 1)])
    return rows[: last + 1]


def plain_lines(data: bytes) -> bytes | None:
    """Return what lines show, with their line ends; None where there is more than text, colours and CR LF.

    A line may be erased to its end, and BEL shows nothing.
    """
    if b"\x1b" in data:
        if _ERASED.find_matches_as_indexes(data):
            return None
        data = _without_colours(data)
    if b"\x07" in data:
        data = data.translate(None, b"\x07")
    return data if _are_lines(data) else None


def _without_colours(data: bytes) -> bytes:
    """Return data without colours, and without sequences that erase a line to its end."""
    colours = data.replace(b"\x1b[K", b"\x1b[m")
    if _NO_COLOUR.search(colours) is not None:
        return b"".join(_SHOWS_NOTHING.split(data))  # a tenth faster than `sub`
    # Takes no object for each text between two colours: with all else an export takes a fifth less time.
    return binascii.a2b_qp(colours.translate(_SWAPPED)).translate(_SWAPPED)


def _plain(shown: bytes | None) -> str | None:
    """Return plain lines as they will be seen, where that takes no screen; None where it does."""
    if shown is None:
        return None
    data = shown.translate(None, b"\r")
    text = data.decode("utf-8", "replace")
    if _is_wide(text):
        return None
    if _BLANKS.find_matches_as_indexes(data):
        return "\n".join([line.rstrip(" ") for line in text.split("\n")])
    return text


def _are_lines(data: bytes) -> bool:
    """Whether there are only printable characters and CR LF."""
    ends = data.translate(None, _PRINTABLE)
    if not data.isascii():
        ends = ends.translate(None, _ABOVE_ASCII)
    return ends == b"\r\n" * (len(ends) // 2)


def _is_wide(text: str) -> bool:
    """Whether lines may have characters that do not take one column each."""
    return not text.isascii() and _PLAIN.fullmatch(text) is None
