"""A key that the shell has flushed: the command is typed again, unless something else may have ended it, or run it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import msgspec
import pytest

import blockpty
from blockpty.engine import authentication
from blockpty.engine.loading import KEYS, OBEY_KEYS
from blockpty.engine.machine_state import MachineState
from blockpty.engine.states import ShellState
from blockpty.host.client import HostClient
from blockpty.host.shells import load_text
from blockpty.runtime.channel import ConversationChannel
from blockpty.runtime.completion import Completion
from blockpty.runtime.follower import RecordFollower
from blockpty.runtime.submission import UNBOUND_SECONDS, Submission, _Typed
from blockpty.spool.layout import Layout
from tests.support.async_tests import async_test
from tests.support.profile import LONG

KEYED: Final = _Typed(KEYS["bash"], key=True)
# In a shell elsewhere, with what follows the key or without a key.
TAGGED: Final = _Typed(KEYS["bash"] + b"a1b2c3d4;6;true!", key=True, tag="a1b2c3d4")
LINE: Final = _Typed(b"true\r", key=False, line=b"true")


class Shell:
    """A shell at its prompt: a command was typed, its key was flushed, and a silence tells that nothing comes of it."""

    def __init__(self, layout: Layout, *, unread: bool = False, **sampled: object) -> None:
        self.layout, self.id = layout, "c1"
        self.live = self.host = self.subscribers = self
        self.reader = SimpleNamespace(position=SimpleNamespace(offset=0))
        self.state = MachineState(shell=ShellState.IDLE, current=authentication.Shell("n", features="key", name="bash"))
        self.state.submission = {"request": "1.1", "cmd": "true", "key": True}
        at_editor = {"icanon": False, "foreground": "shell", "foreground_pid": 1, "replaced": False}
        quiet = {"unread": unread, "storage": None, "stopped": False, "working": False}
        self._sample = SimpleNamespace(**{**at_editor, **quiet, **sampled})
        self.to_come = [ShellState.IDLE]
        self.typed: list[bytes] = []

    def pump(self) -> None:
        """Nothing comes."""

    async def changed(self, timeout: float | None = None) -> None:
        self.state.shell = self.to_come.pop(0)
        if not self.to_come:
            self.state.submission = None

    async def own(self) -> None:
        """It is ours already."""

    async def type(self, data: bytes, author: str) -> None:
        self.typed.append(data)

    async def inspect(self, conversation_id: str) -> SimpleNamespace:
        return self._sample


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
    typed = await submission._taken(completion, "true", None, retried, KEYED)
    assert (typed is not None) == again
    if typed is not None:
        assert typed.data == KEYS["bash"]
        assert layout.submit.read_bytes() == load_text("true")


@pytest.mark.parametrize(
    "sampled",
    [
        {"storage": "stream: No space left on device"},
        {"stopped": True},
        {"working": True},
        {"foreground": "child", "foreground_pid": 2},
        {"replaced": True},
    ],
    ids=["full disk", "stopped", "working", "a program has the terminal", "a program has replaced the shell"],
)
@async_test
async def test_nothing_is_typed_again_that_may_have_run_unseen(tmp_path: Path, sampled: dict[str, object]) -> None:
    shell = Shell(Layout(tmp_path), **sampled)
    completion = Completion(cast("RecordFollower", shell), "1.1")
    submission = Submission(cast("ConversationChannel", shell))
    assert await submission._taken(completion, "true", None, False, KEYED) is None


@async_test
async def test_the_end_of_another_line_is_not_yet_its_prompt(tmp_path: Path) -> None:
    shell = Shell(Layout(tmp_path))
    shell.state.shell = ShellState.RETURNING
    shell.to_come = [ShellState.IDLE, ShellState.IDLE]
    completion = Completion(cast("RecordFollower", shell), "1.1")
    submission = Submission(cast("ConversationChannel", shell))
    assert await submission._taken(completion, "true", None, False, KEYED) is not None


@pytest.mark.parametrize(("name", "lost"), [("bash", False), ("bash", True), ("zsh", False)])
@pytest.mark.parametrize("obeys", [True, False])
@async_test
async def test_an_owed_prompt_is_asked_for_before_the_key(tmp_path: Path, name: str, lost: bool, obeys: bool) -> None:
    """bash obeys a Ctrl-C that it noticed late with the next key. Ours is a macro, which would cost a level of them."""
    shell, now = Shell(Layout(tmp_path)), 100.0
    shell.state.current.name, shell.state.owed, shell.state.submission = name, 1, None
    if lost:
        shell.state.current.note_doubt("prompt_lost: no mark comes")

    async def changed(timeout: float | None = None) -> None:
        nonlocal now
        now += timeout or 0
        shell.state.owed = 0 if obeys else 1

    shell.changed = changed  # type: ignore[method-assign]
    await Submission(cast("ConversationChannel", shell), lambda: now)._ready(queue=False)
    assert shell.typed == ([OBEY_KEYS[name]] if name in OBEY_KEYS and not lost else [])
    assert now <= 101.0


@async_test
async def test_the_line_end_of_a_ctrl_c_is_not_that_of_the_command(tmp_path: Path) -> None:
    """zsh that has noticed a Ctrl-C late obeys it with our key, and ends the empty line."""
    shell = Shell(Layout(tmp_path))
    shell.state.echo.data = b"\x1b[?2004l\r\r\n"
    shell.state.echo.line_end = len(shell.state.echo.data)
    submission = Submission(cast("ConversationChannel", shell))
    completion = Completion(cast("RecordFollower", shell), "1.1")
    assert await submission._taken(completion, "true", None, False, KEYED) is not None


def far_shell(tmp_path: Path, *states: ShellState) -> Shell:
    """A shell elsewhere that was given a command, of which nothing is seen yet."""
    shell = Shell(Layout(tmp_path))
    shell.state.current.features = "key,fed,nofs"
    shell.state.shell = ShellState.SUBMITTED
    shell.to_come = [*states]
    return shell


@async_test
async def test_a_ctrl_c_that_took_a_part_of_the_key_is_obeyed(tmp_path: Path) -> None:
    """What follows the key is on the line then, as if the key were not bound; the next command tries it again."""
    shell = far_shell(tmp_path, ShellState.SUBMITTED, ShellState.IDLE)
    shell.state.echo.data = b"1b[7717~a1b2c3d4;6;true!"
    submission = Submission(cast("ConversationChannel", shell))
    completion = Completion(cast("RecordFollower", shell), "1.1")
    completion.interrupted = True
    assert await submission._taken(completion, "true", None, False, TAGGED) is None
    assert shell.typed == [b"\x03"]
    assert submission._has_key(shell.state)


@pytest.mark.parametrize("typed", [TAGGED, LINE], ids=["key", "line"])
@async_test
async def test_a_ctrl_c_that_was_lost_is_typed_again(tmp_path: Path, typed: _Typed) -> None:
    """Until the shell shows its prompt."""
    shell, now = far_shell(tmp_path), 100.0
    submission = Submission(cast("ConversationChannel", shell), lambda: now)
    completion = Completion(cast("RecordFollower", shell), "1.1")
    completion.disturbed = completion.interrupted = True

    async def changed(timeout: float | None = None) -> None:
        nonlocal now
        now += timeout or 0
        if len(shell.typed) == 2:
            shell.state.shell, shell.state.submission = ShellState.IDLE, None

    shell.changed = changed  # type: ignore[method-assign]
    assert await submission._taken(completion, "true", None, False, typed) is None
    assert shell.typed == [b"\x03", b"\x03"]


@pytest.mark.parametrize("typed", [TAGGED, LINE], ids=["key", "line"])
@async_test
async def test_an_earlier_ctrl_c_is_not_that_of_a_command_that_takes_long(tmp_path: Path, typed: _Typed) -> None:
    """The engine's own, for one, with which it has emptied the line."""
    shell = far_shell(tmp_path)
    shell.state.interrupted = True
    began = now = 100.0
    submission = Submission(cast("ConversationChannel", shell), lambda: now)

    async def changed(timeout: float | None = None) -> None:
        nonlocal now
        now += timeout or 0
        if now > began + UNBOUND_SECONDS + 0.2:
            shell.state.shell = ShellState.RUNNING

    shell.changed = changed  # type: ignore[method-assign]
    completion = Completion(cast("RecordFollower", shell), "1.1")
    assert await submission._taken(completion, "true", None, False, typed) is None
    assert shell.typed == []


