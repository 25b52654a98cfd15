"""The echo of a submitted line: what comes back between the submission and the output of the command.

Rules of this file: pure, total and bounded; what is recognised depends on bytes alone, not on how they were split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from blockpty.engine.loading import MAX_PROLOGUE, is_keyed, is_unmarked, prologue_end
from blockpty.engine.scanner import Scanner, StreamToken

# How much of what comes back for what was typed is kept.
ECHO_WINDOW: Final = 4096
# What readline prints between the echo of a line and its execution.
_PASTE_OFF: Final = b"\x1b[?2004l\r"
# What readline prints where a line continues in the next row.
_BREAK: Final = rb"(?: \r|\r\n\r?)?"
# What a line editor may print between the last character of a line and the line end that Enter makes.
_LINE_END: Final = rb"(?:\x1b\[[0-9;?]{0,16}[A-Za-z]|[\r\b ])*\n"


class SubmissionEcho(Struct):
    """Echo that a shell printed for a submitted line, before the command's output.

    Attributes:
        begin, data: where the line was typed, and what came back before its BEGIN, at most `ECHO_WINDOW` bytes.
        line_end: where the line that our key loaded ended on the screen; None before that.
        opening, prologue: begin and end of the BEGIN of such a line in fish and whether its terminal is a dumb one,
            while the shell itself still prints behind it, and what has come of that.
        out_end: where zsh said that the output ended, or what it says of a line that it does not run.
    """

    begin: int = 0
    data: bytes = b""
    line_end: int | None = None
    opening: tuple[int, int, bool] | None = None
    prologue: bytes = b""
    out_end: int | None = None

    def start(self, offset: int) -> None:
        """A line is typed: what comes from here on is its echo."""
        self.begin, self.data, self.line_end, self.out_end = offset, b"", None, None

    def note_output(self, token: StreamToken, scanner: Scanner) -> bool:
        """Take what comes back, text or a mark; return whether there was room for some of it."""
        if self.line_end is None and token.mark is None:
            end = scanner.line_end(token)
            self.line_end = end if end >= 0 else None
        room = ECHO_WINDOW - len(self.data)
        if room > 0:
            self.data += scanner.bytes_of(token, room)
        return room > 0

    def forget_line_end(self) -> None:
        """The line is drawn once more, or goes on: it has not ended on the screen."""
        self.line_end = None

    def note_output_end(self, offset: int | None) -> None:
        """Take where the output ended; None: it goes on, or has not begun."""
        self.out_end = offset

    def await_prologue(self, opening: tuple[int, int, bool]) -> None:
        """The loaded line begins, and its shell still prints."""
        self.opening = opening

    def note_prologue(self, token: StreamToken, scanner: Scanner, *, bare: bool) -> int | None:
        """Take what comes while the shell still prints; return where its own bytes end, None while that is open."""
        before = len(self.prologue)
        self.prologue += scanner.bytes_of(token, MAX_PROLOGUE)
        end = prologue_end(self.prologue, bare)
        return None if end is None else token.begin - before + end

    def end_prologue(self) -> int:
        """The output of the loaded line begins; return where its BEGIN did."""
        assert self.opening is not None  # the callers have asked
        begin, self.opening, self.prologue = self.opening[0], None, b""
        return begin

    def ends_at(self, submission: Mapping[str, Any] | None) -> int | None:
        """Return where the echo of the submitted line ended, None while it has not.

        That is the first line end behind the line's last character. What comes before it may look like anything: ash
        breaks a long line by itself (CR CR LF), ksh scrolls it sideways and repeats parts of it.
        """
        last = str((submission or {}).get("line", "")).rstrip("\r\n")[-1:].encode("utf-8")
        found = re.search(re.escape(last) + _LINE_END, self.data) if last else None
        return self.begin + found.end() if found else None

    def is_entered(self, submission: Mapping[str, Any] | None) -> bool:
        """Return whether the shell has drawn the line that it was given, and ended it.

        Without a submission it is another line that has ended: a Ctrl-C ends one as Enter does.
        """
        return self._entered_at(submission) is not None

    def passed_line(self, submission: Mapping[str, Any] | None) -> int | None:
        """Return where output begins behind a line that the shell has drawn and ended; None while that is open.

        The first byte decides that is not of the end of bash's paste mode.
        """
        end = self._entered_at(submission)
        if end is None:
            return None
        rest = self.data[end - self.begin :]
        if len(rest) < len(_PASTE_OFF) and _PASTE_OFF.startswith(rest):
            return None
        return self._behind_paste(end)

    def behind_line(self, submission: Mapping[str, Any] | None, shell: str) -> int:
        """Return where output begins behind the submitted line, as far as the echo tells."""
        if is_keyed(submission) or is_unmarked(submission):
            end = self._entered_at(submission)
            if end is not None:
                return self._behind_paste(end)
        if is_keyed(submission):
            # Highlighting draws the text in pieces. zsh ends its paste mode, may draw once more, and ends the line.
            off = self.data.find(_PASTE_OFF[:-1]) if shell == "zsh" else -1
            return self.begin + (self.data.find(b"\n", off) + 1 if off >= 0 else 0)
        line = str((submission or {}).get("line", "")).rstrip("\r\n").encode("utf-8")
        found = self.data.find(line) if line else -1
        if found < 0:
            whole = self.ends_at(submission)
            return self.begin if whole is None else whole
        after = self.data.find(b"\n", found)
        return self._behind_paste(self.begin + (after + 1 if after >= 0 else len(self.data)))

    def _entered_at(self, submission: Mapping[str, Any] | None) -> int | None:
        """Return where the line that the shell was given ended on the screen; None while it has not."""
        if submission is None or self.line_end is None:
            return None
        shown = str(submission.get("shown", "")).encode("utf-8", "surrogateescape")
        end = self.line_end - self.begin
        if not is_unmarked(submission):
            return self.line_end if 0 <= self.data.find(shown) < end else None
        # Other output or another line may come before it, and a narrow terminal breaks it.
        for found in re.finditer(_BREAK.join(re.escape(shown[at : at + 1]) for at in range(len(shown))), self.data):
            after = self.data.find(b"\n", found.end()) + 1
            if after >= end:
                return self.begin + after
        return None

    def _behind_paste(self, begin: int) -> int:
        """Return where output begins behind a line, which readline follows with the end of its paste mode."""
        return begin + (len(_PASTE_OFF) if self.data.startswith(_PASTE_OFF, begin - self.begin) else 0)
