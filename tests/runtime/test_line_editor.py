"""A shell that does not mark the beginning of a command: the command runs all the same, and gets no key of ours."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

import blockpty
from blockpty.engine import authentication
from blockpty.engine.machine_state import MachineState
from blockpty.runtime import submission
from blockpty.runtime.channel import ConversationChannel
from blockpty.runtime.line_editor import LineEditorWatch
from tests.support.async_tests import async_test

SHELL, PROGRAM = 7, 8
READS: Final = {
    "icanon": False, "foreground": "shell", "foreground_pid": SHELL, "unread": 0, "replaced": False,
    "storage": None, "stopped": False, "working": False,
}  # fmt: skip


class Channel:
    """A conversation whose terminal is sampled as it is set."""

    def __init__(self, *, outer: bool, **sampled: object) -> None:
        self.id, self.host, self.live = "c1", self, self
        self.state = MachineState(current=authentication.Shell("n"))
        self.state.outer = [authentication.Shell("o")] if outer else []
        self._sample = SimpleNamespace(**{**READS, **sampled})

    async def inspect(self, conversation_id: str) -> SimpleNamespace:
        return self._sample


@pytest.mark.parametrize("outer", [False, True], ids=["the first shell", "a shell inside"])
@pytest.mark.parametrize(
    ("sampled", "seen"),
    [
        ({}, "unbound"),
        ({"foreground_pid": PROGRAM, "foreground": "child"}, "runs"),
        ({"foreground_pid": PROGRAM, "foreground": "child", "icanon": True}, "runs"),
        ({"icanon": True}, "runs"),
        ({"icanon": True, "unread": 7}, None),
        ({"unread": 7}, None),
        ({"working": True}, None),
        ({"replaced": True}, None),
        ({"foreground_pid": None, "foreground": None}, None),
    ],
    ids=["reads", "raw program", "program", "builtin", "unread in line mode", "unread", "at work", "exec", "unknown"],
)
@async_test
async def test_what_samples_say(sampled: dict[str, object], seen: str | None, outer: bool) -> None:
    now = 100.0
    channel = cast("ConversationChannel", Channel(outer=outer, **sampled))
    watch = LineEditorWatch(channel, SHELL, lambda: now)
    assert await watch.look(prints=False) is None  # nothing is certain at the first look
    now += 1.0
    assert await watch.look(prints=False) == seen


@pytest.mark.parametrize("outer", [False, True], ids=["the first shell", "a shell inside"])
@async_test
async def test_a_line_that_was_entered_runs(outer: bool) -> None:
    """Whatever the terminal looks like: through sudo, ours is in raw mode all the time."""
    now = 100.0
    channel = Channel(outer=outer)
    channel.state.submission = {"shown": " . /c/1"}
    channel.state.echo.data, channel.state.echo.line_end = b" . /c/1\r\n", 9
    watch = LineEditorWatch(cast("ConversationChannel", channel), SHELL, lambda: now)
    assert await watch.look(prints=False) is None
    now += 1.0
    assert await watch.look(prints=False) == "runs"


@async_test
async def test_a_line_that_ended_may_be_one_without_a_begin() -> None:
    """On a dumb terminal it is drawn in another way than it is looked for, and what reads keys looks like an editor."""
    now = 100.0
    channel = Channel(outer=False)
    channel.state.submission = {"shown": " . '/home/commands", "key": True, "unmarked": True}
    channel.state.echo.data, channel.state.echo.line_end = b"</commands/1'\r\n", 15
    watch = LineEditorWatch(cast("ConversationChannel", channel), SHELL, lambda: now)
    for _ in range(3):
        assert await watch.look(prints=False) != "unbound"
        now += 1.0


@async_test
async def test_a_reader_that_is_not_known_is_not_taken_for_the_shell() -> None:
    """An earlier version of the recorder does not name it."""
    now = 100.0
    watch = LineEditorWatch(cast("ConversationChannel", Channel(outer=True)), None, lambda: now)
    for _ in range(3):
        assert await watch.look(prints=False) is None
        now += 1.0


@async_test
async def test_what_is_printed_says_that_the_key_is_bound() -> None:
    now = 100.0
    watch = LineEditorWatch(cast("ConversationChannel", Channel(outer=False)), SHELL, lambda: now)
    for prints in (False, True, False):
        assert await watch.look(prints=prints) is None
        now += 0.9
    assert await watch.look(prints=False) is None
    now += 0.2
    assert await watch.look(prints=False) == "unbound"


STARTUP: Final = {"PS0 is readonly": "readonly PS0='mine\\n'", "stderr is lost": "exec 2>/dev/null"}
COMMANDS: Final = {
    # Before it had the terminal for a second it got Ctrl-C, and then the command once more.
    "raw program": "sh -c 'stty raw -echo; echo up; exec cat >got'",
    "prints all the time": "while :; do echo up; sleep 0.01; done",
    "builtin": "echo up; read line",
    "reads a key": "echo up >>ran; read -s -n1 key",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("startup", STARTUP.values(), ids=STARTUP)
@async_test
async def test_a_command_without_a_begin_is_typed_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, startup: str, command: str
) -> None:
    # So that nothing but the terminal says that it runs; but one that reads a key looks like a line editor, and where
    # the shell does not draw its line, nothing says that it was entered.
    says_nothing = "2>" in startup and "-n1" in command
    monkeypatch.setattr(submission, "TAKEN_SECONDS", 2.5 if says_nothing else 1e6)
    user = Path(os.environ["HOME"])
    (user / ".bashrc").write_text(f"{startup}\n")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(user))
        await conversation.exec_block(command)
        typed = _typed(conversation.directory)
        assert [one["author"] for one in typed] == ["agent"], typed
        await conversation.close()
    for name, text in (("got", ""), ("ran", "up\n")):
        assert not (user / name).exists() or (user / name).read_text() == text


@async_test
async def test_a_wait_sees_the_output_of_a_command_without_a_begin(home: Path) -> None:
    Path(os.environ["HOME"], ".bashrc").write_text("readonly PS0=\n")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        begun = await conversation.exec_block("echo up; read line; echo got $line")
        assert (await conversation.wait_for("up", from_cursor=begun.cursor)).matched
        assert (await conversation.wait_for({"screen": "(?m)^up"}, from_cursor=begun.cursor)).matched
        assert "echo up; read line" in (await conversation.screen()).content
        await conversation.send_line("it")
        done = await conversation.wait_for({"regex": "got (\\w+)"}, from_cursor=begun.cursor)
        assert done.groups == {"1": "it"}, done
        await conversation.wait_for({"token": "PROMPT"}, from_cursor=begun.cursor)
        asked = await conversation.run("read -p 'name? ' line; echo got $line")
        assert (asked.reason, asked.output) == ("input", "name? ")
        await conversation.send_line("it")
        await conversation.wait_for({"token": "PROMPT"}, from_cursor=asked.cursor)
        for command, output, status in (("echo 'a", None, 2), ("echo hi", "hi\n", 0)):
            ran = await conversation.run(command)
            assert (ran.reason, ran.block.exit_status) == ("prompt", status)
            assert output is None or ran.output == output
        blocks = (await conversation.blocks()).blocks
        assert [block.degraded for block in blocks] == ["begin_lost"] * 4
        assert (await conversation.verify()).clean
        await conversation.close()


def _typed(directory: Path) -> list[dict[str, Any]]:
    entries = map(json.loads, (directory / "timeline.jsonl").read_text().splitlines())
    return [entry for entry in entries if entry["kind"] == "input"]
