"""Submitting a command: a staged file, one short typed line, and only at an authenticated prompt.

Rules of this file: nothing is typed before the shell has shown a prompt that the machine believes; one submission at
a time. The typed line is short whatever the command is, so no terminal cuts it, and the shell reads the command as
one unit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from blockpty.engine.snapshot import MachineState
from blockpty.engine.states import ShellState
from blockpty.errors import BadRequest, Busy, InteractiveSessionActive, NoPrompt
from blockpty.host.handover import typed_command
from blockpty.host.shells import clear_keys, stage, submit_line
from blockpty.model.results import DoneResult
from blockpty.runtime.covered import Cover
from blockpty.runtime.handover import REPAIR_SECONDS, can_repair, enter_shell, may_repair
from blockpty.runtime.modes import is_session
from blockpty.runtime.sessions import clear_line, ended
from blockpty.spool.full import full_is_an_error
from blockpty.spool.layout import make_private
from blockpty.spool.opening import open_file

if TYPE_CHECKING:
    from blockpty.runtime.conversation import Conversation

# How long a shell may take between END and PROMPT, or to show a clean prompt, before a command is refused.
READY_SECONDS: Final = 10.0
SETTLED_SECONDS: Final = 1.0
# Shells that do not say when their line editor begins to read, and how long that may take; all of it where none does.
EDITS_LATE: Final = frozenset({"ksh93", "mksh", "ash"})
EDITOR_SECONDS: Final = 0.2
EDITOR_POLL_SECONDS: Final = 0.001
# How long a shell that replaced ours may take to its first prompt.
START_SECONDS: Final = 5.0
SUBMIT_DEADLINE_MS: Final = 5000
MAX_COMMAND: Final = 16 * 1024 * 1024


class Submitted(NamedTuple):
    """A command that was typed: where, when, and the number of its block unless another line comes before it."""

    seq: int
    ts: int
    cursor: int
    request: str


class Submission:
    """Types commands into one conversation, in turn."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._turn = asyncio.Lock()

    async def submit(self, kind: str, command: str, cwd: str | None, *, queue: bool) -> Submitted:
        """Type one staged command."""
        _check_command(command)
        conversation = self._conversation
        async with self._turn:
            await self._ready(queue)
            _check_cwd(conversation.live.state, cwd)
            line = self._line(conversation.live.state, command, cwd)
            request = conversation.next_request()
            reply = await conversation.host.input(
                conversation.id,
                line + b"\r",
                author="agent",
                req=request,
                submit={"kind": kind, "cmd": command, "request": request},
                deadline_ms=SUBMIT_DEADLINE_MS,
                epoch=conversation.epoch,
            )
            seq, ts = conversation.live.submitted(request)
            return Submitted(seq, ts, reply.offset, request)

    async def enter_shell(self, shell: str | None, seconds: float) -> DoneResult:
        """Give the hooks to the shell that is at a prompt now; in turn with commands."""
        async with self._turn:
            return await enter_shell(self._conversation, shell, seconds)

    def _line(self, state: MachineState, command: str, cwd: str | None) -> bytes:
        """Return the line that runs the command: it names a staged file, or holds the command itself."""
        if state.offers("nofs"):
            return typed_command(state.shell_name, command, cwd)
        path = self._stage(state.next_block, command, cwd)
        return submit_line(str(path), state.shell_name).encode("utf-8", "surrogateescape")

    def _stage(self, seq: int, command: str, cwd: str | None) -> Path:
        path = self._conversation.layout.commands / str(seq)
        path.unlink(missing_ok=True)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        with full_is_an_error("the command's text"):
            try:
                descriptor = open_file(path, flags)
            except FileNotFoundError:
                # Somebody has removed the directory.
                for directory in (path.parent.parent, path.parent):
                    make_private(directory)
                descriptor = open_file(path, flags)
            with open(descriptor, "wb") as file:
                file.write(stage(command, cwd, self._conversation.live.state.shell_name))
        return path

    async def _ready(self, queue: bool) -> None:
        """Return when the shell is at a clean prompt; raise when it cannot be, or only later without `queue`."""
        conversation = self._conversation
        await conversation.own()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + READY_SECONDS
        settled_by, starts_by = loop.time() + SETTLED_SECONDS, loop.time() + START_SECONDS
        cleared = repaired = edits = False
        while True:
            conversation.live.pump()
            state = conversation.live.state
            if state.shell is ShellState.EXITED:
                raise ended(conversation.id, state)
            if state.hooks_lost and not repaired:
                sample = await conversation.host.inspect(conversation.id)
                if can_repair(state, sample):
                    repaired = True
                    await enter_shell(conversation, None, REPAIR_SECONDS)
                    continue
                if may_repair(state, sample) and loop.time() < starts_by:
                    await conversation.live.changed(starts_by - loop.time())
                    continue
            if state.hooks_lost:
                raise NoPrompt(
                    f"{conversation.id} lost its shell integration: {state.integrity_reason}",
                    hint="reset starts a fresh shell; send and wait_for work on",
                )
            if state.shell is ShellState.IDLE and state.fed and loop.time() < settled_by:
                # A program that was typed to may have left some of it unread; the silence after the prompt tells.
                await conversation.live.changed(settled_by - loop.time())
                continue
            if state.shell is ShellState.IDLE and state.submission is not None and loop.time() < settled_by:
                # One that was typed behind somebody else's line is about to begin, unless that line's program read it.
                await conversation.live.changed(settled_by - loop.time())
                continue
            if state.shell is ShellState.IDLE:
                if state.shell_name in EDITS_LATE and not edits:
                    edits = True
                    await self._line_editor()
                    continue
                return
            if state.shell is ShellState.EDITING and not cleared and not state.inputs:
                # Something was typed and never entered; on that line a command would be part of it.
                cleared = True
                await clear_line(conversation, clear_keys(state.shell_name), "engine")
                continue
            if state.shell in (ShellState.RUNNING, ShellState.SUBMITTED):
                _refuse_busy(conversation.id, state, queue, conversation.live.cover)
                await conversation.live.changed()
                deadline = loop.time() + READY_SECONDS
                continue
            if loop.time() >= deadline:
                raise NoPrompt(
                    f"{conversation.id} shows no prompt",
                    hint="status tells what the terminal does; reset starts a fresh shell",
                )
            await conversation.live.changed(deadline - loop.time())


    async def _line_editor(self) -> None:
        """Return when the line editor reads: the prompt is there before, and what is typed in between echoes twice."""
        conversation = self._conversation
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EDITOR_SECONDS):
                # Polled, because nothing tells when the terminal's mode changes.
                while (await conversation.host.inspect(conversation.id)).icanon is not False:  # noqa: ASYNC110
                    await asyncio.sleep(EDITOR_POLL_SECONDS)


