"""Samples of the terminal that say whether a shell's line editor has taken what our key loads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from blockpty.engine.loading import is_unmarked
from blockpty.runtime.sessions import lost_its_mark

if TYPE_CHECKING:
    from blockpty.engine.machine_state import MachineState
    from blockpty.host.client import Inspected
    from blockpty.runtime.channel import ConversationChannel

# A line editor that has read the key and stays silent for so long has no such key.
UNBOUND_SECONDS: Final = 1.0
# A shell whose line editor has not read for so long runs the command, also where no mark of its beginning came.
RUNNING_SECONDS: Final = 1.0
# While something is printed all the time, how long it takes until the host is asked anyway.
PRINTING_SECONDS: Final = 1.0


class LineEditorWatch:
    """Follows the line editor that one command was typed to, in a shell that shares our files.

    `reader` is the process group that had the terminal when the command was typed: the shell's, which reads it.
    """

    def __init__(
        self, channel: ConversationChannel, reader: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._channel = channel
        self._reader = reader
        self._clock = clock
        self._silent_since: float | None = None
        self._running_since: float | None = None
        self._printing_since: float | None = None

    async def look(self, *, prints: bool) -> Literal["runs", "unbound"] | None:
        """Return what is certain by now: the shell runs the command, or it has no such key; None while neither is.

        `prints`: something was printed since the last look. Then the host is asked only now and then, because that
        takes longer than most commands.
        """
        now = self._clock()
        if prints:
            self._silent_since, self._printing_since = None, self._printing_since or now
            if now - self._printing_since < PRINTING_SECONDS:
                return None
        self._printing_since = None
        sample = await self._channel.host.inspect(self._channel.id)
        state = self._channel.live.state
        self._running_since = (self._running_since or now) if self._has_left(state, sample) else None
        if self._running_since is not None and now - self._running_since >= RUNNING_SECONDS:
            # No mark of its beginning comes from a shell that has lost PS0 or its standard error.
            return "runs"
        self._silent_since = (self._silent_since or now) if not prints and self._is_reading(state, sample) else None
        is_unbound = self._silent_since is not None and now - self._silent_since >= UNBOUND_SECONDS
        return "unbound" if is_unbound else None

    async def reads_on(self) -> bool:
        """Return whether the line editor has read the key, and waits for more: what the key has loaded does not run."""
        sample = await self._channel.host.inspect(self._channel.id)
        return self._is_reading(self._channel.live.state, sample)

    def _is_reading(self, state: MachineState, sample: Inspected) -> bool:
        """Return whether a sample shows the line editor waiting for more, with the key read.

        A wrong yes would type into a program, and run a command twice. So the line may not have been entered, which is
        seen where the shell shows its prompts; nothing may be left to be recorded, as on a full disk, where a command
        may have run to its end unseen; the shell may not be at work; and it must be known to have the terminal.
        """
        # Without a silence so far, and when nothing is printed for the key, nothing but a look at the terminal tells.
        if (state.tty or {}).get("icanon", False) is not False or state.echo.opening is not None:
            return False
        if not state.current.sees_files:
            return False  # our terminal's modes are those of the way there, and what is unread may be on that way
        if is_unmarked(state.submission) and state.echo.line_end is not None:
            return False  # a line has ended; ours may have been drawn in another way than is looked for
        if state.echo.is_entered(state.submission) or (lost_its_mark(state) and state.submission is not None):
            return False
        if sample.icanon is not False or sample.unread or sample.replaced or not self._is_shell_in_front(state, sample):
            return False
        return sample.storage is None and not sample.stopped and not sample.working

    def _has_left(self, state: MachineState, sample: Inspected) -> bool:
        """Return whether a sample shows that the shell has read the key, and its line editor reads no more.

        Then it runs the command, or what it runs before each command.
        """
        if sample.icanon:
            return not sample.unread
        return state.echo.is_entered(state.submission) or self._is_shell_in_front(state, sample) is False

    def _is_shell_in_front(self, state: MachineState, sample: Inspected) -> bool | None:
        """Return whether the shell's own process group has the terminal; None where that is not known.

        To the host, a shell inside a shell is a child as well. A host of an earlier version does not say which.
        """
        if not state.outer and sample.foreground == "shell":
            return True
        if self._reader is None or sample.foreground_pid is None:
            return None if state.outer or sample.foreground is None else False
        return sample.foreground_pid == self._reader
