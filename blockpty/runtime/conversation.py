"""A conversation: one PTY, its record and what can be asked of it.

Rules of this file: a command is typed only at an authenticated prompt; every result carries a cursor; timeouts never
touch the program. What the bytes mean is the machine's business, how they are followed the live record's, who moves
them the host's.
"""

from __future__ import annotations

import base64
from asyncio import Task
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from blockpty.api import limits
from blockpty.api.conversation_context import ConversationContext, output_path, raising
from blockpty.control.principals import current
from blockpty.engine.keys import KeyModes, bracket, encode_keys, names_text
from blockpty.engine.states import ShellState
from blockpty.engine.waiter import Outcome
from blockpty.errors import BadRequest, InternalError, NoSession
from blockpty.model.block import Block
from blockpty.model.conditions import Match
from blockpty.model.results import (
    CloseResult,
    ControlResult,
    DeleteResult,
    DoneResult,
    ExecResult,
    GetFileResult,
    OpenResult,
    PutFileResult,
    RepairResult,
    RunResult,
    SealResult,
    SendResult,
    SessionResult,
    StatusResult,
    UserInputResult,
    VerdictResult,
    VerifyResult,
    WaitResult,
)
from blockpty.model.unmet import checked
from blockpty.runtime import interruption
from blockpty.runtime.channel import ConversationChannel
from blockpty.runtime.completion import Completion
from blockpty.runtime.control import CANCELLED, DONE
from blockpty.runtime.file_transfer import FileTransfer
from blockpty.runtime.follower import RecordFollower
from blockpty.runtime.gate import ApprovalNeeded
from blockpty.runtime.listing import lost_because
from blockpty.runtime.reading import check_view
from blockpty.runtime.running import own_block, run_result, until_done
from blockpty.runtime.sessions import alive, clear_line, known_session, may_type, running_program
from blockpty.runtime.ssh_options import connection_of
from blockpty.runtime.status import inspect_in_step, is_session, nested_of, private_modes, status_of, tty_of
from blockpty.runtime.submission import Submission, Submitted, encoded
from blockpty.runtime.taken_for_text import in_keys, in_match, in_typed
from blockpty.runtime.terminal_replies import TerminalReplies
from blockpty.runtime.truncation import LogTruncation
from blockpty.runtime.wait_for import WaitFor
from blockpty.runtime.waits import WaitRequest
from blockpty.spool.layout import Layout
from blockpty.spool.ownership import Ownership

if TYPE_CHECKING:
    from blockpty.control.policy import Question
    from blockpty.host.client import HostClient
    from blockpty.runtime.advice import Standing
    from blockpty.screen.protocol import Modes


H = TypeVar("H", WaitResult, SendResult)


class _InputWait(NamedTuple):
    """What an input waits for; the place from which is not known before it is typed."""

    request: WaitRequest
    timeout_ms: int
    hint: str | None


class RecordSettings(Struct, frozen=True):
    """How the engine has its conversations recorded and shown.

    Attributes:
        durability: when what is recorded is synced, one of `DURABILITIES`.
        redact, allow_uncovered: whether secrets are redacted in all that is returned, and whether a call may ask for
            them.
        keep_bytes: how much of a record is kept; None: all of it.
    """

    durability: str = "process"
    redact: bool = True
    allow_uncovered: bool = False
    keep_bytes: int | None = None


class RecordOperations(Protocol):
    """Protocol of an engine for a conversation's record as a whole."""

    async def verify(self, conversation_id: str, *, key: str | None = None) -> VerifyResult:
        """Compare its files."""

    async def repair(self, conversation_id: str, *, key: str | None = None) -> RepairResult:
        """Derive its files again."""

    async def seal(self, conversation_id: str, key: str) -> SealResult:
        """Seal it."""

    async def erase(self, conversation_id: str, *, dry_run: bool = False) -> DeleteResult:
        """Delete it."""


