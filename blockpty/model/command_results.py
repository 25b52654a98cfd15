"""Results of commands: submitted, and run to their end."""

from __future__ import annotations

from blockpty.model.block import Block
from blockpty.model.result import Result
from blockpty.model.shown import preformatted, shortened


class ExecResult(Result, frozen=True):
    """A command was submitted as one block; it runs."""

    block_id: str
    seq: int
    ts_begin: int
    cursor: int


class SessionResult(Result, frozen=True):
    """An interactive program was submitted; use `send` and `wait_for`."""

    session_id: str
    block_id: str
    ts_begin: int
    cursor: int


class RunResult(Result, frozen=True):
    """Outcome of a command: it ended, or it timed out or waits for input and keeps running.

    Attributes:
        block: the block's record; state `running` when it has not ended.
        output: text view of its output, at most max_bytes, head and tail kept.
        output_bytes: size of the whole text; truncated: whether some was left out.
        reason: `prompt` (it has ended), `timeout`, `input`, `password`, `incomplete_input`, `eof` or `hooks_lost`.
        cursor: where to go on reading or waiting.
        tty, foreground: when it has not ended, as in `status`: what the terminal does, and the program that has it.
        hint: what to do then.
    """

    block: Block
    output: str
    output_bytes: int
    truncated: bool
    timed_out: bool
    reason: str
    cursor: int
    tty: str | None = None
    foreground: str | None = None
    hint: str | None = None

    @property
    def exit_status(self) -> int | None:
        """The command's exit status; None when unknown or still running."""
        return self.block.exit_status

    @property
    def ok(self) -> bool:
        """Whether the command has ended with exit status 0."""
        return self.block.exit_status == 0

    def __repr__(self) -> str:
        how = "timed out" if self.timed_out else f"exit_status={self.exit_status}"
        return f"<RunResult {shortened(self.block.cmd)} {how} output={shortened(self.output, 400)}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return preformatted(f"$ {self.block.cmd}\n{self.output}", summary=self.block.summary)