def _refuse_busy(conversation_id: str, state: MachineState, queue: bool, cover: Cover) -> None:
    if is_session(state):
        raise InteractiveSessionActive(
            f"an interactive session has the terminal of {conversation_id}",
            hint="use send and wait_for, or end_session",
        )
    if not queue:
        if state.block is not None:
            block_id, command = state.block.block_id, state.block.cmd
        else:
            block_id, command = f"b{state.next_block}", str((state.submission or {}).get("cmd", ""))
        raise Busy(
            f"{conversation_id} is busy with {block_id} ({cover.text(command)[:40]!r})",
            hint="wait_for its PROMPT, interrupt it, or queue=true",
        )


def _check_command(command: str) -> None:
    if not isinstance(command, str):
        raise BadRequest("the command is no text")
    if "\0" in command:
        raise BadRequest(
            "the command holds a NUL byte, which no shell can take", hint="remove it, or write the data to a file"
        )
    if len(command) > MAX_COMMAND:
        raise BadRequest(f"the command is longer than {MAX_COMMAND} characters", hint="put the data into a file")


def _check_cwd(state: MachineState, cwd: str | None) -> None:
    if cwd is None or state.offers("nofs"):
        return
    if state.cwd is None and not cwd.startswith("/"):
        return  # a shell that does not tell where it is; `cd` will find out
    # Of pathlib and of this, only this says no to a name that is too long for any directory.
    if not os.path.isdir(os.path.join(state.cwd or "/", cwd)):
        raise BadRequest(f"the directory {cwd[:99]!r} is no directory", hint="create it first, or leave cwd out")


def encoded(text: str) -> bytes:
    """Return the bytes of a text, or raise BadRequest where it is none (a lone surrogate)."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise BadRequest(f"not a text: {problem.reason}", hint="give bytes, or data_b64") from None
