"""Pager for long text on a terminal: the one that the user has chosen, as with git."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from types import TracebackType
from typing import Any, Final, Self, TextIO

from blockpty.surfaces.cli.render import colours_wanted

# less: colours, no pager for what fits on one screen, the screen stays as it is.
_LESS: Final = "FRX"


class Pager:
    """Output of text: into a pager if `out` is a terminal and there is one, else to `out`; a context manager.

    Attributes:
        colour: whether the text may have colours.
    """

    def __init__(self, out: TextIO, *, wanted: bool) -> None:
        self._out = out
        self._wanted = wanted and out.isatty()
        self._process: subprocess.Popen[bytes] | None = None
        self._interrupt: Any = None
        self.colour = out.isatty() and colours_wanted()

    def __enter__(self) -> Self:
        program = chosen_pager() if self._wanted else None
        if program is not None:
            self._out.flush()
            # The pager has the terminal now, Ctrl-C included; it does not inherit a handler, as it would SIG_IGN.
            self._interrupt = signal.signal(signal.SIGINT, _leave_it_to_the_pager)
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", program], stdin=subprocess.PIPE, env={"LESS": _LESS, "LV": "-c", **os.environ}
            )  # fmt: skip
        return self

    def write(self, text: str) -> bool:
        """Write text; False when the reader has gone."""
        if self._process is None or self._process.stdin is None:
            self._out.write(text)
            return True
        try:
            self._process.stdin.write(text.encode("utf-8", "replace"))
            self._process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # it was left before its end
        self._process.wait()
        signal.signal(signal.SIGINT, self._interrupt)


def _leave_it_to_the_pager(_number: int, _frame: object) -> None:
    pass


def chosen_pager() -> str | None:
    """Return the pager as the shell shall run it: $PAGER, else less; None for none, which `cat` means as well."""
    chosen = os.environ.get("PAGER")
    if chosen is None:
        return "less" if shutil.which("less") else None
    return chosen if chosen.strip() not in ("", "cat") else None
