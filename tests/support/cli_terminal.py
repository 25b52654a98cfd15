"""Running the command line on a real terminal, and what may reach it."""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import Any

import pexpect

_SGR = re.compile(r"\x1b\[[0-9;:]{0,64}m")
_UNSAFE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def start(*arguments: str | bytes, columns: int = 80, **variables: str) -> Any:
    """Start blockpty with a terminal of its own."""
    words = [os.fsdecode(word) for word in arguments]
    environment = {**os.environ, "TERM": "xterm-256color", "PAGER": "cat", **variables}
    command = ["-m", "blockpty", *words]
    return pexpect.spawn(
        sys.executable, command, timeout=60, env=environment, dimensions=(40, columns), preexec_fn=mind_ctrl_c
    )


def mind_ctrl_c() -> None:
    """Have Ctrl-C end what is started: who runs the tests in the background has it ignored, which survives exec."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def on_terminal(*arguments: str | bytes, **variables: str) -> tuple[int | None, str]:
    """Run blockpty on a terminal to its end; return its exit status and what came out, which must be UTF-8."""
    with start(*arguments, columns=1000, **variables) as terminal:
        shown = terminal.read()
    return terminal.exitstatus, shown.decode("utf-8")


def unsafe(shown: str) -> list[str]:
    """Return what a terminal would obey: everything but colours, tabs and line ends."""
    without_ends = _SGR.sub("", shown).replace("\r\n", "\n")
    # Progress goes back to the begin of its own line and wipes it.
    rest = re.sub(r"(?:\r(?:[a-z-]+ \.\.\. \d[0-9A-Za-z %.,/]*)? *)+\r", "", without_ends)
    return [*_UNSAFE.findall(rest), *(["CR"] if "\r" in rest else [])]
