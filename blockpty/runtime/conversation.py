"""A conversation: one PTY, its record and what can be asked of it.

Rules of this file: a command is typed only at an authenticated prompt; every result carries a cursor; timeouts never
touch the program. What the bytes mean is the machine's business, how they are followed the live record's, who moves
them the host's.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from blockpty.control.questions import ASKED_WITHIN, asks_for_secret
from blockpty.engine.keys import KeyModes, bracket, encode_keys
from blockpty.engine.states import ShellState
from blockpty.engine.views import transform
from blockpty.errors import BadRequest, Busy, InternalError, NoSession
from blockpty.model.conditions import Match
from blockpty.model.results import (
    CloseResult,
    DeleteResult,
    DoneResult,
    ExecResult,
    OpenResult,
    RepairResult,
    RunResult,
    SealResult,
    SendResult,
    SessionResult,
    StatusResult,
    VerifyResult,
    WaitResult,
)
from blockpty.runtime import ending, limits
from blockpty.runtime.answers import Answers
from blockpty.runtime.checking import check_files
from blockpty.runtime.listing import lost_because
from blockpty.runtime.live import LiveRecord
from blockpty.runtime.modes import is_session, mode_of, nested_of, private_modes, status_of, tty_of
from blockpty.runtime.notes import Notes
from blockpty.runtime.running import own_block, run_result, until_done
from blockpty.runtime.sessions import alive, clear_line, known_session, may_type, running_program, sample
from blockpty.runtime.submission import Submission, Submitted, encoded
from blockpty.runtime.transcript import Transcript
from blockpty.runtime.waiting import Waiting
from blockpty.screen.protocol import Modes
from blockpty.spool.layout import Layout
from blockpty.spool.ownership import Ownership

if TYPE_CHECKING:
    from blockpty.host.client import HostClient
    from blockpty.runtime.engine import Engine

SEND_DEADLINE_MS: Final = 5000
# Ctrl-C, Ctrl-backslash and Ctrl-Z: the host types them on a full disk too, where they stop a program.
STOPPING: Final = b"\x03\x1c\x1a"


class Conversation(Transcript):
    """One conversation; get it from `Engine.open` or `Engine.conversation`.

    All methods may be cancelled: what was asked of the terminal may then have happened or not, nothing recorded is
    lost.

    Attributes:
        id: its name.
        directory: where its files are.
        opened: the result of `open`, None for one that existed.
        answering: whether programs that ask their terminal something get an answer.
    """

    def __init__(
        self,
        conversation_id: str,
        layout: Layout,
        host: HostClient,
        ownership: Ownership | None,
        respawn: Callable[[Conversation], Awaitable[OpenResult]],
        durability: str = "process",
        redact: bool = True,
        allow_uncovered: bool = False,
        keep_bytes: int | None = None,
    ) -> None:
        live = LiveRecord(
            conversation_id, layout, owner=ownership is not None, durability=durability, redact=redact, keep=keep_bytes
        )
        super().__init__(conversation_id, layout, live, allow_uncovered)
        self.opened: OpenResult | None = None
        self.answering = True
        self.host = host
        self._ownership = ownership
        self._respawn = respawn
        # The engine that it belongs to, where there is one.
        self.records: Engine | None = None
        self.erase: Callable[[str], Awaitable[DeleteResult]] | None = None  # how the engine deletes it
        self._waiting = Waiting(self.live, self.note, self._watch_idle, lambda: sample(self), f"w{self.epoch}.")
        self._notes = Notes(host, conversation_id)
        self._requests = itertools.count(1)
        self._submission = Submission(self)
        self._cursor = 0
        # How it is taken up again, while it rests.
        self._rouse: Callable[[Conversation], Awaitable[Conversation]] | None = None

    @property
    def conversation_id(self) -> str:
        """Its name, as results call it."""
        return self.id

    @property
    def shell_id(self) -> str:
        """The shell that runs, or ran last, in it; every `reset` starts another."""
        return f"{self.id}.{self.live.state.instance}"

    @property
    def pid(self) -> int | None:
        """Process id of the shell; None when it has ended."""
        state = self.live.state
        return int(state.pid) if state.pid.isdigit() and state.shell is not ShellState.EXITED else None

    @property
    def mode(self) -> str:
        """The mode that `status` gives."""
        return mode_of(self.live.state)

    @property
    def epoch(self) -> int:
        """This engine's epoch for the conversation; 0 while another engine owns it."""
        return self._ownership.epoch if self._ownership is not None else 0

    async def attach(self, host: HostClient) -> None:
        """Read what is there and hear of what comes; called by the engine, again when the host had to be replaced."""
        again = host is not self.host
        if again:
            self.host = host
            self._notes.adopt(host)
        await self.live.catch_up()
        self.live.answers = Answers(self)
        subscribed = await host.subscribe(self.id, self.epoch, self.live.rung)
        if self._ownership is not None:
            if not again:
                self.note({"type": "owner", "epoch": self.epoch, "pictures": True})
            if not subscribed.live and self.live.state.instance and self.live.state.shell is not ShellState.EXITED:
                # Every process that held the terminal is gone, and the shell with them; nobody saw how it ended.
                self.note({"type": "lost", "reason": lost_because(self.live.state)})
                await self.noted()
        self._cursor = self.live.state.wait_cursor

    async def detach(self) -> None:
        """Let go of the conversation; the shell runs on."""
        try:
            await self._notes.written()
            await self.host.unsubscribe(self.id)
            await self.live.save_ahead()
        except InternalError:
            # There is no host to tell.
            self.live.pump()
        self._notes.close()
        self.live.close()
        if self._ownership is not None:
            self._ownership.release()

    @property
    def over(self) -> bool:
        """Whether the shell has ended, everything is read, and nobody waits for anything."""
        state = self.live.state
        lost = state.exit is not None and "lost" in state.exit
        return state.shell is ShellState.EXITED and (state.eof or lost) and not self.live.waits

    async def rest(self, rouse: Callable[[Conversation], Awaitable[Conversation]]) -> None:
        """Close the files; what is asked of the record is still answered, and who types asks to be roused."""
        await self.detach()
        self._ownership, self._rouse = None, rouse

    async def rouse(self, host: HostClient) -> None:
        """Take the conversation up again after `rest`; raises as `attach` does."""
        self._ownership = Ownership.take(self.layout.lock)
        self._rouse = None
        self.live.reopen(owner=self._ownership is not None)
        self._notes.adopt(host)
        self.host = host
        await self.attach(host)

    def next_request(self) -> str:
        """Return a name for one input, unique in the conversation."""
        return f"{self.epoch}.{next(self._requests)}"

    def note(self, note: Mapping[str, Any]) -> None:
        """Have something recorded in the timeline, if this engine owns the conversation."""
        if self._ownership is not None and not self.live.replaced():
            self._notes.add(note, self.epoch)

    async def noted(self) -> None:
        """Return when every note is in the timeline and has been read."""
        await self._notes.written()
        await self.live.drain()

    def _watch_idle(self, ms: int) -> None:
        task = asyncio.get_running_loop().create_task(self.host.watch_idle(self.id, ms))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    # What is going on

    async def status(self) -> StatusResult:
        """Return mode, terminal state and integrity, sampled now."""
        self.live.pump()
        state = self.live.state
        foreground, tty, nested = None, state.tty, None
        if state.shell is not ShellState.EXITED:
            seen = await self.host.inspect(self.id)
            self.live.pump()
            foreground = seen.foreground_name
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
        seq, ts, cursor, _ = await self._submit("command", command, cwd, queue)
        return ExecResult(f"b{seq}", seq, ts, cursor)

    async def exec_interactive(self, command: str, *, cwd: str | None = None) -> SessionResult:
        """Start an interactive program as one block; then use `send` and `wait_for`. Raises as `exec_block` does."""
        seq, ts, cursor, _ = await self._submit("session", command, cwd, False)
        return SessionResult(f"s{seq}", f"b{seq}", ts, cursor)

    async def run(
        self, command: str, *, cwd: str | None = None, timeout_ms: int = 30000, max_bytes: int = 65536
    ) -> RunResult:
        """Run a command as one block and wait for its end; when the time is up it runs on.

        `max_bytes` bounds the returned text, head and tail are kept. Raises as `exec_block` does.
        """
        limits.check("timeout_ms", timeout_ms)
        limits.check("max_bytes", max_bytes)
        typed = await self._submit("command", command, cwd, False)
        result = await until_done(self.live, self._waiting, typed, timeout_ms)
        self._cursor = result.cursor
        block = self.live.cover.block(own_block(self.id, self.live, typed, self._block))
        return await run_result(self.live, block, result, max_bytes, self._over_bytes)

    async def _submit(self, kind: str, command: str, cwd: str | None, queue: bool) -> Submitted:
        typed = await self._submission.submit(kind, command, cwd, queue=queue)
        self._cursor = typed.cursor
        return typed

    async def own(self, *, stopping: bool = False) -> None:
        """Make sure that this engine may write; another one may have gone since.

        `stopping`: for what ends a program or the shell, which must not need room on the disk.
        """
        if self._rouse is not None:
            await self._rouse(self)
        self.live.check_place()
        if self.live.problem is not None and not stopping:
            raise self.live.problem
        if self._ownership is None:
            self._ownership = Ownership.take(self.layout.lock)
            if self._ownership is None:
                raise Busy(
                    f"another engine owns {self.id}", hint="use that engine, or close it; reading and waiting work here"
                )
            self.live.become_owner()
            await self.live.drain()
            self.live.answers = Answers(self)
            await self.host.subscribe(self.id, self.epoch, self.live.rung)
            self.note({"type": "owner", "epoch": self.epoch, "pictures": True})

    # Input

    async def send(
        self,
        data: str | bytes | None = None,
        *,
        data_b64: str | None = None,
        session_id: str | None = None,
        author: str = "agent",
        secret: bool = False,
    ) -> SendResult:
        """Type bytes into the running program, as they are; as `user` also at the prompt.

        `secret`: neither the bytes nor their number are recorded; what the terminal or the program prints of them is.
        Without it that holds only where a program asks for a secret with echo off. Raises NoSession when nothing runs
        that could take them, LineTooLong when the terminal would cut a line.
        `accepted_bytes` is less than given when the program did not take them within five seconds.
        """
        if (data is None) == (data_b64 is None):
            raise BadRequest("give either data or data_b64")
        if data is None:
            try:
                data = base64.b64decode(data_b64 or "", validate=True)
            except ValueError:  # binascii.Error is one; characters beyond ASCII are another
                raise BadRequest("data_b64 is no base64") from None
        await may_type(self, session_id, author)
        return await self.type(encoded(data) if isinstance(data, str) else data, author, secret)

    async def send_keys(self, keys: str, *, session_id: str | None = None, secret: bool = False) -> SendResult:
        """Type keys in the notation of the reference (`[UP]`, `^C`, `[M-x]`), or use the mouse (`[CLICK 9,4]`).

        `secret`: as for `send`.
        They are sent as the program has asked the terminal to send them. Raises BadRequest for what it cannot get.
        """
        await running_program(self, session_id)
        modes = await self._modes()
        asked = KeyModes(
            modes.application_cursor, modes.application_keypad, modes.mouse, modes.mouse_encoding, modes.keyboard
        )
        return await self.type(encode_keys(keys, asked), "agent", secret)

    async def paste(self, text: str, *, session_id: str | None = None, secret: bool = False) -> SendResult:
        """Type a text as a paste: bracketed when the program asked for it, never able to end the bracket itself.

        `secret`: as for `send`.
        """
        await running_program(self, session_id)
        return await self.type(bracket(text, bracketed=(await self._modes()).bracketed_paste), "agent", secret)

    async def ctrl_c(self, *, session_id: str | None = None) -> SendResult:
        """Type Ctrl-C; at a prompt it clears the line, and is typed again if the line editor has missed it."""
        self.live.pump()
        if session_id is None and self.live.state.shell in (ShellState.IDLE, ShellState.EDITING):
            return await clear_line(self, b"\x03", "agent")
        return await self._control(b"\x03", session_id)

    async def ctrl_d(self, *, session_id: str | None = None) -> SendResult:
        """Type Ctrl-D; at a prompt it ends the shell."""
        return await self._control(b"\x04", session_id)

    async def enter(self, *, session_id: str | None = None) -> SendResult:
        """Type Enter (CR)."""
        return await self._control(b"\r", session_id)

    async def _modes(self) -> Modes:
        return (await self.look()).frame.modes

    async def _control(self, data: bytes, session_id: str | None) -> SendResult:
        self.live.pump()
        if session_id is not None or self.live.state.shell is ShellState.SUBMITTED:
            await running_program(self, session_id)
        alive(self)
        return await self.type(data, "agent")

    async def type(self, data: bytes, author: str, secret: bool = False) -> SendResult:
        """Type bytes whatever the shell does; the verbs above check first."""
        await self.own(stopping=bool(data) and not data.strip(STOPPING))
        self.live.pump()
        program = self.live.state.shell is ShellState.RUNNING
        asked = program and not secret and asks_for_secret(self._last_output())
        reply = await self.host.input(
            self.id, data, author=author, req=self.next_request(), deadline_ms=SEND_DEADLINE_MS,
            epoch=self.epoch, program=program, secret="always" if secret else "raw" if asked else None,
        )  # fmt: skip
        self.live.pump()
        return SendResult(reply.offset, reply.accepted)

    def _last_output(self) -> bytes:
        end = self.cursor
        begin = max(self.live.stream.begin, end - ASKED_WITHIN)
        return transform("text", self.live.stream.read(begin, end - begin)) if begin < end else b""

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
    ) -> WaitResult:
        """Wait until something appears in the output, or one of several things.

        The answer is a function of the record, `from_cursor` and `match`; only the deadline is not. Without
        `from_cursor`:
        from where the last wait ended, else from where the running block was submitted. `timeout_ms` 0 looks once. A
        timeout is a result. Raises BadCondition, BadCursor, NoSession.
        """
        limits.check("timeout_ms", timeout_ms)
        if max_bytes is not None:
            limits.check("max_bytes", max_bytes)
        if session_id is not None:
            known_session(self, session_id)
        cursor = self._cursor if from_cursor is None else from_cursor
        request = self._waiting.request(match, cursor=cursor, stop=stop, max_bytes=max_bytes, view=view, echo=echo)
        result = await self._waiting.wait(request, timeout_ms)
        self._cursor = result.cursor
        return result

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
        await self.own()
        alive(self)
        reply = await self.host.resize(self.id, cols, rows, author="agent", epoch=self.epoch)
        self.live.pump()
        return DoneResult(reply.offset)

    async def end_session(self, session_id: str | None = None) -> DoneResult:
        """End a session (the active one unless named) the gentlest way that works; `how` says which.

        `exit`: the command of a known shell or REPL; `quit`: the keys of a known pager or editor (what was not saved is
        lost); `ctrl_c`; `SIGINT`, `SIGQUIT`, `SIGTERM`, `SIGKILL` to the foreground; `reset`: a new shell, which alone
        loses the shell's directory and variables. A second or two may pass for each step.
        """
        await running_program(self, session_id)
        if not is_session(self.live.state):
            raise NoSession(f"no interactive session is active in {self.id}", hint="interrupt ends a running command")
        await self.own(stopping=True)
        return await ending.end_session(self)

    async def enter_shell(self, shell: str | None = None, *, timeout_ms: int = 10000) -> DoneResult:
        """Give our hooks to the shell that is at a prompt now inside a running command (ssh, su, a container, bash).

        Its commands are blocks from then on, until it ends; the block that started it is closed here. `shell` (bash,
        zsh or fish) must be named where it runs behind another program. A shell that replaced ours (`exec bash`) gets
        its hooks by itself at the next command. Raises BadRequest, NoPrompt.
        """
        limits.check("timeout_ms", timeout_ms)
        alive(self)
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
        await self.own(stopping=True)
        return await ending.interrupt(self, up_to, grace_ms)

    async def kill(self, *, signal: str = "TERM") -> DoneResult:
        """End the shell and the foreground program: TERM, then HUP and KILL as long as the shell runs.

        `signal`: HUP, INT, QUIT or KILL send that one alone; `SIGINT` and `int` are names as well. `how` is the signal
        that ended the shell, or "running": a shell at its prompt survives INT and QUIT. Raises BadRequest, Exited.
        """
        name = ending.signal_name(signal, ending.KILLS)
        await self.own(stopping=True)
        alive(self)
        return await ending.kill(self, name)

    async def reset(self) -> OpenResult:
        """Kill the shell and start a new one in the same conversation; the transcript goes on, cursors stay."""
        await self.own(stopping=True)
        return await self._respawn(self)

    async def close(self, *, leave: bool = False) -> CloseResult:
        """End the shell and everything that came from it; the transcript stays readable.

        With `leave` what has left the shell's session (`setsid`, a daemon) runs on; `outside` of the result lists it
        either way. Without a cgroup, only what the session's processes are still the parents of is found.
        """
        await self.own(stopping=True)
        outside = await ending.end_shell(self, leave=leave)
        return CloseResult(self.cursor, self.live.state.exit, self.live.cover.value(outside))

    async def delete(self) -> DeleteResult:
        """Delete the conversation, whose shell has ended, with its transcript; there is no way back.

        Raises Busy while the shell runs, or when another engine owns it. Nothing can be asked of it afterwards.
        """
        assert self.erase is not None  # the engine sets it
        return await self.erase(self.id)

    async def verify(self, *, key: str | None = None) -> VerifyResult:
        """Compare all files with what follows from stream and timeline, every recorded wait included.

        Nothing is written. `key`: also look for the seals that were made with it. Raises as `Engine.verify` does.
        """
        if self.records is None:
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