class Conversation(ConversationContext, ConversationChannel):
    """One conversation; get it from `Engine.open` or `Engine.conversation`. A context manager that closes it.

    All methods may be cancelled: what was asked of the terminal may then have happened or not, nothing recorded is
    lost.

    Attributes:
        id: its name.
        directory: where its files are.
        opened: the result of `open`, None for one that existed.
    """

    _offered = (*ConversationContext._offered, "cursor", "directory", "mode", "pid", "shell_id")

    def __init__(
        self,
        conversation_id: str,
        layout: Layout,
        host: HostClient,
        ownership: Ownership | None,
        respawn: Callable[[Conversation], Awaitable[OpenResult]],
        settings: RecordSettings,
    ) -> None:
        keep_bytes = settings.keep_bytes
        live = RecordFollower(
            conversation_id, layout, owner=ownership is not None,
            durability=settings.durability, redact=settings.redact,
            truncation=(lambda live: LogTruncation(live, keep_bytes)) if keep_bytes is not None else None,
        )  # fmt: skip
        super().__init__(conversation_id, layout, live, host, ownership, TerminalReplies, settings.allow_uncovered)
        self.opened: OpenResult | None = None
        # Ends when the shell of a tmux pane has our hooks, or is left to take them later.
        self.offering: Task[None] | None = None
        self.is_sandboxed = False
        self._respawn = respawn
        # The engine that it belongs to, where there is one.
        self.records: RecordOperations | None = None
        # What callers were given as a hint on words that they gave as text; once is enough.
        self._hints_given: set[str] = set()
        self._waiting = WaitFor(
            self.live, self.note, self._watch_idle, lambda: self.host.sample(self.id), self._stands, f"w{self.epoch}."
        )
        self._submission = Submission(self)
        self._files = FileTransfer(self, self._submission, self._block, settings.allow_uncovered)
        self._cursor = 0

    async def attach(self, host: HostClient) -> None:
        """Read what is there and follow what comes; called by the engine, again when the host had to be replaced."""
        again = host is not self.host
        if again:
            self.host = host
            self._notes.adopt(host)
        await self.live.catch_up()
        subscribed = await self._listen()
        if not subscribed.live:
            # The shell may have ended in order since we read, and its end is in the record.
            await self.live.drain()
        if self._ownership is not None:
            if not again:
                self.note({"type": "owner", "epoch": self.epoch, "pictures": True, "control": 1})
                self.control.attached()
            if not subscribed.live and self.live.state.instance and self.live.state.shell is not ShellState.EXITED:
                # Every process that held the terminal is gone, and the shell with them; how it ended is unknown.
                self.note({"type": "lost", "reason": lost_because(self.live.state)})
                await self.noted()
        self._cursor = self.live.state.wait_cursor

    async def detach(self) -> None:
        """Detach from the conversation; the shell runs on."""
        try:
            await self._notes.written()
            await self.host.unsubscribe(self.id)
            await self.live.save_ahead()
        except InternalError:
            # There is no host any more.
            self.live.pump()
        finally:
            # Also when this is cancelled: nothing else will close the files.
            self.control.close()
            self._notes.close()
            self.live.close()
            if self._ownership is not None:
                self._ownership.release()

    def __repr__(self) -> str:
        cwd = self.live.state.current.cwd
        where = f" {cwd}" if cwd is not None else ""
        return f"<Conversation {self.id} {self.mode}{where}>"

    def output_path(self, block: Block) -> Path:
        """Return the file with the output of a block that has ended: its text, with secrets as they were printed.

        Raises NotFound for a block that runs or printed nothing.
        """
        return output_path(self.directory, block)

    @property
    def over(self) -> bool:
        """Whether the shell has ended, everything is read, and no wait is pending."""
        state = self.live.state
        lost = state.exit is not None and "lost" in state.exit
        return state.shell is ShellState.EXITED and (state.eof or lost) and not self.live.waits

    async def suspend(self, resume: Callable[[Conversation], Awaitable[object]]) -> None:
        """Close the files; the record can still be read, and typing calls `resume` first."""
        self._resume = resume
        try:
            await self.detach()
        finally:
            self._ownership = None

    async def resume(self, host: HostClient) -> None:
        """Attach to the conversation again after `suspend`; raises as `attach` does."""
        self._ownership = Ownership.take(self.layout.lock)
        self._resume = None
        self.live.reopen(owner=self._ownership is not None)
        self._notes.adopt(host)
        self.host = host
        await self.attach(host)

    def _watch_idle(self, ms: int) -> None:
        self.live.tasks.start(self.host.watch_idle(self.id, ms))

    # What is going on

    async def status(self) -> StatusResult:
        """Return mode, terminal state and integrity, sampled now."""
        self.live.pump()
        state = self.live.state
        foreground, tty, nested, pid, sandbox = None, state.tty, None, None, None
        if state.shell is not ShellState.EXITED:
            seen = await inspect_in_step(self)
            foreground, pid, sandbox = seen.foreground_name, seen.pid, seen.sandbox
            nested = nested_of(state, foreground, seen.foreground, copy=seen.foreground_copy)
            if seen.live and seen.icanon is not None:
                tty = {name: getattr(seen, name) for name in ("icanon", "echo", "foreground", "reads")}
        modes = self._screen_modes()
        return status_of(
            self.id,
            state,
            tty_of(state, tty, modes),
            cursor=self.cursor,
            foreground=foreground,
            transport=self.host.transport,
            owner=self._ownership is not None,
            nested=nested,
            control=self.control.state,
            halted=self.gate.halted if self.gate is not None else None,
            pid=pid,
            sandbox=sandbox,
            connection=connection_of(self.directory, state),
        )

    def _screen_modes(self) -> frozenset[int]:
        """Return the private modes that the running program has set, such as 2004 for bracketed paste."""
        block = self.live.state.block
        return private_modes(self.live.stream, block.begin, self.cursor) if block is not None else frozenset()

    # Commands

    async def exec_block(self, command: str, *, cwd: str | None = None, queue: bool = False) -> ExecResult:
        """Run a command as exactly one block and return at once.

        `cwd` changes the shell's directory first, as `cd` does. While something runs: Busy, or with `queue` wait for
        its end; InteractiveSessionActive while a session has the terminal. Raises Exited, NoPrompt, BadRequest.
        """
        typed = await self._submit("command", "exec_block", command, cwd, queue=queue)
        return ExecResult(f"b{typed.seq}", typed.seq, typed.ts, typed.cursor)

    async def exec_interactive(self, command: str, *, cwd: str | None = None) -> SessionResult:
        """Start an interactive program as one block; then use `send` and `wait_for`. Raises as `exec_block` does."""
        typed = await self._submit("session", "exec_interactive", command, cwd)
        return SessionResult(f"s{typed.seq}", f"b{typed.seq}", typed.ts, typed.cursor)

    async def run(
        self,
        command: str,
        *,
        cwd: str | None = None,
        timeout_ms: int = 30000,
        max_bytes: int = 65536,
        view: str = "text",
        stop_at_input: bool = True,
        timeout: float | None = None,
        check: bool = False,
    ) -> RunResult:
        """Run a command as one block and wait for its end; when the time is up it runs on.

        `max_bytes` bounds the returned text, head and tail are kept; `view` as in `read`. `stop_at_input`: return as
        well, with reason `input`, when the command waits for input from the terminal; it runs on. `timeout`: seconds,
        in place of `timeout_ms`. `check`: raise CommandFailed, with the output, for another exit status than 0, and
        Timeout when the time is up. Raises as `exec_block` does.
        """
        __tracebackhide__ = True  # as in `checked`
        timeout_ms = limits.milliseconds(timeout, timeout_ms)
        limits.check("timeout_ms", timeout_ms)
        limits.check("max_bytes", max_bytes)
        check_view(view)
        typed = await self._submit("command", "run", command, cwd, awaited=True, stop_at_input=stop_at_input)
        assert typed.completion is not None  # it was asked for
        result = await self._until_done(typed.completion, timeout_ms)
        self._cursor = result.cursor
        block = self.live.redactor.block(own_block(self.id, self.live, typed, self._block))
        done = await run_result(self.live, block, result, max_bytes, view, self._over_bytes)
        if not result.matched:
            stands = await self._stands(result.reason)
            done = replace(done, tty=stands.tty, foreground=stands.foreground, hint=stands.hint)
        return checked(done) if check else done

    async def _stands(self, reason: str) -> Standing:
        # Most programs never need it.
        from blockpty.runtime.advice import standing

        return await standing(self, reason)

    async def _until_done(self, completion: Completion, timeout_ms: int) -> Outcome:
        return await until_done(self.live, completion, timeout_ms)

    async def _submit(
        self, kind: str, operation: str, command: str, cwd: str | None, *, queue: bool = False, awaited: bool = False,
        stop_at_input: bool = False,
    ) -> Submitted:  # fmt: skip
        granted: set[Question] = set()
        while True:
            try:
                typed = await self._submission.submit(
                    kind, command, cwd, queue=queue, awaited=awaited, stop_at_input=stop_at_input,
                    operation=operation, granted=granted,
                )  # fmt: skip
            except ApprovalNeeded as needed:
                # Outside of the turn: other commands go on meanwhile.
                assert self.gate is not None
                await self.gate.ask(self, needed)
                granted.add(needed.question)
                continue
            self._cursor = typed.cursor
            return typed

    # Input

    async def send(
        self,
        data: str | bytes | None = None,
        *,
        data_b64: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        secret: bool = False,
        secret_name: str | None = None,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Type bytes into the running program, as they are; as `user` also at the prompt.

        `author`: `agent` or `user`, for a caller that may be either; by default agent there, else what the token says.
        `secret`: neither the bytes nor their number are recorded; what the terminal or the program prints of them is.
        Without it that holds only where a program asks for a secret with echo off. `secret_name`: in place of data, a
        secret that a person has stored under this name, and Enter; the policy says where it may be typed, and that it
        must be asked for with echo off. Raises NoSession when nothing runs that could take them, LineTooLong when the
        terminal would cut a line. `accepted_bytes` is less than given when the program did not take them within five
        seconds.
        `match`, `stop`, `timeout_ms` (or `timeout`, in seconds), `view`, `max_bytes`: wait as `wait_for` does, from
        exactly this input on; the result then says how that ended. Cancelling leaves typed what was typed.
        """
        wait = self._armed(match, stop, timeout_ms, view, max_bytes, timeout)
        if [data, data_b64, secret_name].count(None) != 2:
            raise BadRequest("give either data or data_b64, or secret_name")
        if secret_name is not None:
            return await self._send_stored(secret_name, session_id, current().author(author), wait)
        if data is None:
            try:
                data = base64.b64decode(data_b64 or "", validate=True)
            except ValueError:  # binascii.Error is one; characters beyond ASCII are another
                raise BadRequest("data_b64 is not valid base64") from None
        author = current().author(author)
        await may_type(self, session_id, author)
        typed = await self._type(encoded(data) if isinstance(data, str) else data, wait, author, secret=secret)
        return self._hinted(typed, in_typed(data) if isinstance(data, str) and not secret else None)

    def _armed(
        self, match: Match | None, stop: Match | None, timeout_ms: int, view: str, max_bytes: int | None,
        timeout: float | None,
    ) -> _InputWait | None:  # fmt: skip
        """Check what an input is to wait for, before it is typed; None for nothing."""
        if match is None:
            if stop is not None:
                raise BadRequest("stop ends a wait, and this call does not wait", hint="give match as well")
            return None
        timeout_ms = limits.milliseconds(timeout, timeout_ms)
        limits.check("timeout_ms", timeout_ms)
        request = self._waiting.request(match, cursor=0, stop=stop, max_bytes=max_bytes, view=view)
        request.waiter(self.live.stream)  # a pattern that does not compile
        return _InputWait(request, timeout_ms, in_match(match, stop))

    async def _type(
        self, data: bytes, wait: _InputWait | None, author: str | None = None, *, secret: bool = False,
        stored: bool = False,
    ) -> SendResult:  # fmt: skip
        """Type bytes, and wait from there on for what is asked."""
        sent, place = await self.type_at(data, author, secret, stored=stored)
        if wait is None:
            return sent
        waited = await self._waiting.wait(replace(wait.request, cursor=place.offset), wait.timeout_ms, place)
        self._cursor = waited.cursor
        return self._hinted(sent.with_wait(waited), wait.hint)

    async def _send_stored(
        self, name: str, session_id: str | None, author: str, wait: _InputWait | None
    ) -> SendResult:  # fmt: skip
        await running_program(self, session_id)
        if self.gate is None:
            raise BadRequest("there is no policy here that names secrets")
        value = await self.gate.stored_secret(self, current(), author, name)
        return await self._type(value + b"\r", wait, author, secret=True, stored=True)

    async def send_line(
        self,
        text: str = "",
        *,
        session_id: str | None = None,
        secret: bool = False,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Type a text and Enter; line ends in the text are Enter too.

        `secret`, `match`, `stop`, `timeout_ms`, `view`, `max_bytes`, `timeout`: as for `send`.
        """
        wait = self._armed(match, stop, timeout_ms, view, max_bytes, timeout)
        await running_program(self, session_id)
        lines = text.replace("\r\n", "\r").replace("\n", "\r")
        typed = await self._type(encoded(lines) + b"\r", wait, secret=secret)
        return self._hinted(typed, None if secret else in_typed(text))

    async def send_keys(
        self,
        keys: str | Sequence[str],
        *,
        session_id: str | None = None,
        secret: bool = False,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Type keys in the notation of the reference (`[UP]`, `^C`, `[M-x]`), or use the mouse (`[CLICK 9,4]`, or
        `[CLICK "Save"]` where that text stands on the screen now).

        A list of them is typed as one. `secret`, `match`, `stop`, `timeout_ms`, `view`, `max_bytes`, `timeout`: as for
        `send`. They are sent as the program has asked the terminal to send them. Raises BadRequest for what it cannot
        get.
        """
        wait = self._armed(match, stop, timeout_ms, view, max_bytes, timeout)
        from blockpty.screen.finding import find_text

        await running_program(self, session_id)
        seen = await self.look()
        modes = seen.frame.modes
        asked = KeyModes(
            modes.application_cursor, modes.application_keypad, modes.mouse, modes.mouse_encoding, modes.keyboard
        )
        pressed = keys if isinstance(keys, str) else "".join(keys)
        # Only what an agent may see can be clicked: whether a text is there would tell the others.
        find = find_text(self.live.redactor.screen(seen, self.live.stream)[0].frame) if names_text(pressed) else None
        typed = await self._type(encode_keys(pressed, asked, find), wait, secret=secret)
        return self._hinted(typed, None if secret else in_keys(pressed))

    async def paste(
        self,
        text: str,
        *,
        session_id: str | None = None,
        secret: bool = False,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Type a text as a paste: bracketed when the program asked for it, never able to end the bracket itself.

        A person's is taken at the prompt too.
        `secret`, `match`, `stop`, `timeout_ms`, `view`, `max_bytes`, `timeout`: as for `send`.
        """
        wait = self._armed(match, stop, timeout_ms, view, max_bytes, timeout)
        author = current().author()
        await may_type(self, session_id, author)
        pasted = bracket(text, bracketed=(await self._modes()).bracketed_paste)
        return await self._type(pasted, wait, author, secret=secret)

    async def ctrl_c(self, *, session_id: str | None = None) -> SendResult:
        """Type Ctrl-C; at a prompt it clears the line, and is typed again if the line editor has missed it."""
        self.live.pump()
        state = self.live.state
        # On an empty line fish shows nothing that one could wait for, and if it loses the key, nothing is lost.
        shows_it = state.current.name != "fish" or state.dirty
        if session_id is None and state.shell in (ShellState.IDLE, ShellState.EDITING) and shows_it:
            return await clear_line(self, b"\x03")
        return await self._control(b"\x03", session_id)

    async def ctrl_d(self, *, session_id: str | None = None) -> SendResult:
        """Type Ctrl-D; at a prompt it ends the shell."""
        return await self._control(b"\x04", session_id)

    async def enter(
        self,
        *,
        session_id: str | None = None,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Type Enter (CR). `match`, `stop`, `timeout_ms`, `view`, `max_bytes`: as for `send`."""
        return await self._control(b"\r", session_id, self._armed(match, stop, timeout_ms, view, max_bytes, timeout))

    async def _modes(self) -> Modes:
        return (await self.look()).frame.modes

    async def _control(self, data: bytes, session_id: str | None, wait: _InputWait | None = None) -> SendResult:
        self.live.pump()
        if session_id is not None or self.live.state.shell is ShellState.SUBMITTED:
            await running_program(self, session_id)
        alive(self)
        return await self._type(data, wait)

    # Waiting

    async def wait_for(
        self,
        match: Match,
        *,
        session_id: str | None = None,
        from_cursor: int | None = None,
        timeout_ms: int = 30000,
        max_bytes: int | None = None,
        stop: Match | None = None,
        view: str = "text",
        echo: bool = False,
        context: int = 0,
        timeout: float | None = None,
    ) -> WaitResult:
        """Wait until something appears in the output, or one of several things.

        The answer is a function of the record, `from_cursor` and `match`; only the deadline is not. Without
        `from_cursor` the wait begins where the last one ended, else where the running block was submitted. `timeout_ms`
        0 looks once; `timeout`: seconds, in its place. A timeout is a result. Quiet times (`idle_ms`) count from the
        wait's own beginning, unless `from_cursor` asks about the past. `view` rendered searches the view text, and
        shows what a person sees. `context`: lines around a match to return. Raises BadCondition, BadCursor, NoSession.
        """
        timeout_ms = limits.milliseconds(timeout, timeout_ms)
        limits.check("timeout_ms", timeout_ms)
        if session_id is not None:
            known_session(self, session_id)
        cursor = self._cursor if from_cursor is None else from_cursor
        request = self._waiting.request(
            match, cursor=cursor, stop=stop, max_bytes=max_bytes, view=view, echo=echo, context=context,
            past=from_cursor is not None,
        )  # fmt: skip
        result = self._hinted(await self._waiting.wait(request, timeout_ms), in_match(match, stop))
        self._cursor = result.cursor
        return result

    expect = raising(wait_for)

    def _hinted(self, result: H, hint: str | None) -> H:
        """Return a result that says once how what was taken for text is written; not when it was found."""
        if hint is None or hint in self._hints_given or result.matched:
            return result
        self._hints_given.add(hint)
        return replace(result, hint=hint if result.hint is None else f"{hint}; {result.hint}")

    # Files

    async def put_file(
        self,
        path: str,
        data: str | bytes | None = None,
        *,
        data_b64: str | None = None,
        local_path: str | None = None,
        mode: str | None = None,
    ) -> PutFileResult:
        """Write a file of at most 64 MiB where the shell is, as a whole; give `data`, `data_b64` or `local_path`.

        `path`: absolute, or from the shell's directory or `~/` on. `local_path`: a file of this machine to take.
        `mode`: octal digits; default those of the file that is there, or what the umask leaves. Cancelling, like a cut,
        changes nothing but a part file beside it, with which the same call goes on. Raises Busy,
        InteractiveSessionActive (it needs a prompt), NotFound, BadRequest, Forbidden (`local_path` of an agent),
        ApprovalDenied, StorageFull.
        """
        return await self._files.put(path, data, data_b64, local_path, mode)

    async def get_file(
        self, path: str, local_path: str | None = None, *, max_bytes: int = 4_194_304, redact: bool | None = None
    ) -> GetFileResult:
        """Read a file where the shell is; `content` of the result has its bytes.

        `local_path`: a file of this machine to put it in. A file of more than `max_bytes`, 1 to 64 MiB, is refused.
        `redact`: redact secrets; by default as in all output. Raises as `put_file`, and Forbidden for
        `redact` false where the engine does not allow that.
        """
        return await self._files.get(path, local_path, max_bytes, redact)

    # Control

    async def request_user_input(self, message: str, *, timeout_seconds: int = 300) -> UserInputResult:
        """Ask a person to take over and type, and return how that ended.

        Agents may type nothing meanwhile. `done`: the person handed control back; `cancelled`: the person refused, or
        left; `timeout`: it was not taken, or not handed back within `timeout_seconds`, 1 to 86,400; a person who has it
        then keeps it. Raises BadRequest when a person is asked already, Exited.
        """
        if not 1 <= timeout_seconds <= 86_400:
            raise BadRequest(f"timeout_seconds cannot be {timeout_seconds}", hint="1 to 86,400")
        alive(self)
        outcome = await self.control.request_input(current(), message, timeout_seconds)
        return UserInputResult(outcome, self.cursor)

    async def take_control(
        self, who: str | None = None, *, shared: bool = False, lease: bool = False
    ) -> ControlResult:
        """Give control to a person: what agents type is refused from now on, and cut off where it is under way.

        `who`: the person's name; default the name of the token. `shared`: agents may go on typing, other persons may
        not. `lease`: control goes back by itself 30 s after this call, unless it is made again before; a WebSocket of
        the same conversation renews it while it is open. Raises UserInControl when another person has it, Forbidden
        for an agent.
        """
        await self.control.take(current(), who, shared=shared, lease=lease)
        if lease:
            self.control.begin_lease()
        return self._controlled()

    async def release_control(self, *, cancelled: bool = False) -> ControlResult:
        """Hand control back to agents; `cancelled` says so to one that had asked for a person. Raises Forbidden."""
        await self.control.release(current(), CANCELLED if cancelled else DONE)
        return self._controlled()

    def _controlled(self) -> ControlResult:
        state = self.control.state
        return ControlResult(self.id, state.state, state.who, state.since, state.halted, self.cursor)

    async def approve(self, approval_id: str, digest: str, *, scope: str = "once") -> VerdictResult:
        """Allow what waits for that: once, in this conversation as long as its engine runs, or always.

        `digest`: of what was shown. `always` adds the rule to the policy that `approvals` shows. Raises Stale for
        another digest, NotFound when it is no longer pending, Forbidden for an agent, BadRequest.
        """
        assert self.gate is not None
        self.gate.book.approve(current(), self.id, approval_id, digest, scope)
        return VerdictResult(approval_id, "approved", scope)

    async def deny(self, approval_id: str, digest: str, *, reason: str | None = None) -> VerdictResult:
        """Refuse what waits; the agent gets the reason. Raises as `approve` does.

        Where the call that asked has gone since, the refusal is recorded all the same.
        """
        assert self.gate is not None
        if self.gate.book.is_withdrawn(self.id, approval_id):
            await self.own(stopping=True)
        self.gate.book.deny(current(), self.id, approval_id, digest, reason)
        return VerdictResult(approval_id, "denied")

    # Life

    async def _record_look(self, at: int) -> None:
        await self.own()
        alive(self)
        self.note({"type": "screen_snapshot", "at": at})
        await self.noted()

    async def resize(self, cols: int, rows: int) -> DoneResult:
        """Set the terminal's size, 1 to 1000 each way."""
        limits.check("cols", cols)
        limits.check("rows", rows)
        await self._may("lifecycle", "resize")
        await self.own()
        alive(self)
        author = current().author()
        self.check_control(current(), author)
        reply = await self.host.resize(self.id, cols, rows, author=author, epoch=self.epoch)
        self.requested_size = (cols, rows), reply.offset
        self.live.pump()
        return DoneResult(reply.offset)

    async def end_session(self, session_id: str | None = None) -> DoneResult:
        """End a session (the active one unless named) the gentlest way that works; `how` says which.

        `exit`: the command of a known shell or REPL; `quit`: the keys of a known pager or editor (what was not saved is
        lost); `ctrl_c`; `SIGINT`, `SIGQUIT`, `SIGTERM`, `SIGKILL` to the foreground; `reset`: a new shell, which alone
        loses the shell's directory and variables. A second or two may pass for each step.
        """
        async with self._ending("end_session", right="signal"):
            await running_program(self, session_id)
            if not is_session(self.live.state):
                raise NoSession(
                    f"no interactive session is active in {self.id}", hint="interrupt ends a running command"
                )
            await self.own(stopping=True)
            return await interruption.end_session(self, self.reset)

    async def enter_shell(
        self, shell: str | None = None, *, timeout_ms: int = 10000, timeout: float | None = None
    ) -> DoneResult:
        """Give our hooks to the shell that is at a prompt now inside a running command (ssh, su, a container, bash).

        Its commands are blocks from then on, until it ends; the block that started it is closed here. `shell` (bash,
        zsh or fish) must be named where it runs behind another program. A shell that replaced ours (`exec bash`) gets
        its hooks by itself at the next command. `timeout`: seconds, in place of `timeout_ms`. Raises BadRequest,
        NoPrompt.
        """
        timeout_ms = limits.milliseconds(timeout, timeout_ms)
        limits.check("timeout_ms", timeout_ms)
        alive(self)
        self.check_control(current(), current().author())
        await self._may("input", "enter_shell")
        await self.own()
        return await self._submission.enter_shell(shell, timeout_ms / 1000)

    async def interrupt(self, *, up_to: str = "INT", grace_ms: int = 1000) -> DoneResult:
        """Interrupt the foreground program: SIGINT, and as far as `up_to` allows SIGQUIT, SIGTERM, SIGKILL.

        Names of signals are taken with and without SIG, in any letter case. Waits up to `grace_ms` after each for a
        prompt. `how` is the signal that ended it, or "running".
        """
        limits.check("grace_ms", grace_ms)
        self.live.pump()
        alive(self)
        await self._may("signal", "interrupt", up_to)
        await self.own(stopping=True)
        return await interruption.interrupt(self, up_to, grace_ms)

    async def kill(self, *, signal: str = "TERM") -> DoneResult:
        """End the shell and the foreground program: TERM, then HUP and KILL as long as the shell runs.

        `signal`: HUP, INT, QUIT or KILL send that one alone; `SIGINT` and `int` are names as well. `how` is the signal
        that ended the shell, or "running": a shell at its prompt survives INT and QUIT. Raises BadRequest, Exited.
        """
        name = interruption.signal_name(signal, interruption.KILLS)
        async with self._ending("kill", right="signal", text=name):
            await self.own(stopping=True)
            alive(self)
            self._note_ending("kill")
            return await interruption.kill(self, name)

    async def reset(self) -> OpenResult:
        """Kill the shell and start a new one in the same conversation; the transcript goes on, cursors stay."""
        async with self._ending("reset"):
            await self.own(stopping=True)
            self._note_ending("reset")
            return await self._respawn(self)

    async def close(self, *, leave: bool = False) -> CloseResult:
        """End the shell and everything that came from it; the transcript stays readable.

        With `leave` what has left the shell's session (`setsid`, a daemon) runs on; `outside` of the result lists it
        either way. Without a cgroup, only what the session's processes are still the parents of is found.
        """
        async with self._ending("close"):
            await self.own(stopping=True)
            self._note_ending("close")
            outside = await interruption.end_shell(self, leave=leave)
            return CloseResult(self.cursor, self.live.state.exit, self.live.redactor.value(outside))

    async def _may(self, right: str, operation: str, text: str = "") -> None:
        """Raise what keeps the caller from ending something here: a person in control, a halt, or the policy."""
        if self.gate is not None:
            await self.gate.operation(self, current(), right, operation, text)

    @asynccontextmanager
    async def _ending(self, operation: str, *, right: str = "lifecycle", text: str = "") -> AsyncIterator[None]:
        """Carry out what ends a program or the shell, if the caller may, and have it audited."""
        with nullcontext() if self.gate is None else self.gate.audited(operation, self.id):
            await self._may(right, operation, text)
            yield

    def _note_ending(self, operation: str) -> None:
        if self.live.state.shell is not ShellState.EXITED:
            self.note({"type": "lifecycle", "operation": operation, "principal": current().name})

    async def delete(self, *, dry_run: bool = False) -> DeleteResult:
        """Delete the conversation, whose shell has ended, with its transcript; there is no way back.

        With `dry_run` the result says what would be freed, and nothing is deleted.
        Raises Busy while the shell runs, or when another engine owns it. Nothing can be asked of it afterwards.
        """
        assert self.records is not None
        return await self.records.erase(self.id, dry_run=dry_run)

    async def verify(self, *, key: str | None = None) -> VerifyResult:
        """Compare all files with what follows from stream and timeline, every recorded wait included.

        Nothing is written. `key`: also look for the seals that were made with it. Raises as `Engine.verify` does.
        """
        if self.records is None:
            from blockpty.runtime.record_checks import check_files

            return await check_files(self.id, self.layout, self, key)
        return await self.records.verify(self.id, key=key)

    async def repair(self, *, key: str | None = None) -> RepairResult:
        """Derive everything again, and return what that changed. Raises as `Engine.repair` does."""
        assert self.records is not None
        return await self.records.repair(self.id, key=key)

    async def seal(self, key: str) -> SealResult:
        """Have the record, as far as it goes now, sealed with a key. Raises as `Engine.seal` does."""
        assert self.records is not None
        return await self.records.seal(self.id, key)

    async def derive_again(self) -> None:
        """Have everything derived from the record's beginning; the waits end as cancelled. Raises Busy."""
        await self.own()
        await self.noted()
        self.live.derive_again()
        await self.live.catch_up()
