"""The text of a command that a person types: as the shell reports it, or as it stands on the line at Enter.

Rules of this file: it keeps what is drawn around a prompt, bounded, and never what a command prints. Nobody's typing is
looked at: a text that was not echoed is in no command.
"""

from __future__ import annotations

import codecs
from typing import Final

from blockpty.engine.loading import is_keyed, was_loaded
from blockpty.engine.marks import Mark, joined
from blockpty.engine.scanner import Scanner, Token
from blockpty.engine.snapshot import MachineState
from blockpty.engine.states import ShellState, Stimulus
from blockpty.engine.typed import ANCHOR, column_after, entered

# zsh reports at most 64 pieces of 300 characters; a line that took more than this to draw has no text.
MAX_CMD_PIECES: Final = 64
MAX_DRAWN: Final = 16 * 1024
# How much of what comes back for what was typed is kept.
ECHO_WINDOW: Final = 4096
# How much of what comes before a prompt is kept, to know in which column the prompt ends.
PROMPT_KEPT: Final = 4096
CUT: Final = "…"
# How much of the end of a submitted line must be seen in its echo.
SHOWN_END: Final = 4
# What readline writes behind the line it was given, when it puts the terminal back.
PASTE_OFF: Final = b"\x1b[?2004l"

_DECODER: Final = codecs.getincrementaldecoder("utf-8")


class Keyboard:
    """Keeps the command line of a state."""

    def __init__(self, state: MachineState) -> None:
        self.state = state

    def drawn(self, token: Token, scanner: Scanner) -> None:
        """Take text that is no command's output."""
        state = self.state
        if state.shell in (ShellState.IDLE, ShellState.EDITING):
            room = MAX_DRAWN + 1 - len(state.drawn)
            if room > 0:
                state.drawn += scanner.bytes_of(token, room).replace(ANCHOR, b"?")
        elif state.shell in (ShellState.RETURNING, ShellState.STARTING):
            size = token.end - token.begin
            last = token._replace(begin=token.end - min(size, PROMPT_KEPT))
            state.drawn = (state.drawn + scanner.bytes_of(last, PROMPT_KEPT))[-PROMPT_KEPT:]

    def prompt(self, stimulus: Stimulus) -> None:
        """A prompt was announced, has been drawn, or was drawn again."""
        state = self.state
        if stimulus is Stimulus.PROMPT:
            state.column = column_after(state.drawn, state.size[0])
        elif stimulus is Stimulus.REDRAW:
            self._anchor()
            return
        state.drawn, state.entered, state.told, state.hidden = b"", [], None, False

    def continued(self) -> None:
        """The prompt for the next line of an incomplete command was drawn."""
        state = self.state
        if b"\n" not in state.drawn:
            self._anchor()
            return
        if sum(map(len, state.entered)) < MAX_DRAWN:
            state.entered = [*state.entered, self._line()]
        state.column = column_after(state.drawn, state.size[0])
        state.drawn = b""

    def disturbed(self) -> None:
        """What was printed was nobody's typing."""
        self.state.drawn = b""

    def told(self, mark: Mark) -> None:
        """The shell reports a piece of the command that it is about to run."""
        state = self.state
        state.cmd_pieces, text = joined(state.cmd_pieces, mark, MAX_CMD_PIECES)
        if text is not None:
            cut = mark.fields.get("t") == "1"
            # The cut may have gone through a character.
            state.told = _DECODER("replace").decode(text, not cut) + (CUT if cut else "")

    def begins(self, mark: Mark | None) -> None:
        """Take what the shell says of a line that begins: fish tells that it is another than a submitted one."""
        if mark is not None and mark.fields.get("o") == "1" and self.state.told is None:
            self.state.told = ""

    def entered(self) -> str:
        """Return the command that begins now, with the nonce covered; empty when it is not known."""
        state = self.state
        text = state.told if not state.hidden else ""
        if text is None:
            text = "\n".join([*state.entered, self._line()]) if state.shell_name == "bash" else ""
        self.forget()
        return text.replace(state.nonce, "*" * len(state.nonce)) if state.nonce else text

    def is_other(self, mark: Mark | None) -> bool:
        """Whether the line that begins now is not the one that was submitted.

        A person may press Enter, or a program put input into its own terminal (TIOCSTI), just before ours. A line that
        our key loaded is ours; of one that was typed, the shell has named another.
        """
        if is_keyed(self.state.submission):
            return mark is None or not was_loaded(mark)
        return self.state.submission is not None and self.state.told is not None

    def is_unlike(self) -> bool:
        """Whether bash has drawn a line that does not hold the end of what was submitted; it names no command.

        Not sure enough to wait for another BEGIN: with echo off, what the background prints is all that is drawn.
        """
        state = self.state
        end = str((state.submission or {}).get("line", "")).rstrip("\r\n")[-SHOWN_END:]
        if state.shell_name != "bash" or is_keyed(state.submission) or not end or len(state.echoed) >= ECHO_WINDOW:
            return False
        # What comes when readline has put the terminal back is the kernel's echo: of ours, too, which is read after it.
        drawn, _, _ = (state.drawn + state.echoed).partition(PASTE_OFF)
        line = entered(drawn, state.column, state.size[0]) if b"\n" in drawn else ""
        return bool(line) and end not in line

    def forget(self) -> None:
        state = self.state
        state.cmd_pieces, state.told, state.drawn, state.entered, state.hidden = [], None, b"", [], False

    def _anchor(self) -> None:
        if len(self.state.drawn) < MAX_DRAWN:
            self.state.drawn += ANCHOR

    def _line(self) -> str:
        state = self.state
        if b"\n" not in state.drawn or len(state.drawn) > MAX_DRAWN:
            return ""
        return entered(state.drawn, state.column, state.size[0])
