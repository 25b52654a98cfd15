r"""The parser: decoded output cut into text and sequences, whatever the chunks.

Rules of this file: it knows the grammar (ECMA-48 as xterm reads it) and no meaning. `pieces` cuts whole sequences out
at the speed of the `re` module; what it cannot take whole (a sequence that the chunk cuts, one with control characters
inside, control strings) goes character by character through `Parser.resume`, which holds at most `OSC_LIMIT`
characters. Control strings that mean nothing to a screen (DCS, SOS, PM, APC) are swallowed to their end.

The sequences that come out begin with `ESC`. C1 characters mean nothing, as in xterm with UTF-8. The Linux console's
palette sequences (`ESC ] P` with seven hexadecimal digits, `ESC ] R`) have no end of their own, and are taken as that.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

# Longest OSC that is taken; what a longer one says is dropped, its end is still found.
OSC_LIMIT: Final = 8192
# More than `pieces` takes at once, so that a cut can never decide.
_SEQUENCE_LIMIT: Final = 1024
# How much is kept of a string that is swallowed, to say what it was.
_BEGINNING: Final = 16

GROUND: Final = 0
ESCAPE: Final = 1
CSI: Final = 2
OSC: Final = 3
# DCS, SOS, PM, APC.
STRING: Final = 4

# It begins with a set of characters, so that `re` skips text at full speed. No group in it is possessive: Python before
# 3.11.5 never comes back from some of those.
pieces: Final = re.compile(
    r"""([\x00-\x1f\x7f-\x9f](?:
      (?<=\x1b)(?:
          \[ [0-?]{0,255}+ [ -/]{0,8}+ [@-~]
        | \] (?![PR]) [^\x00-\x1f\x7f-\x9f]{0,8192}+ (?:\x07 | \x1b\\)
        | [ -/]{1,8}+ [0-~]
        | [0-OQ-WYZ\\`-~]
      ) | (?<=\r)\n )?)""",
    re.VERBOSE,
).split

_CSI_BODY: Final = re.compile(r"[0-?]*[ -/]*")
_STRING_END: Final = re.compile("[\x07\x18\x1a\x1b]")
_PALETTE: Final = re.compile("R|P[0-9A-Fa-f]{7}")
_PALETTE_BEGUN: Final = re.compile("P[0-9A-Fa-f]{0,6}")
_OPENS: Final = {"[": CSI, "]": OSC, "P": STRING, "X": STRING, "^": STRING, "_": STRING}
# Controls that begin something instead of doing something: by character, the state.
STARTS: Final = {"\x1b": ESCAPE}


class Listener(Protocol):
    """The receiver of what the parser finds."""

    def dispatch(self, sequence: str) -> None:
        """Obey a control character, an escape or a control sequence, or an OSC (`ESC ]` and its text)."""

    def swallowed(self, beginning: str) -> None:
        """Take note of a control string that was passed over: its introducer without ESC, and how it begins."""


class Parser:
    """The state of a sequence that has begun; `GROUND` when none has."""

    __slots__ = ("_held", "_listener", "_too_long", "state")

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.state = GROUND
        self._held = ""
        self._too_long = False

    def begin(self, state: int) -> None:
        """Enter a state by its introducer."""
        self.state = state
        self._held = ""
        self._too_long = False

    def resume(self, text: str) -> str:
        """Go on inside a sequence; return what follows its end, which may be nothing."""
        at = 0
        while at < len(text) and self.state != GROUND:
            if self.state == OSC and len(self._held) < 8 and not self._too_long:
                begun = self._held + text[at : at + 8]
                if palette := _PALETTE.match(begun):
                    at += palette.end() - len(self._held)
                    self.begin(GROUND)
                    continue
                if _PALETTE_BEGUN.fullmatch(begun):
                    self._held = begun
                    return ""
            if self.state >= OSC:
                found = _STRING_END.search(text, at)
                self._hold(text[at : found.start() if found else len(text)])
                if found is None:
                    return ""
                at = found.end()
                self._string_stops(found.group())
            else:
                character = text[at]
                if character >= "\xa0":
                    # Not part of any sequence: the sequence is void, the character is text.
                    self.begin(GROUND)
                    break
                at += 1
                if character < " " or character >= "\x7f":
                    self._control(character)
                elif self.state == ESCAPE:
                    self._escape(character)
                else:
                    self._csi(character)
        return text[at:]

    def dump(self) -> list[object]:
        """Return the state as values that JSON has."""
        return [self.state, self._held, self._too_long]

    def restore(self, dumped: list[object]) -> None:
        """Take a state that `dump` gave."""
        state, held, too_long = dumped
        self.state, self._held, self._too_long = int(str(state)), str(held), bool(too_long)

    def _hold(self, text: str) -> None:
        if self.state == STRING:
            self._held = (self._held + text[:_BEGINNING])[:_BEGINNING]
        if self.state == OSC and not self._too_long:
            self._held += text[: OSC_LIMIT + 1]
            if len(self._held) > OSC_LIMIT:
                self._held, self._too_long = "", True

    def _string_stops(self, end: str) -> None:
        if end == "\x07" and self.state == STRING:
            return
        if self.state == STRING:
            self._listener.swallowed(self._held)
        said = None if self.state == STRING or self._too_long or end in "\x18\x1a" else self._held
        # ESC is the first half of ST; anything else but a backslash after it begins a sequence of its own.
        self.begin(ESCAPE if end == "\x1b" else GROUND)
        if said is not None:
            self._listener.dispatch("\x1b]" + said)

    def _control(self, character: str) -> None:
        if character in STARTS:
            self.begin(STARTS[character])
        elif character in "\x18\x1a":
            self.begin(GROUND)
        elif character < "\x7f":
            # A control inside a sequence does its work, and the sequence goes on.
            self._listener.dispatch(character)

    def _escape(self, character: str) -> None:
        if character < "0":
            self._held = (self._held + character)[:_SEQUENCE_LIMIT]
        elif not self._held and character in _OPENS:
            self.begin(_OPENS[character])
            if self.state == STRING:
                self._held = character
        else:
            sequence = "\x1b" + self._held + character
            self.begin(GROUND)
            self._listener.dispatch(sequence)

    def _csi(self, character: str) -> None:
        if character < "@":
            self._held += character
            if len(self._held) > _SEQUENCE_LIMIT:
                self._held, self._too_long = "", True
            return
        body = None if self._too_long else _CSI_BODY.fullmatch(self._held)
        self.begin(GROUND)
        if body:
            self._listener.dispatch("\x1b[" + body.group() + character)
