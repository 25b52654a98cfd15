"""Switches to the alternate screen and back, found in the bytes without drawing them.

Rules of this file: pure, and the same for any chunks. Recognised are DEC private modes 47, 1047 and 1049, also among
others in one sequence, and RIS; the emulator obeys the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from blockpty.engine.scanner import Scanner, StreamToken

_MODES: Final = frozenset({47, 1047, 1049})
_SWITCH: Final = re.compile(rb"\x1b(?:\[\?([0-9;]{1,64})([hl])|c)")
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[(?:\?[0-9;]{0,64})?)?\Z")
_LONGEST: Final = 68
# A switch, or what may become one; bracketed paste, which every prompt sets, is neither.
_POSSIBLE: Final = re.compile(rb"\x1b(?:c|\[\?(?!2004[hl])|\[?\Z)")


def no_switch(data: bytes) -> bool:
    """Return whether bytes hold neither a switch nor its beginning, if none began before them."""
    return _POSSIBLE.search(data) is None


class AlternateScreen(Struct):
    """Which screen the terminal shows.

    Attributes:
        shown: whether it is the alternate one.
        partial: the beginning of a sequence that may switch.
    """

    shown: bool = False
    partial: bytes = b""

    def may_switch(self, data: bytes) -> bool:
        """Whether bytes can hold a switch or its beginning; a quick look that most output passes."""
        if self.partial or self.shown:
            return True
        # A single byte is found forty times as fast as two.
        if b"\x1b" not in data:
            return False
        # A beginning stands at the end of what the scanner gives out, which may hold the rest back from the next ESC.
        return (
            data.endswith((b"\x1b", b"\x1b[")) or b"\x1b\x1b" in data or b"\x1b[\x1b" in data
            or (b"?" in data and _POSSIBLE.search(data) is not None)
        )  # fmt: skip

    def parts(self, token: StreamToken, scanner: Scanner) -> Iterator[tuple[StreamToken, bool | None]]:
        """Yield a token of text in parts, each with which screen is shown behind it where that changes."""
        data, begin = scanner.bytes_of(token, token.end - token.begin), token.begin
        for end, shown in _switches(data, self.partial, self.shown):
            offset = token.begin + end
            yield replace(token, begin=begin, end=offset), shown
            self.shown, begin = shown, offset
        self.partial = _unfinished(data, self.partial)
        if begin < token.end:
            yield replace(token, begin=begin), None

    def interrupt(self) -> None:
        """A mark came: what has begun before it does not switch."""
        self.partial = b""

    def to_main(self) -> bool:
        """Another shell begins, on the main screen; return whether that is a change."""
        changed, self.shown, self.partial = self.shown, False, b""
        return changed


def _switches(data: bytes, held: bytes, alternate: bool) -> Iterator[tuple[int, bool]]:
    """Yield (end of the sequence in `data`, whether the alternate screen is shown now) for each change."""
    for found in _SWITCH.finditer(held + data):
        if found[1] is None:
            shown = False
        elif _MODES.isdisjoint(int(number) for number in found[1].split(b";") if len(number.lstrip(b"0")) in (2, 4)):
            continue
        else:
            shown = found[2] == b"h"
        if shown is not alternate:
            alternate = shown
            yield found.end() - len(held), shown


def _unfinished(data: bytes, held: bytes) -> bytes:
    """Return the beginning of a sequence that more bytes may finish, at the end of `data`."""
    found = _UNFINISHED.search((held + data)[-_LONGEST:])
    return found.group() if found is not None else b""