def type_before(monkeypatch: pytest.MonkeyPatch, other: bytes) -> None:
    """Have a person type this just before each command."""
    sent = HostClient.input

    async def behind_another(self: HostClient, conversation: str, data: bytes, **options: Any) -> Any:
        if options.get("submit"):
            await sent(self, conversation, other, author="user", epoch=options.get("epoch"))
        return await sent(self, conversation, data, **options)

    monkeypatch.setattr(HostClient, "input", behind_another)


@pytest.mark.parametrize("name", ["bash", "zsh"])
@async_test
async def test_an_incomplete_text_behind_a_line_of_a_person_never_runs(
    home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops at PS2 behind the prompt of that line, where our key once more would be the rest of it."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("one", shell=name, cwd=str(home))
        await conversation.run("true")
        type_before(monkeypatch, b"\r")
        result = await conversation.run("touch ran; echo 'open", timeout_ms=30_000)
        monkeypatch.undo()
        assert (result.block.state, (home / "ran").exists()) == ("rejected", False)
        assert (await conversation.run("echo on")).output == "on\n"
        await conversation.close()


@pytest.mark.parametrize("other", [b"\r", b"sleep 0.2; echo a . b\r"], ids=["Enter", "a command"])
@async_test
async def test_a_line_of_a_person_without_a_begin_is_not_the_command(
    home: Path, other: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The END of that line was taken for the one of the command, which then ran in no block."""
    Path(os.environ["HOME"], ".bashrc").write_text("readonly PS0=\n")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("one", shell="bash")
        await conversation.run("true")
        type_before(monkeypatch, other)
        result = await conversation.run("echo mine; false", timeout_ms=30_000)
        assert (result.output, result.block.exit_status) == ("mine\n", 1)
        begun = await conversation.exec_block("echo up; read line; echo got $line")
        monkeypatch.undo()
        assert (await conversation.wait_for("up", from_cursor=begun.cursor)).matched, "before the command has ended"
        assert "echo up; read line" in (await conversation.screen()).content
        await conversation.send_line("it")
        answered = await conversation.wait_for("got it", from_cursor=begun.cursor)
        assert answered.matched
        # Not that of the other line.
        await conversation.wait_for({"token": "PROMPT"}, from_cursor=answered.cursor)
        blocks = (await conversation.blocks()).blocks
        assert [block.cmd for block in blocks] == ["true", "echo mine; false", "echo up; read line; echo got $line"]
        assert (await conversation.verify()).clean
        await conversation.close()


@async_test
async def test_a_program_of_a_person_that_reads_the_key_leaves_the_shell_usable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without BEGIN, only the echo of the command would say that it runs, and none comes."""
    Path(os.environ["HOME"], ".bashrc").write_text("readonly PS0=\n")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("one", shell="bash")
        await conversation.run("true")
        type_before(monkeypatch, b"echo re''ady; read -r x\r")
        before = conversation.cursor
        running = asyncio.ensure_future(conversation.run("touch ran", timeout_ms=3_600_000))
        live = conversation.live
        # Waits and screens see nothing of another line while a command may still begin.
        while b"ready" not in live.stream.read(before, live.stream.size() - before) or live.state.submission is None:
            await live.subscribers.changed(0.1)
        monkeypatch.undo()
        await conversation.send("\n", author="user")
        with pytest.raises(blockpty.NoPrompt, match="has not begun"):
            await running
        assert (await conversation.run("echo on")).output == "on\n"
        assert [block.cmd for block in (await conversation.blocks()).blocks] == ["true", "echo on"]
        await conversation.close()


SHELLS = [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh", "fish")]
# With a startup file for bash.
SHELLS_AS_THEY_ARE = [
    pytest.param(name, "", id=name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh", "fish")
]


@pytest.mark.parametrize("name", SHELLS)
@async_test
async def test_an_interrupt_at_the_prompt_takes_no_command_with_it(home: Path, name: str) -> None:
    # bash that is interrupted before its line editor waits obeys with the next key. In the long form it would use up
    # the macros of readline if that were ours.
    rounds = 400 if LONG else 20
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("one", shell=name)
        for number in range(rounds):
            await conversation.ctrl_c()
            for _ in range(number % 4):
                await asyncio.to_thread(int)
            result = await conversation.run(f"echo {number}", timeout_ms=30_000)
            assert (result.output, result.block.exit_status) == (f"{number}\n", 0)
        blocks = (await conversation.blocks(page_size=rounds)).blocks
        assert [block.cmd for block in blocks] == [f"echo {number}" for number in range(rounds)]
        await conversation.close()


@pytest.mark.parametrize(
    ("name", "startup"), [*SHELLS_AS_THEY_ARE, pytest.param("bash", "readonly PS0=", id="no BEGIN")]
)
@async_test
async def test_a_command_that_a_ctrl_c_took_away_is_answered(
    home: Path, name: str, startup: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only when the time of the caller is up."""
    Path(os.environ["HOME"], ".bashrc").write_text(f"{startup}\n")
    sent = HostClient.input

    async def taken_away(self: HostClient, conversation: str, data: bytes, **options: Any) -> Any:
        reply = await sent(self, conversation, b"", **options)
        await sent(self, conversation, b"\x03", author="user", epoch=options.get("epoch"))
        monkeypatch.undo()
        return msgspec.structs.replace(reply, accepted=len(data))

    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("one", shell=name)
        await conversation.run("true")
        monkeypatch.setattr(HostClient, "input", taken_away)
        with pytest.raises(blockpty.NoPrompt, match="has not begun"):
            await conversation.run("touch ran", timeout_ms=3_600_000)
        assert (await conversation.run("echo on")).output == "on\n"
        assert [block.cmd for block in (await conversation.blocks()).blocks] == ["true", "echo on"]
        await conversation.close()


@pytest.mark.parametrize("name", SHELLS[:2])
@async_test
async def test_a_lost_key_that_empties_the_line_is_typed_again(
    home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """zsh loses a Ctrl-C that comes while it draws its second prompt, as it does for an incomplete text."""
    keys: list[bytes] = []
    typed = blockpty.Conversation.type

    async def lossy(self: blockpty.Conversation, data: bytes, *args: Any, **kwargs: Any) -> Any:
        keys.append(data)
        if data == b"\x03" and keys.count(data) == 1:
            return None
        return await typed(self, data, *args, **kwargs)

    monkeypatch.setattr(blockpty.Conversation, "type", lossy)
    # What is not typed again would end only then.
    monkeypatch.setattr("blockpty.runtime.submission.READY_SECONDS", 300.0)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("one", shell=name)
        result = await conversation.run("if", timeout_ms=30_000)
        assert (result.block.cmd, result.block.state) == ("if", "rejected")
        assert keys.count(b"\x03") == 2
        assert (await conversation.run("echo on")).output == "on\n"
        assert [block.cmd for block in (await conversation.blocks()).blocks] == ["if", "echo on"]
        await conversation.close()
