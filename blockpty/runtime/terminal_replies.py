"""Replies to what programs ask their terminal: what it is, where its cursor stands, how large it is.

Rules of this file: an answer is a constant or a number, never anything that a program has printed (the list is in
screen/queries.py). Only what arrives while this engine owns the conversation is answered, never what is read again;
and only where a reader waits: a program that has switched the terminal to raw mode, a command in a shell elsewhere
(whose terminal's modes are not seen), or fish 4 itself, which asks at its prompts (and waits ten seconds since 4.1)
and gets no more than it waits for. The question in a file that is merely shown gets none, because the answer would
stand on the next command line; but for a shell elsewhere, where nothing tells the two apart, and where the next command
replaces what stands on its line. fish 4 knows an answer when it sees one.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from blockpty.engine.machine_state import MachineState
from blockpty.engine.states import ShellState
from blockpty.errors import BlockptyError
from blockpty.runtime.record_reader import Position
from blockpty.screen.queries import Questions, answer

if TYPE_CHECKING:
    from blockpty.runtime.channel import ConversationChannel

# Sources whose own program keeps our terminal in raw mode: how the far one is read cannot be seen. tmux answers itself.
_CLIENTS: Final = frozenset({"ssh", "container"})
# What fish 4 waits for.
_SHELL_ASKS: Final = frozenset({b"\x1b[c", b"\x1b[0c", b"\x1b[5n"})


def shell_asks(state: MachineState) -> bool:
    """Whether the shell itself may be asking: fish 4 and later, whose version is not known before its first mark."""
    if state.current.name != "fish":
        return False
    major = state.current.version.partition(".")[0]
    return state.shell is ShellState.STARTING or (major.isdecimal() and int(major) >= 4)


class TerminalReplies:
    """Answers the questions in what arrives for one conversation from now on."""

    def __init__(self, channel: ConversationChannel) -> None:
        self._channel = channel
        self._questions = Questions(channel.cursor)

    def look(self, data: bytes, state: MachineState) -> None:
        """Look at what has just arrived; `state` is the machine's, after it."""
        asked = self._questions.feed(data)
        # Without an epoch another engine owns the conversation, and answers.
        if not asked or not self._channel.epoch or not self._channel.answering:
            return
        running = state.shell is ShellState.RUNNING
        if not running and not shell_asks(state):
            return
        live = self._channel.live
        answers = []
        for question in asked:
            if not running and question.asked not in _SHELL_ASKS:
                continue
            # The answer is that of the moment of the question; a constant needs no screen.
            place = Position(question.end, live.reader.position.timeline)
            found = answer(question.asked, lambda place=place: live.screens.now(place).catch_up())  # type: ignore[misc]
            if found is not None:
                answers.append(found)
        if answers:
            self._channel.live.tasks.start(self._answer(answers, running))

    async def _answer(self, answers: list[bytes], running: bool) -> None:
        channel = self._channel
        # Who asked may be gone by now, and the shell or the host with it.
        with contextlib.suppress(BlockptyError):
            if running:
                sample = await channel.host.inspect(channel.id)
                state = channel.live.state
                # With a seam tmux keeps the shell over there, and answers.
                far = state.source is not None and state.source["kind"] in _CLIENTS and state.seam is None
                if sample.icanon is not False or not (far or sample.foreground == "child"):
                    return
            for answer in answers:
                await channel.host.input(
                    channel.id, answer, author="engine", req=channel.next_request(), epoch=channel.epoch
                )
