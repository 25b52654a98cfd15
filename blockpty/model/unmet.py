"""Errors of an expectation that was not met: what `expect` and `run(check=True)` raise.

Only the Python API has them; every surface answers the same as a result, whose `reason` is their code.

    BlockptyError
    +-- NotMatched           not_matched: the wait ended without a match, for another reason than these
    |   +-- Timeout          timeout
    |   +-- EndOfFile        eof
    |   +-- PasswordPrompt   password
    |   +-- InputPrompt      input
    +-- CommandFailed        command_failed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from blockpty.errors import BlockptyError
from blockpty.model.results import RunResult, WaitResult
from blockpty.model.shown import shortened

# Of the end of an output.
SHOWN_LINES: Final = 12


class NotMatched(BlockptyError):
    """The wait ended without what was expected.

    Attributes:
        result: how the wait ended; of `run`, its result.
        text: the end of what was printed.
        screen: what the terminal showed then; empty where it was not asked.
    """

    code = "not_matched"

    def __init__(
        self, message: str, result: WaitResult | RunResult, text: str, screen: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint, details={"reason": result.reason, "cursor": result.cursor})
        self.result = result
        self.text = text
        self.screen = screen

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *evidence(self.text, self.screen)])


class Timeout(NotMatched):
    """It did not come in time; the program keeps running."""

    code = "timeout"


class EndOfFile(NotMatched):
    """The program, the session or the shell ended first."""

    code = "eof"


class PasswordPrompt(NotMatched):
    """A program asks for a password."""

    code = "password"


class InputPrompt(NotMatched):
    """The command waits for input from the terminal; it keeps running."""

    code = "input"


class CommandFailed(BlockptyError):
    """A command ended with another exit status than 0.

    Attributes:
        result: the result of `run`; exit_status, output: of that.
    """

    code = "command_failed"

    def __init__(self, message: str, result: RunResult) -> None:
        super().__init__(
            message, details={"exit_status": result.exit_status, "reason": result.reason, "cursor": result.cursor}
        )
        self.result = result

    @property
    def exit_status(self) -> int | None:
        """The command's exit status; None when it is not known."""
        return self.result.exit_status

    @property
    def output(self) -> str:
        """The command's output, as in the result."""
        return self.result.output

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *evidence(self.output)])


# By the reason of a result; the shell's prompt means that what ran has ended.
UNMET: Final[dict[str, tuple[type[NotMatched], str, str]]] = {
    "timeout": (Timeout, "did not come in time", "the program keeps running"),
    "eof": (EndOfFile, "did not come before the shell ended", ""),
    "prompt": (EndOfFile, "did not come before the program ended", ""),
    "password": (PasswordPrompt, "did not come: the program asks for a password", "send it, it is not recorded"),
    "input": (InputPrompt, "did not come: the command waits for input", "send it, or run with stop_at_input=False"),
}
ENDED: Final = ("prompt", "eof")


def unmet(expected: str, result: WaitResult | RunResult, text: str, screen: str = "") -> NotMatched:
    """Return the error for a wait that ended without a match."""
    reason = "password" if result.reason == "input" and result.tty == "password" else result.reason
    kind, how, hint = UNMET.get(reason, (NotMatched, f"did not come: {reason}", ""))
    return kind(f"{expected} {how}", result, text, screen, result.hint or hint)


def checked(result: RunResult) -> RunResult:
    """Return the result of a command that ended with 0; raises CommandFailed, or what `unmet` gives."""
    __tracebackhide__ = True  # in a report of pytest, the test's own line is what failed
    if result.ok:
        return result
    command = shortened(result.block.cmd)
    if result.exit_status is None and result.reason in UNMET and result.reason not in ENDED:
        raise unmet(f"the end of {command}", result, result.output)
    status = "an exit status that is not known" if result.exit_status is None else f"exit status {result.exit_status}"
    raise CommandFailed(f"{command} ended with {status}", result)


def evidence(text: str, screen: str = "") -> list[str]:
    """Return the end of what was printed and what the terminal shows, indented for a message."""
    last, rows = _filled(text)[-SHOWN_LINES:], _filled(screen)
    lines = [] if set(last) <= set(rows) else _titled("last lines", last)
    return [*lines, *_titled("screen", rows)]


def _filled(text: str) -> list[str]:
    """Return the lines of a text without blank ones at its ends."""
    return text.replace("\r", "\n").strip("\n").rstrip().split("\n") if text.strip() else []


def _titled(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"    {line.rstrip()}".rstrip() for line in lines)] if lines else []
