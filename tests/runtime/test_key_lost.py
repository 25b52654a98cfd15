"""A key that the shell has flushed: the command is typed again, unless something else may have ended it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from blockpty.engine import authentication
from blockpty.engine.loading import KEYS
from blockpty.engine.machine_state import MachineState
from blockpty.engine.states import ShellState
from blockpty.host.shells import load_text
from blockpty.runtime.channel import ConversationChannel
from blockpty.runtime.completion import Completion
from blockpty.runtime.follower import RecordFollower
from blockpty.runtime.submission import Submission
from blockpty.spool.layout import Layout
from tests.support.async_tests import async_test


class Shell:
    """A shell at its prompt: a command was typed, its key was flushed, and a silence tells that nothing comes of it."""

    def __init__(self, layout: Layout, *, unread: bool) -> None:
        self.layout, self.id = layout, "c1"
        self.live = self.host = self.subscribers = self
        self.reader = SimpleNamespace(position=SimpleNamespace(offset=0))
        self.state = MachineState(shell=ShellState.IDLE, current=authentication.Shell("n", features="key", name="bash"))
        self.state.submission = {"request": "1.1", "cmd": "true", "key": True}
        self._unread = unread

    def pump(self) -> None:
        """Nothing comes."""

    async def changed(self, timeout: float | None = None) -> None:
        self.state.submission = None

    async def inspect(self, conversation_id: str) -> SimpleNamespace:
        return SimpleNamespace(icanon=False, unread=self._unread)


@pytest.mark.parametrize(
    ("unread", "disturbed", "retried", "again"),
    [
        (False, False, False, True),
        (True, False, False, False),
        (False, True, False, False),
        (False, False, True, False),
    ],
    ids=["flushed", "still unread", "interrupted", "typed twice already"],
)
@async_test
async def test_a_flushed_key(tmp_path: Path, unread: bool, disturbed: bool, retried: bool, again: bool) -> None:
    layout = Layout(tmp_path)
    shell = Shell(layout, unread=unread)
    completion = Completion(cast("RecordFollower", shell), "1.1")
    completion.disturbed = disturbed
    submission = Submission(cast("ConversationChannel", shell))
    typed = await submission._taken(completion, "true", None, retried)
    assert (typed is not None) == again
    if typed is not None:
        assert typed.data == KEYS["bash"]
        assert layout.submit.read_bytes() == load_text("true")
