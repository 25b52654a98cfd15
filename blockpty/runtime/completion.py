"""The end of one submitted command, found while the record is read.

`run` waits for a command that it submitted itself, so it needs no recorded wait: its answer follows from the block.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from blockpty.engine.machine_state import MachineState, asks_password
from blockpty.engine.records import input_bytes
from blockpty.engine.states import ShellState
from blockpty.engine.waiter import Outcome
from blockpty.model.entries import Entry
from blockpty.runtime.record_reader import Step
from blockpty.runtime.wait_registry import Answer

if TYPE_CHECKING:
    from blockpty.runtime.follower import RecordFollower


class Completion:
    """Finds the prompt behind a command; create it before the command is typed, so that it cannot come too late.

    Attributes:
        request: the name of the command's input.
        future: done once the command has ended, or cannot be waited for any longer.
        stop_at_input: whether it is done as well when the command waits for input.
        disturbed: whether something else was typed, a signal was sent, or a mark was rejected, since the command was
            typed. Whether it has run is not sure then.
        interrupted: whether that was a Ctrl-C, or an interrupt.
    """

    reads = False

    def __init__(self, live: RecordFollower, request: str, *, stop_at_input: bool = False) -> None:
        self.future: Answer = asyncio.get_running_loop().create_future()
        self._live = live
        self.request = request
        self.stop_at_input = stop_at_input
        self.disturbed = False
        self.interrupted = False
        self._typed = False
        self._taken = False

    def take(self, step: Step) -> Outcome | None:
        """Return how the command ended if this step of the record says so."""
        state = self._live.state
        if not self._typed:
            self._typed = is_under_way(state, self.request)
            return None
        entry = step.entry
        if entry is not None and (entry.kind == "input" or _is_interrupt(entry)):
            self.disturbed = True
            self.interrupted |= entry.kind != "input" or b"\x03" in input_bytes(entry.fields)
        # A mark that is not taken for one may have been the command's own.
        self.disturbed = self.disturbed or any(event.type == "spoofed_mark" for event in step.events)
        for signal in step.signals:
            at = signal.offset
            if signal.kind == "prompt":
                if not is_under_way(state, self.request) and at >= self._end_in(step):
                    return Outcome(True, "prompt", at, at)
            elif signal.kind in ("exit", "eof"):
                return Outcome(False, "eof", at, at)
            elif not self._taken:
                # Until the shell has taken the command, a silence says nothing about it.
                continue
            elif signal.kind == "hooks_lost":
                return Outcome(False, "hooks_lost", at, at)
            elif signal.kind == "silence":
                if reason := _stuck(signal.value, self.stop_at_input):
                    return Outcome(False, reason, at, at)
                if state.shell is ShellState.IDLE and not is_under_way(state, self.request):
                    # The shell waits at its prompt, and has lost what was typed.
                    return Outcome(True, "prompt", at, at)
        return None

    def begin(self) -> None:
        """Note that the shell has taken the command: from now on it may also ask for a password, or be incomplete."""
        self._taken = True
        if self.future.done():
            return
        state, at = self._live.state, self._live.state.classified
        reason = ""
        if state.shell is ShellState.EXITED:
            reason = "eof"
        elif state.hooks_lost:
            reason = "hooks_lost"
        elif state.shell is ShellState.RUNNING and asks_password(state.tty):
            reason = "password"
        elif state.shell is ShellState.EDITING and state.wants_more(state.tty):
            reason = "incomplete_input"
        elif self.stop_at_input and state.wants_input():
            reason = "input"
        elif state.shell is ShellState.IDLE and not is_under_way(state, self.request):
            self.future.set_result(Outcome(True, "prompt", at, at))
        if reason:
            self.future.set_result(Outcome(False, reason, at, at))

    def cancel(self) -> None:
        """Do nothing: no work of its own is under way."""

    def _end_in(self, step: Step) -> int:
        """Return where the command's block was closed, if in this step: a prompt before that is another command's."""
        opened = self._live.state.opened_by(self.request)
        if opened is None:
            return 0
        block_id = f"b{opened[0]}"
        for event in step.events:
            if event.type == "agent_block_end" and event.fields["block_id"] == block_id:
                return event.cursor
        return 0


def is_under_way(state: MachineState, request: str) -> bool:
    """Return whether a recorded submission runs, or still waits behind an injected line."""
    block, submission = state.block, state.submission
    return (block is not None and block.request == request) or (
        submission is not None and submission.get("request") == request
    )


def _is_interrupt(entry: Entry) -> bool:
    note = entry.fields.get("note")
    return isinstance(note, dict) and note.get("type") == "interrupt"


def _stuck(silence: dict[str, object], stop_at_input: bool) -> str:
    """Return why a silent program will not go on by itself."""
    if silence["password"]:
        return "password"
    if silence["incomplete"]:
        return "incomplete_input"
    return "input" if stop_at_input and silence["input"] else ""
