"""Output in pieces, written so that a terminal is safe and shows each piece at once.

The bytes of a stream become a view, the view becomes text, and on a terminal only colours of it pass. Each of these
steps may have to hold back what a piece ends with until the next one says what it is.
"""

from __future__ import annotations

import codecs
import re
from typing import Final, TextIO

from blockpty.engine.views import View
from blockpty.surfaces.cli.render import colours_wanted
from blockpty.surfaces.sanitize import sanitize

_RESET: Final = "\x1b[0m"
# The beginning of what may become a colour; what is longer than a colour may be is not one.
_UNFINISHED: Final = re.compile(r"\x1b(?:\[[0-9;:]{0,64})?\Z")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;:]*m")


class SafeText:
    """Makes text safe as `sanitize` does, wherever it is cut; a colour lasts until `finish`."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._held = ""
        self._coloured = False

    def feed(self, text: str) -> str:
        """Return what can be shown of it now."""
        text = self._held + text
        found = _UNFINISHED.search(text)
        self._held = text[found.start() :] if found is not None else ""
        return self._shown(text.removesuffix(self._held))

    def finish(self) -> str:
        """Return what was held back, and the end of all colours."""
        held, self._held = self._held, ""
        shown = self._shown(held) + (_RESET if self._coloured else "")
        self._coloured = False
        return shown

    def _shown(self, text: str) -> str:
        safe = sanitize(text, colour=self._colour)
        # It resets what it has set; here that is for the last piece to do.
        self._coloured = self._coloured or safe.endswith(_RESET)
        return safe.removesuffix(_RESET)


class LiveOutput:
    """Output of the bytes of a stream as they come: to a terminal safely, to a file or pipe as the view is.

    Args:
        out: standard output.
        raw: write the bytes of the stream exactly as they are, also to a terminal.
    """

    def __init__(self, out: TextIO, *, raw: bool = False) -> None:
        self._out = out
        self._raw = raw
        self._terminal = out.isatty()
        self._bold = self._terminal and colours_wanted()
        self._view: View | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._safe = SafeText(colour=colours_wanted())
        self._at_line_begin = True

    def stream(self, data: bytes, offset: int) -> None:
        """Write the bytes that stand in the stream at an offset."""
        if self._raw:
            self._out.flush()
            self._out.buffer.write(data)
            self._out.buffer.flush()
            return
        self._write(self.text_of(data, offset))

    def text_of(self, data: bytes, offset: int) -> str:
        """Return the text of bytes that stand in the stream at an offset, without what waits for its end."""
        if self._view is None:
            self._view = View("ansi", offset)
        return self._decoder.decode(self._view.feed(data).text)

    def finish(self) -> None:
        """Write what was held back; what comes next has nothing to do with it, on a terminal it begins a line."""
        if not self._raw:
            self._write(self.rest(), final=True)
        if self._terminal and not self._at_line_begin:
            self._write("\n")

    def rest(self) -> str:
        """Return what was held back; what comes next has nothing to do with it."""
        held, self._view = (self._view.finish().text if self._view is not None else b""), None
        return self._decoder.decode(held, True)

    def heading(self, text: str) -> None:
        """Write a line of our own, which begins a line; the text must be safe."""
        self.finish()
        begin = "" if self._at_line_begin else "\n"
        self._out.write(f"{begin}\x1b[1m{text}{_RESET}\n" if self._bold else f"{begin}{text}\n")
        self._at_line_begin = True
        self._out.flush()

    def _write(self, text: str, *, final: bool = False) -> None:
        if self._terminal:
            text = self._safe.feed(text) + (self._safe.finish() if final else "")
            self._out.write(text)
        else:
            self._out.flush()
            self._out.buffer.write(text.encode("utf-8", "replace"))
        visible = _COLOURS.sub("", text)
        if visible:
            self._at_line_begin = visible.endswith("\n")
        self._out.flush()
