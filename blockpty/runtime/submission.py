"""Submission of a command: our private key, or one short typed line, and only at an authenticated prompt.

The key makes the shell's line editor load the command from a file and run it, as if a person had typed it
(docs/decisions/submission-key.md). A command that the line editor should not be given is staged: a line that reads it
from a file is loaded, or typed where the shell has no key. Either way the typed bytes are few, so no terminal cuts
them, and the shell reads the command as one unit.

Rules of this file: nothing is typed before the shell has shown a prompt that the machine accepts; one submission at a
time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from blockpty.control.principals import current
from blockpty.engine.loading import KEYS, OBEY_KEYS, is_keyed
from blockpty.engine.machine_state import MachineState
from blockpty.engine.outcome import is_whole
from blockpty.engine.states import ShellState
from blockpty.engine.submission_echo import ECHO_WINDOW
from blockpty.errors import BadRequest, Busy, InteractiveSessionActive, NoPrompt
from blockpty.host.injection import command_line, fed_text, read_here, typed_command
from blockpty.host.shells import (
    KEEP_LAST,
    MAX_LOADED,
    SETTLE,
    clear_keys,
    eval_line,
    is_settled,
    load_line,
    load_text,
    loads,
    stage,
    submit_line,
)
from blockpty.model.results import DoneResult
from blockpty.runtime.completion import Completion
from blockpty.runtime.drawn import drawn_command
from blockpty.runtime.line_editor import UNBOUND_SECONDS, LineEditorWatch
from blockpty.runtime.redactor import Redactor
from blockpty.runtime.sessions import (
    CLEAR_SECONDS,
    CLEAR_TRIES,
    clear_line,
    ended,
    lost_its_mark,
    lost_its_prompt,
)
from blockpty.runtime.shell_entry import REPAIR_SECONDS, can_repair, enter_shell, may_repair
from blockpty.runtime.status import is_session
from blockpty.spool.layout import make_private
from blockpty.spool.storage import open_file, refused

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from blockpty.control.policy import Question
    from blockpty.runtime.channel import ConversationChannel

# How long a shell may take between END and PROMPT, or to show a clean prompt, before a command is refused.
READY_SECONDS: Final = 10.0
SETTLED_SECONDS: Final = 1.0
# Shells that do not say when their line editor begins to read, and how long that may take; all of it where none does.
EDITS_LATE: Final = frozenset({"ksh93", "mksh", "ash"})
EDITOR_SECONDS: Final = 0.2
EDITOR_POLL_SECONDS: Final = 0.001
# How long a shell that replaced ours may take to its first prompt.
START_SECONDS: Final = 5.0
# How long a shell may take no more of a command.
SUBMIT_DEADLINE_MS: Final = 5000
# How long a shell may take to run what its key has loaded, before the caller gets its answer anyway. Longer than the
# host may say that it is busy, as one with a helper in its process group is: 7.5 s.
TAKEN_SECONDS: Final = 8.0
# How often a line editor that says nothing is looked at.
UNBOUND_POLL_SECONDS: Final = 0.1
# On one column zsh 5.9 crashes when it draws a text at once, bash 5.2 on two.
NARROWEST: Final = 4
# Of the random word that tells whether our key has taken what follows it.
TAG_BYTES: Final = 4
_SEQUENCE: Final = re.compile(rb"\x1b\[[0-9;?]*[@-~]")
_REPEATED: Final = re.compile(rb"(.)\r\1")
MAX_COMMAND: Final = 16 * 1024 * 1024


class Submitted(NamedTuple):
    """A command that was typed: where, when, and the number of its block unless another line comes before it."""

    seq: int
    ts: int
    cursor: int
    request: str
    author: str = "agent"
    completion: Completion | None = None


class _Typed(NamedTuple):
    """How a command is handed to the shell: what is typed, and what the timeline says of it.

    `line` is what the shell draws where that is not the command. `tag` is echoed where the key is not bound.
    """

    data: bytes
    key: bool
    line: bytes | None = None
    incomplete: bool = False
    tag: str = ""

    def fields(self) -> dict[str, Any]:
        """Return what the timeline says beside the command."""
        fields: dict[str, Any] = {"key": True} if self.key else {}
        if self.line is not None:
            fields["line"] = self.line.decode("utf-8", "surrogateescape")
        if self.incomplete:
            fields["incomplete"] = True
        return fields


class Submission:
    """Types commands into one channel, in turn."""

    def __init__(self, channel: ConversationChannel, clock: Callable[[], float] = time.monotonic) -> None:
        self._channel = channel
        self._clock = clock
        self._turn = asyncio.Lock()
        # The shell in which our key turned out not to be bound, by its nonce.
        self._keyless = ""
        # The request whose key may still be unread: it must not find the text of another command.
        self._unread = ""
        # What reads the last command that was typed.
        self._editor = LineEditorWatch(channel, clock=clock)

    async def submit(
        self, kind: str, command: str, cwd: str | None, *, queue: bool = False, awaited: bool = False,
        stop_at_input: bool = False, operation: str = "run", granted: AbstractSet[Question] = frozenset(),
    ) -> Submitted:  # fmt: skip
        """Type one staged command; with `awaited` the result has its completion, which the caller ends.

        `stop_at_input`: the completion is done as well when the command waits for input. `operation`: the one that
        asks. Raises ApprovalNeeded unless what a person has `granted` covers it.
        """
        _check_command(command)
        channel = self._channel
        async with self._turn:
            await self._ready(queue)
            cwd = os.fspath(cwd) if cwd is not None else None  # a Path is one as well
            _check_cwd(channel.live.state, cwd)
            principal = current()
            author = principal.author()
            request = channel.next_request()
            fields: dict[str, Any] = {"kind": kind, "cmd": command, "request": request}
            if awaited:
                fields["awaited"] = True
            if _lacks_begin(channel.live.state):
                fields["unmarked"] = True
            again: _Typed | None = None
            while True:
                # From here to the input nothing is awaited, so what is decided about is what will happen.
                channel.check_control(principal, author)
                gate = channel.gate
                if gate is not None:
                    gate.check_command(channel, principal, author, operation, command, cwd, granted)
                typed = again or self._form(channel.live.state, command, cwd)
                completion = Completion(channel.live, request, stop_at_input=stop_at_input)
                channel.live.waits.add(completion)
                handed_over = False
                try:
                    reply = await channel.host.input(
                        channel.id,
                        typed.data,
                        author=author,
                        principal=principal.name,
                        req=request,
                        submit={**fields, **typed.fields()},
                        deadline_ms=SUBMIT_DEADLINE_MS,
                        epoch=channel.epoch,
                    )
                    self._editor = LineEditorWatch(channel, reply.foreground_pid, self._clock)
                    if reply.accepted < len(typed.data):
                        await self._cut(request, len(typed.data), reply.accepted)
                    retried = again is not None
                    far = not channel.live.state.current.sees_files
                    again = await self._taken(completion, command, cwd, retried, typed) if typed.key or far else None
                    if again is None:
                        seq, ts = channel.live.submitted(request)
                        handed_over = awaited
                        if not awaited:
                            return Submitted(seq, ts, reply.offset, request, author)
                        completion.begin()
                        return Submitted(seq, ts, reply.offset, request, author, completion)
                finally:
                    # A new one is used when the command is typed again: this one may have seen another line's prompt.
                    if not handed_over:
                        channel.live.waits.end(completion)

    def _has_key(self, state: MachineState) -> bool:
        """Return whether the shell's line editor has our key, which replaces whatever stands on the command line."""
        if state.current.name not in KEYS or state.size[0] < NARROWEST or state.current.nonce == self._keyless:
            return False
        return state.current.offers("key") and (state.current.sees_files or state.current.offers("fed"))

    async def enter_shell(self, shell: str | None, seconds: float) -> DoneResult:
        """Give the hooks to the shell that is at a prompt now; in turn with commands."""
        async with self._turn:
            return await enter_shell(self._channel, shell, seconds)

    @contextlib.asynccontextmanager
    async def at_prompt(self) -> AsyncIterator[None]:
        """Keep the shell at its prompt for something that types nothing; raises as `submit` does."""
        async with self._turn:
            await self._ready(queue=False)
            yield

    def _form(self, state: MachineState, command: str, cwd: str | None) -> _Typed:
        """Return how a command is handed over: by our key, or as a line that names a staged file or holds it."""
        has_key = self._has_key(state)
        if not state.current.sees_files and not (has_key and len(command) <= MAX_LOADED):
            line = typed_command(state.current.name, command, cwd)
            return _Typed(line + b"\r", key=False, line=line)
        # Where no BEGIN comes, the block begins behind a line that is known to be complete.
        if has_key and cwd is None and not _lacks_begin(state) and loads(command, state.current.name):
            return self._loaded(state, load_text(command))
        return self._staged(state, command, cwd, history=command, key=has_key)

    def _loaded(self, state: MachineState, content: bytes) -> _Typed:
        """Return our key, which loads this content: from a file, or where the shell sees none, from what follows."""
        key = KEYS[state.current.name]
        if state.current.sees_files:
            _write(self._channel.layout.submit, content)
            return _Typed(key, key=True)
        tag = secrets.token_hex(TAG_BYTES)
        return _Typed(key + fed_text(content, tag), key=True, tag=tag)

    def _staged(
        self, state: MachineState, command: str, cwd: str | None, *, history: str, key: bool, runs: bool = True
    ) -> _Typed:
        """Return the line that runs a command which it names or holds, typed or loaded by our key.

        `runs`: False for a command that is known to be incomplete, which the shell only rejects.
        """
        settles = key and state.current.name == "bash" and (is_settled(command) or not runs)
        settle = SETTLE if settles else (b"", b"")
        text = stage(command, cwd, state.current.name) + (settle[0] if runs else b"")
        if state.current.sees_files:
            path = self._channel.layout.commands / str(state.next_block)
            _write(path, text)
            line = submit_line(str(path), state.current.name).encode("utf-8", "surrogateescape")
        else:
            line = read_here(text) if state.current.name == "bash" else command_line(state.current.name, command, cwd)
        if not key:
            return _Typed(line + b"\r", key=False, line=line)
        if settle[1] and not runs:
            line = KEEP_LAST + line
        return self._loaded_line(state, line + settle[1], command, history=history)

    def _loaded_line(self, state: MachineState, line: bytes, command: str, *, history: str) -> _Typed:
        """Return a line that our key loads in place of a command, and what the shell's history gets for it."""
        # The echo has room for the command then, which is drawn in its place; readline draws no more than a screen.
        cols, rows = state.size
        room = min(len(drawn_command(command)), cols * max(1, rows - 2))
        # Where no BEGIN comes, the end of the line has to be seen in what is kept of the echo.
        line = line.ljust(min(room, ECHO_WINDOW // 2) if _lacks_begin(state) else room)
        content = line if state.current.name == "fish" else load_line(line, history)
        return self._loaded(state, content)._replace(line=line)

    def _rejected(self, state: MachineState, command: str, cwd: str | None) -> _Typed:
        """Return the line that has the shell say what is wrong with a text that it found incomplete.

        Where only a here-document has no end, the text runs.
        """
        if "<<" in command:
            return self._staged(state, command, cwd, history="", key=True)
        line = eval_line(command) if state.current.name == "zsh" else None
        if line is None:
            return self._staged(state, command, cwd, history="", key=True, runs=False)._replace(incomplete=True)
        return self._loaded_line(state, line, command, history="")._replace(incomplete=True)

    async def _taken(
        self, completion: Completion, command: str, cwd: str | None, retried: bool, typed: _Typed
    ) -> _Typed | None:
        """Wait until the shell runs what it was given; return how to hand it over again where it does not.

        Nothing of the command has run then: the text was incomplete, or the key is not bound in this keymap.
        """
        live, request = self._channel.live, completion.request
        deadline, insists_at = self._clock() + TAKEN_SECONDS, self._clock() + UNBOUND_SECONDS
        while True:
            state = live.state
            if state.opened_by(request) is None:
                live.pump()
            self._unread = request if state.opened_by(request) is None else ""
            if not self._unread or self._clock() >= deadline:
                return None
            if state.shell is ShellState.IDLE and not (retried or completion.disturbed):
                # Another line's prompt, or a late one: the shell may have flushed the key while it drew it.
                if state.submission is not None:
                    await live.subscribers.changed(deadline - self._clock())
                    continue
                return self._form(state, command, cwd) if await self._editor.reads_on() else None
            if state.shell is ShellState.RETURNING and is_keyed(state.submission):
                # Another line has ended; its prompt, and whether ours still comes, is about to be known.
                await live.subscribers.changed(deadline - self._clock())
                continue
            if state.shell is not ShellState.SUBMITTED or (state.incomplete and not typed.key):
                return None
            if state.incomplete:
                await self._abandon()
                # The shell has it in its history already.
                return self._rejected(live.state, command, cwd)
            # Nothing is asked of the host while the shell still prints: that would take longer than most commands.
            before = live.reader.position.offset
            await live.subscribers.changed(min(UNBOUND_POLL_SECONDS, deadline - self._clock()))
            if live.reader.position.offset == before:
                live.pump()
            if not state.current.sees_files:
                unbound = typed.key and is_echoed(typed.tag, live.state.echo.data)
                if completion.interrupted and self._clock() >= insists_at:
                    # A Ctrl-C took the rest of the text away, and came where neither the handler nor bash itself, which
                    # was drawing the line, let it end what they did.
                    insists_at = self._clock() + UNBOUND_SECONDS
                    await self._channel.type(clear_keys(state.current.name), "engine")
            else:
                seen = await self._editor.look(prints=live.reader.position.offset != before)
                if seen == "runs":
                    return None
                unbound = seen == "unbound"
            if unbound:
                # A Ctrl-C that took a part of the key away says nothing of the key, and the command is not wanted.
                unwanted = completion.interrupted
                if not unwanted:
                    self._keyless = state.current.nonce
                await self._abandon()
                return None if unwanted else self._form(live.state, command, cwd)

    async def _cut(self, request: str, length: int, accepted: int) -> None:
        """Empty the command line, which holds a part of a command; raise what says that the shell took no more."""
        channel = self._channel
        channel.live.pump()
        state = channel.live.state
        if state.shell is ShellState.EXITED:
            return  # the answer says so
        principal = current()
        channel.check_control(principal, principal.author())
        submission = state.submission
        if state.shell is ShellState.SUBMITTED and submission is not None and submission.get("request") == request:
            await self._abandon()
        raise NoPrompt(
            f"{channel.id} took only {accepted} of the {length} bytes that hand over the command; it did not run",
            hint="status says what the terminal does; reset starts a fresh shell",
        )

    async def _abandon(self) -> None:
        """Empty the command line, and wait for the prompt that says so.

        zsh loses a Ctrl-C that comes while it draws its second prompt: where the line editor reads on, it is typed
        again; also where that cannot be seen, since nothing runs there.
        """
        channel = self._channel
        deadline, tries, again_at = self._clock() + READY_SECONDS, 0, 0.0
        while (state := channel.live.state).shell is not ShellState.IDLE and (now := self._clock()) < deadline:
            again = not tries or not state.current.sees_files or (now >= again_at and await self._editor.reads_on())
            if now >= again_at and tries < CLEAR_TRIES and again:
                await channel.type(clear_keys(channel.live.state.current.name), "engine")
                tries, again_at = tries + 1, now + CLEAR_SECONDS
            else:
                again_at = max(again_at, now + UNBOUND_POLL_SECONDS)
            await channel.live.subscribers.changed(min(again_at, deadline) - now)

    async def _ready(self, queue: bool) -> None:
        """Return when the shell is at a clean prompt; raise when it cannot be, or only later without `queue`."""
        channel = self._channel
        await channel.own()
        now = self._clock()
        deadline, settled_by, starts_by = now + READY_SECONDS, now + SETTLED_SECONDS, now + START_SECONDS
        cleared = repaired = edits = redrawn = False
        while True:
            channel.live.pump()
            state = channel.live.state
            if state.shell is ShellState.EXITED:
                raise ended(channel.id, state)
            if state.hooks_lost and not repaired:
                sample = await channel.host.inspect(channel.id)
                if can_repair(state, sample):
                    repaired = True
                    await enter_shell(channel, None, REPAIR_SECONDS)
                    continue
                if may_repair(state, sample) and self._clock() < starts_by:
                    await channel.live.subscribers.changed(starts_by - self._clock())
                    continue
            if state.hooks_lost:
                raise NoPrompt(
                    f"{channel.id} lost its shell integration: {state.current.integrity_reason}",
                    hint="reset starts a fresh shell; send and wait_for still work",
                )
            if state.shell is ShellState.IDLE and self._is_unsettled(state) and self._clock() < settled_by:
                await channel.live.subscribers.changed(settled_by - self._clock())
                continue
            if state.shell is ShellState.IDLE:
                if not edits and (state.owed or state.current.name in EDITS_LATE):
                    edits = True
                    await self._obey(state)
                    await self._line_editor(state)
                    continue
                unread, self._unread = self._unread, ""
                if unread and state.opened_by(unread) is None:
                    await self._abandon()
                    continue
                return
            if state.shell is ShellState.EDITING and not cleared and not state.inputs:
                # Something was typed and never entered; on that line a command would be part of it.
                cleared = True
                await clear_line(channel, clear_keys(state.current.name), "engine")
                continue
            if state.shell in (ShellState.RUNNING, ShellState.SUBMITTED):
                _refuse_busy(channel.id, state, queue, channel.live.redactor)
                await channel.live.subscribers.changed()
                deadline = self._clock() + READY_SECONDS
                continue
            if not redrawn and lost_its_prompt(state):
                redrawn = True
                await channel.type(clear_keys(state.current.name), "engine")
                continue
            if self._clock() >= deadline:
                raise NoPrompt(
                    f"{channel.id} shows no prompt",
                    hint="status says what the terminal does; reset starts a fresh shell",
                )
            await channel.live.subscribers.changed(deadline - self._clock())

    async def _obey(self, state: MachineState) -> None:
        """Let bash obey a Ctrl-C that it has noticed late, or return after a while in which it has not.

        The key for it is typed alone: our other key would come behind the prompt that this makes, as type-ahead does.
        """
        obeys = state.owed and state.current.name in OBEY_KEYS and self._has_key(state)
        if not obeys or lost_its_mark(state):
            return
        channel, deadline = self._channel, self._clock() + SETTLED_SECONDS
        await channel.type(OBEY_KEYS[state.current.name], "engine")
        while channel.live.state.owed and (left := deadline - self._clock()) > 0:
            await channel.live.subscribers.changed(left)

    def _is_unsettled(self, state: MachineState) -> bool:
        """Return whether the silence after the prompt has to tell what stands on the command line.

        A program may have left some of what it was typed unread, which our key replaces; and a command that was typed
        behind another line is about to begin, unless that line's program has read it.
        """
        return state.submission is not None or (bool(state.unread.fed) and not self._has_key(state))

    async def _line_editor(self, state: MachineState) -> None:
        """Return when the line editor reads: the prompt is there before, and what is typed in between echoes twice."""
        if state.current.name not in EDITS_LATE:
            return
        channel = self._channel
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EDITOR_SECONDS):
                # Polled, because nothing tells when the terminal's mode changes.
                while (await channel.host.inspect(channel.id)).icanon is not False:  # noqa: ASYNC110
                    await asyncio.sleep(EDITOR_POLL_SECONDS)


def _lacks_begin(state: MachineState) -> bool:
    """Return whether bash, which sees our files, has said at its prompt that no BEGIN will come, as without PS0."""
    shell = state.current
    return not shell.begins and not shell.prompt_only and shell.sees_files


def is_echoed(tag: str, data: bytes) -> bool:
    """Return whether a line editor has echoed the tag; zsh prints the last character of a full row twice."""
    plain = _SEQUENCE.sub(b"", data).replace(b" \r", b"")
    return tag.encode() in _REPEATED.sub(rb"\1", plain)


def _write(path: Path, text: bytes) -> None:
    """Write a file that the shell reads; raises StorageFull."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass  # the last command needed no such file
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    try:
        try:
            descriptor = open_file(path, flags)
        except FileNotFoundError:
            # The directory was removed.
            for directory in (path.parent.parent, path.parent):
                make_private(directory)
            descriptor = open_file(path, flags)
        try:
            written = os.write(descriptor, text)
            while written < len(text):
                written += os.write(descriptor, memoryview(text)[written:])
        finally:
            os.close(descriptor)
    except OSError as problem:
        raise refused("the command's text", problem) from None


def _refuse_busy(conversation_id: str, state: MachineState, queue: bool, redactor: Redactor) -> None:
    if state.source is not None and state.block is not None and is_whole(state.source, state.block):
        raise InteractiveSessionActive(
            f"{conversation_id} is {state.source['kind']}:{redactor.text(state.source['target'])[:40]}, "
            "and no shell that takes commands",
            hint="use send and wait_for"
            + ("" if state.source["kind"] == "exec" else "; enter_shell gives hooks to a shell at its prompt there"),
        )
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
            f"{conversation_id} is busy with {block_id} ({redactor.text(command)[:40]!r})",
            hint="wait_for its PROMPT, interrupt it, or queue=true",
        )


def _check_command(command: str) -> None:
    if not isinstance(command, str):
        raise BadRequest("the command is not a string")
    if "\0" in command:
        raise BadRequest(
            "the command holds a NUL byte, which no shell can take", hint="remove it, or write the data to a file"
        )
    if len(command) > MAX_COMMAND:
        raise BadRequest(f"the command is longer than {MAX_COMMAND} characters", hint="put the data into a file")


def _check_cwd(state: MachineState, cwd: str | None) -> None:
    if cwd is None or not state.current.sees_files:
        return
    if state.current.cwd is None and not cwd.startswith("/"):
        return  # a shell that does not tell where it is; `cd` will find out
    # Of pathlib and of this, only this says no to a name that is too long for any directory.
    if not os.path.isdir(os.path.join(state.current.cwd or "/", cwd)):
        raise BadRequest(f"{cwd[:99]!r} is not a directory", hint="create it first, or leave cwd out")


def encoded(text: str) -> bytes:
    """Return the bytes of a text, or raise BadRequest where it is none (a lone surrogate)."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise BadRequest(f"not a text: {problem.reason}", hint="give bytes, or data_b64") from None
