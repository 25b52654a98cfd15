"""The command line: the text of a command that a person types, as the shell reports it or as it stands there at Enter.

Rules of this file: it keeps what is drawn around a prompt, bounded, and never what a command prints. It does not read
what is typed: a text that was not echoed is in no command. Of input that a program left unread, which the shell reads
next, only the end is kept, and what is drawn after the prompt only up to the first silence; then it is known whether
the line is empty.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from msgspec import Struct, field

from blockpty.engine.authentication import Shell
from blockpty.engine.line_emulator import ANCHOR, column_after, entered
from blockpty.engine.marks import Mark, joined
from blockpty.engine.scanner import Scanner, StreamToken
from blockpty.engine.states import ShellState, Stimulus

# zsh reports at most 64 pieces of 300 characters; a line that took more than this to draw has no text.
MAX_CMD_PIECES: Final = 64
MAX_DRAWN: Final = 16 * 1024
# How much of what comes before a prompt is kept, to know in which column the prompt ends.
PROMPT_KEPT: Final = 4096
CUT: Final = "…"
# What readline writes behind the line it was given, when it puts the terminal back.
_PASTE_OFF: Final = b"\x1b[?2004l"

# Input that a program left unread, which the shell reads next: its end has to be seen again at the prompt, up to the
# first silence; longer ends would be broken by the line editor's own wrapping.
UNREAD_TAIL: Final = 4
UNREAD_SHOWN: Final = 512
_CONTROL: Final = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?|[\x00-\x20\x7f]+")

_DECODER: Final = codecs.getincrementaldecoder("utf-8")


class CommandLine(Struct):
    """The command line at a prompt.

    Attributes:
        pieces, reported: the command's text as the shell reports it, in pieces and whole; None when it has not.
        drawn, column: what bash printed since its last END or for its command line, and where its prompt ended.
        lines: the lines of an incomplete command that was typed.
        hidden: whether some of it was typed with echo off in line mode, as a secret is.
    """

    pieces: list[str] = field(default_factory=list)
    reported: str | None = None
    drawn: bytes = b""
    column: int = 0
    lines: list[str] = field(default_factory=list)
    hidden: bool = False

    def note_drawn(self, token: StreamToken, scanner: Scanner, at: ShellState) -> None:
        """Take text that is no command's output."""
        if at in (ShellState.IDLE, ShellState.EDITING):
            room = MAX_DRAWN + 1 - len(self.drawn)
            if room > 0:
                self.drawn += scanner.bytes_of(token, room).replace(ANCHOR, b"?")
        elif at in (ShellState.RETURNING, ShellState.STARTING):
            self.drawn = (self.drawn + scanner.last_of(token, PROMPT_KEPT))[-PROMPT_KEPT:]

    def note_prompt(self, stimulus: Stimulus, columns: int) -> None:
        """A prompt was announced, has been drawn, or was drawn again."""
        if stimulus is Stimulus.PROMPT:
            self.column = column_after(self.drawn, columns)
        elif stimulus is Stimulus.REDRAW:
            self._anchor()
            return
        self.drawn, self.lines, self.reported, self.hidden = b"", [], None, False

    def note_continuation(self, columns: int) -> None:
        """The prompt for the next line of an incomplete command was drawn."""
        if b"\n" not in self.drawn:
            self._anchor()
            return
        if sum(map(len, self.lines)) < MAX_DRAWN:
            self.lines = [*self.lines, self._line(columns)]
        self.column = column_after(self.drawn, columns)
        self.drawn = b""

    def discard(self) -> None:
        """Forget what was drawn: it was no user input."""
        self.drawn = b""

    def add_report(self, mark: Mark) -> None:
        """The shell reports a piece of the command that it is about to run."""
        self.pieces, text = joined(self.pieces, mark, MAX_CMD_PIECES)
        if text is not None:
            cut = mark.fields.get("t") == "1"
            # The cut may have gone through a character.
            self.reported = _DECODER("replace").decode(text, not cut) + (CUT if cut else "")

    def note_begin(self, mark: Mark | None) -> None:
        """Take what the shell says of a line that begins: fish reports that it is another than a submitted one."""
        if mark is not None and mark.fields.get("o") == "1" and self.reported is None:
            self.reported = ""

    def note_entered(self, shell: Shell, columns: int) -> None:
        """Take a typed line as it stands: what comes up to its BEGIN is printed by the user's PS0."""
        self.reported = self.entered(shell, columns)

    def hide(self) -> None:
        """Some of the line was typed as a secret is."""
        self.hidden = True

    def entered(self, shell: Shell, columns: int) -> str:
        """Return the command that begins now, with the nonce redacted; empty when it is not known."""
        text = self.reported if not self.hidden else ""
        if text is None:
            text = "\n".join([*self.lines, self._line(columns)]) if shell.name == "bash" else ""
        self.forget()
        return text.replace(shell.nonce, "*" * len(shell.nonce)) if shell.nonce else text

    def ends_unlike(self, end: str, echo: bytes, columns: int) -> bool:
        """Whether bash has drawn a line that does not hold the `end` of what was submitted."""
        # What comes when readline has put the terminal back is the kernel's echo: of ours, too, which is read after it.
        drawn, _, _ = (self.drawn + echo).partition(_PASTE_OFF)
        line = entered(drawn, self.column, columns) if b"\n" in drawn else ""
        return bool(line) and end not in line

    def forget(self) -> None:
        """Begin with an empty line, whose prompt ends where the last one did."""
        self.pieces, self.reported, self.drawn, self.lines, self.hidden = [], None, b"", [], False

    def _anchor(self) -> None:
        if len(self.drawn) < MAX_DRAWN:
            self.drawn += ANCHOR

    def _line(self, columns: int) -> str:
        if b"\n" not in self.drawn or len(self.drawn) > MAX_DRAWN:
            return ""
        return entered(self.drawn, self.column, columns)


class UnreadInput(Struct):
    """The end of what was typed into a program that may not read it, until the prompt after it has been silent.

    Attributes:
        fed: the end of what was typed, without control characters.
        shown: what was drawn at that prompt.
    """

    fed: bytes = b""
    shown: bytes = b""

    def note_input(self, data: bytes) -> None:
        """Take what was typed while something ran."""
        self.fed = (self.fed + _CONTROL.sub(b"", data[-UNREAD_SHOWN:]))[-UNREAD_TAIL:] or b"\n"

    def note_output(self, token: StreamToken, scanner: Scanner) -> None:
        """Take text that comes at the prompt after that."""
        self.shown = (self.shown + scanner.last_of(token, UNREAD_SHOWN))[-UNREAD_SHOWN:]

    def is_shown(self) -> bool:
        """Whether the input shows on the command line."""
        return bool(self.fed) and self.fed in _CONTROL.sub(b"", self.shown)

    def forget_typed(self) -> None:
        """A line was submitted: what was typed before it was read."""
        self.fed = b""

    def forget_shown(self) -> None:
        """A prompt is drawn anew."""
        self.shown = b""

    def forget(self) -> None:
        """The shell has read all that was typed."""
        self.fed = self.shown = b""
