"""Input that a program left unread: the shell that reads next has it on its command line.

Rules of this file: what a program was given is remembered only by its end, and what is drawn after the prompt that
follows only up to the first silence; then it is known whether the line is empty.
"""

from __future__ import annotations

import re
from typing import Final

from blockpty.engine.scanner import Scanner, Token
from blockpty.engine.snapshot import MachineState
from blockpty.engine.states import ShellState

# The end of the input has to be seen again; longer ends would be broken by the line editor's own wrapping.
TAIL: Final = 4
SHOWN: Final = 512
_CONTROL: Final = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?|[\x00-\x20\x7f]+")


def fed(state: MachineState, data: bytes) -> None:
    """Take what was typed while something ran."""
    if state.shell in (ShellState.RUNNING, ShellState.RETURNING):
        state.fed = (state.fed + _CONTROL.sub(b"", data[-SHOWN:]))[-TAIL:] or b"\n"


def drawn(state: MachineState, token: Token, scanner: Scanner) -> None:
    """Take text that comes at the prompt after that."""
    if state.fed and state.shell is ShellState.IDLE:
        size = token.end - token.begin
        last = token._replace(begin=token.end - min(size, SHOWN))
        state.shown = (state.shown + scanner.bytes_of(last, SHOWN))[-SHOWN:]


def stands_on_the_line(state: MachineState) -> bool:
    """At a silence: whether the input shows on the command line; then it is forgotten."""
    found = bool(state.fed) and state.fed in _CONTROL.sub(b"", state.shown)
    if state.shell is ShellState.IDLE:
        state.fed = state.shown = b""
    return found
