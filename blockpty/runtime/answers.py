"""Answers to what programs ask their terminal: what it is, and whether it is well.

Rules of this file: an answer is a constant, never anything that a program has printed. Only what arrives while this
engine owns the conversation is answered, never what is read again; and only where somebody reads: a program that has
switched the terminal to raw mode, or fish 4 itself, which asks at its prompts (and waits ten seconds since 4.1). The
question in a file that is merely shown gets none, because the answer would stand on the next command line; fish 4
knows an answer when it sees one.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING, Final

from blockpty.engine.records import DEVICE_ATTRIBUTES, DEVICE_STATUS
from blockpty.engine.snapshot import MachineState
from blockpty.engine.states import ShellState
from blockpty.errors import BlockptyError

if TYPE_CHECKING:
    from blockpty.runtime.conversation import Conversation

_QUESTION: Final = re.compile(rb"\x1b\[(?:(0?c)|5n)")
# A question whose end has not come.
_OPEN: Final = re.compile(rb"\x1b(?:\[[05]?)?\Z")


class Questions:
    """Finds the questions in a stream that comes in any pieces."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; return one answer for each question that ends in them."""
        data = self._held + data
        found = _OPEN.search(data, max(0, len(data) - 3))
        self._held = found.group() if found else b""
        return [DEVICE_ATTRIBUTES if asked.group(1) else DEVICE_STATUS for asked in _QUESTION.finditer(data)]


def shell_asks(state: MachineState) -> bool:
    """Whether the shell itself may be asking: fish 4 and later, whose version is not known before its first mark."""
    if state.shell_name != "fish":
        return False
    major = state.shell_version.partition(".")[0]
    return state.shell is ShellState.STARTING or (major.isdecimal() and int(major) >= 4)


class Answers:
    """Answers the questions in what arrives for one conversation from now on."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._questions = Questions()
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self, data: bytes, state: MachineState) -> None:
        """Look at what has just arrived; `state` is the machine's, after it."""
        answers = self._questions.feed(data)
        # Without an epoch another engine owns the conversation, and answers.
        if not answers or not self._conversation.epoch:
            return
        running = state.shell is ShellState.RUNNING
        if running or shell_asks(state):
            task = asyncio.get_running_loop().create_task(self._answer(answers, running))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, answers: list[bytes], running: bool) -> None:
        conversation = self._conversation
        # Who asked may be gone by now, and the shell or the host with it.
        with contextlib.suppress(BlockptyError):
            if running:
                sample = await conversation.host.inspect(conversation.id)
                if sample.icanon is not False or sample.foreground != "child":
                    return
            for answer in answers:
                await conversation.host.input(
                    conversation.id, answer, author="engine", req=conversation.next_request(), epoch=conversation.epoch
                )

    def close(self) -> None:
        """Answer nothing any more."""
        for task in self._tasks:
            task.cancel()
