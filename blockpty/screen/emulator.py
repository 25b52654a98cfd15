"""The emulator: bytes in, a grid of cells out.

Rules of this file: it decodes, has the parser cut the text, draws what is text on its state (state.py) and obeys what
is a sequence by the tables (sequences.py). It reads no clock and raises on no bytes.
"""

from __future__ import annotations

import base64
import codecs
from typing import Any, Final

from blockpty.screen import checkpoint, frames, modes, reflow, sequences
from blockpty.screen.cells import SPACER, is_narrow
from blockpty.screen.parser import GROUND, STARTS, Parser, pieces
from blockpty.screen.protocol import Cursor, Frame
from blockpty.screen.state import HISTORY_ROWS, ScreenState, checked_size

_SLICE: Final = 65536


class Emulator(ScreenState):
    """A terminal of `cols` by `rows` that is fed with bytes; implements `protocol.EmulatedScreen`."""

    def __init__(self, cols: int = 80, rows: int = 24, history_rows: int = HISTORY_ROWS) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.parser = Parser(self)
        super().__init__(cols, rows, history_rows)

    # --- the path of the bytes ------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take the next bytes that the program printed."""
        if len(data) <= _SLICE:
            self._feed_text(self._decoder.decode(data))
        else:
            view = memoryview(data)
            for at in range(0, len(data), _SLICE):
                self._feed_text(self._decoder.decode(view[at : at + _SLICE]))

    def _feed_text(self, text: str) -> None:
        parts = pieces(text)
        parts.append("")
        known = sequences.KNOWN
        parser = self.parser
        brush = self.brush
        each = iter(parts)
        for text, sequence in zip(each, each, strict=True):
            if parser.state:
                text = parser.resume(text)
                if parser.state:
                    rest = parser.resume(sequence)
                    if rest:
                        self._feed_text(rest)
                    brush = self.brush
                    continue
                brush = self.brush
            if text:
                x = self.x
                end = x + len(text)
                if end < self.cols and self.plain and not self.pending and (text.isascii() or is_narrow(text)):
                    row = self.lines[self.y]
                    old = row.text
                    if SPACER in old:
                        row.cut(x)
                        row.cut(end)
                        old = row.text
                    row.text = f"{old[:x]}{text}{old[end:]}"
                    old = row.attrs
                    row.attrs = f"{old[:x]}{brush.mark * (end - x)}{old[end:]}"
                    self.x = end
                    self.last = text
                else:
                    self.draw(text)
            after = brush.after.get(sequence)
            if after is not None:
                self.brush = brush = after
                self.last = ""
                continue
            entry = known.get(sequence)
            if entry is not None:
                entry[0](self, entry[1])
                self.last = ""
                brush = self.brush
            elif sequence in STARTS:
                parser.begin(STARTS[sequence])
            elif sequence:
                self.dispatch(sequence)
                brush = self.brush
        if len(self.brushes) > self._most_brushes or len(self.clusters) > self._most_clusters:
            self.compact()

    def dispatch(self, sequence: str) -> None:
        """Obey a sequence that the parser found."""
        if sequence[-1] == "m" and sequence[1:2] == "[" and sequence[2] not in "<=>?":
            self.brush = self.brushes.apply(self.brush, sequence)
        else:
            sequences.obey(self, sequence)
        self.last = ""

    def swallowed(self, beginning: str) -> None:
        """Count a control string that was passed over."""
        sequences.swallowed(self, beginning)

    # --- what others ask ------------------------------------------------------------------------------------------

    def frame(self) -> Frame:
        """Return what is shown; while a synchronized update is open, what was shown when it began."""
        return frames.frame(self)

    def cursor(self) -> Cursor:
        """Return where the cursor is now, also while a synchronized update is open."""
        return frames.cursor(self)

    def margins(self) -> tuple[int, int, int, int]:
        """Return the first and the last row and the first and the last column of the scrolling region, from 0."""
        return self.top, self.bottom, self.left, self.right

    def mode(self, number: int, *, private: bool = True) -> bool | None:
        """Return whether a mode is set; None for one that is not known."""
        return self.modes.get(modes.key(number, private))

    def resize(self, cols: int, rows: int) -> None:
        """Change the size; soft-wrapped lines of the main screen are wrapped anew."""
        reflow.resize(self, *checked_size(cols, rows))

    def release(self) -> None:
        """End a synchronized update that its program has left open, as terminals do after a while."""
        self.held_frame = None
        self.modes[modes.SYNCHRONIZED] = False

    def dump(self) -> dict[str, Any]:
        """Return the whole state as values that JSON has."""
        pending, flags = self._decoder.getstate()
        decoder = [base64.b64encode(pending).decode(), flags]
        return {**checkpoint.dump(self), "decoder": decoder, "parser": self.parser.dump()}

    @classmethod
    def restore(cls, dumped: dict[str, Any]) -> Emulator:
        """Return an emulator that goes on where `dump` was taken.

        Raises:
            ValueError: the dump has another layout than this version's.
        """
        made = cls(dumped["cols"], dumped["rows"], dumped["history_rows"])
        checkpoint.restore(made, dumped)
        pending, flags = dumped["decoder"]
        made._decoder.setstate((base64.b64decode(pending), flags))
        made.parser.restore(dumped["parser"])
        return made

    @property
    def undecoded(self) -> bytes:
        """The bytes of a character that is not whole yet."""
        return self._decoder.getstate()[0]

    @property
    def between_sequences(self) -> bool:
        """Whether no sequence has begun that is not whole yet."""
        return self.parser.state == GROUND
