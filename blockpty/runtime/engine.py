"""The engine: opens, finds, lists and closes the conversations of one home."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import secrets
import shlex
import time
from collections import deque
from collections.abc import Coroutine, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import asdict

from blockpty.api import limits
from blockpty.api.opening import opening
from blockpty.control.principals import ENGINE, acting, current
from blockpty.engine.states import ShellState
from blockpty.errors import (
    BadRequest,
    BlockptyError,
    Busy,
    NotFound,
    SessionLimit,
    SpawnFailed,
    SpoolCorrupt,
    StorageFull,
)
from blockpty.files.opening import UnsafeFile
from blockpty.host import descriptors
from blockpty.host.client import HostClient
from blockpty.host.protocol import DURABILITIES, NICEST, PROCESS_LIMIT, SHELL_NICE
from blockpty.host.shells import kept_of
from blockpty.host.sources import TerminalSource, parse_source
from blockpty.model.results import (
    ApprovalsResult,
    AuditResult,
    DeleteResult,
    HaltResult,
    ImportResult,
    ListResult,
    OpenResult,
    PruneResult,
    RepairResult,
    SealResult,
    VerifyResult,
)
from blockpty.runtime import listing, retention, truncation
from blockpty.runtime.background_tasks import BackgroundTasks
from blockpty.runtime.conversation import Conversation, RecordSettings
from blockpty.runtime.gate import Gate
from blockpty.runtime.idle import close_idle
from blockpty.runtime.importing import import_recording, refuse_imported
from blockpty.runtime.interruption import end_shell
from blockpty.runtime.redactor import Redactor
from blockpty.runtime.shell_start import first_prompt, go_on, no_descriptors, raise_descriptor_limit, start_shell
from blockpty.runtime.worker_threads import Pace, aside
from blockpty.spool import archived, checkpoint
from blockpty.spool.audit_log import AuditCheck, AuditFilter, AuditLog
from blockpty.spool.checkpoint import FORMAT_VERSION, OPEN_FORMAT, SOURCE_VERSION
from blockpty.spool.layout import Layout, check_conversation_id, conversations_directory, default_home, make_private
from blockpty.spool.masking import Mask
from blockpty.spool.ownership import Ownership
from blockpty.spool.storage import full_is_an_error, unsafe

if TYPE_CHECKING:
    from blockpty.runtime.home_feed import HomeFeed

_T = TypeVar("_T")

# Conversations that `close` ends at a time: each may need the second of grace that a shell has after its hang-up.
CLOSED_TOGETHER: Final = 64
# Conversations that have ended and are kept at hand.
ENDED_KEPT: Final = 32
# And for how long, when nothing asks for them: no longer than twice that.
UNUSED_SECONDS: Final = 10.0
# When a start looks for what was lost: those who ask for a conversation by name come first.
STOCK_SECONDS: Final = 0.1


class ConversationEngine:
    """Conversations of one home; an async context manager.

    Leaving it closes the conversations it opened without `persist`; the others, and all shells if the process dies,
    keep running in the PTY host, and the next engine resumes them.

    Args:
        home: directory of transcripts and sockets; default as in the documentation of the configuration.
        session_limit: how many shells may be open in this home at once, 1 or more.
        persist: whether `open` keeps shells for later engines by default.
        durability: what a loss of power may cost: `process`, `interval`, `block` or `always`.
        redact, allow_uncovered: redact secrets in all that is returned (files hold them); `export` may be asked not to.
        process_limit: how many processes a conversation may have at once; 0: no bound.
        shell_nice: highest nice value of busy shells' sessions, 0 to 19; it rises with their number. 0: always 0.
        idle_timeout_seconds: close a conversation when nothing was printed, typed or waited for in it for this long,
            more than 0, and no command runs; an interactive session does not count as a command. None: never.
        keep_days: delete conversations whose shell has ended and that were not used for so many days. None: never.
        keep_total_mb: delete the oldest conversations whose shell has ended while all take more MiB. None: never.
        keep_conversation_mb: drop the oldest part of a record while its files take more MiB, 8 or more. None: never.

    Raises BadRequest for a value out of its range.
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        session_limit: int = 15,
        persist: bool = False,
        durability: str = "interval",
        redact: bool = True,
        allow_uncovered: bool = False,
        process_limit: int = PROCESS_LIMIT,
        shell_nice: int = SHELL_NICE,
        idle_timeout_seconds: float | None = None,
        keep_days: int | None = None,
        keep_total_mb: int | None = None,
        keep_conversation_mb: int | None = None,
    ) -> None:
        retention.check_budget(keep_days, keep_total_mb, keep_conversation_mb)
        if process_limit < 0:
            raise BadRequest(f"process_limit cannot be {process_limit}", hint="0: no bound")
        if not 0 <= shell_nice <= NICEST:
            raise BadRequest(f"shell_nice cannot be {shell_nice}", hint=f"0 to {NICEST}; 0: as any other session")
        if idle_timeout_seconds is not None and not idle_timeout_seconds > 0:
            raise BadRequest(f"idle_timeout_seconds cannot be {idle_timeout_seconds}", hint="more than 0, or None")
        if durability not in DURABILITIES:
            raise BadRequest(f"durability cannot be {durability!r}", hint=f"one of {', '.join(DURABILITIES)}")
        self.home = Path(home).absolute() if home is not None else default_home()
        self._session_limit = session_limit
        self._persist = persist
        keep_bytes = keep_conversation_mb * truncation.MIB if keep_conversation_mb is not None else None
        self._record = RecordSettings(durability, redact, allow_uncovered, keep_bytes)
        self._process_limit, self._shell_nice = process_limit, shell_nice
        self._idle_timeout = idle_timeout_seconds
        self._keep_days, self._keep_total_mb = keep_days, keep_total_mb
        self._tasks = BackgroundTasks()
        self._conversations: dict[str, Conversation] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._transient: set[str] = set()
        self._host: HostClient | None = None
        self._opening = asyncio.Lock()
        self._closings = 0
        # The opens that wait for a first prompt, by the names of their conversations.
        self._awaited: dict[str, asyncio.Event] = {}
        self._connecting = asyncio.Lock()
        self._searches = BackgroundTasks()
        self._finding: asyncio.Task[None] | None = None
        self._stock: asyncio.Task[None] | None = None
        self._suspending: asyncio.Task[None] | None = None
        # When each conversation was asked for last, by the loop's clock.
        self._used: dict[str, float] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # Ended ones that a caller still holds.
        self._suspended: WeakValueDictionary[str, Conversation] = WeakValueDictionary()

    async def __aenter__(self) -> Self:
        make_private(self.home)
        make_private(conversations_directory(self.home))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close what was opened without `persist`, and detach from the rest; an `open` that is under way is refused."""
        with acting(ENGINE):
            await self._close()

    async def _close(self) -> None:
        self._closings += 1
        if "home_feed" in vars(self):
            await self.home_feed.close()
            del self.home_feed
        await self._tasks.close()
        # A search for a lost host enters in the records that their shells are lost: it goes on to its end.
        while self._finding is not None and not self._finding.done():
            await asyncio.wait((self._finding,))
        # The search has started others.
        await self._tasks.close()
        async with self._opening:
            # What was being started is started now.
            awaited = [
                (self._conversations.get(name), over)
                for name, over in self._awaited.items()
                if name in self._transient or name not in self._conversations
            ]
        together = asyncio.Semaphore(CLOSED_TOGETHER)

        async def fail(conversation: Conversation | None, over: asyncio.Event) -> None:
            """Have an open fail that waits for a prompt, and return when it has removed what it had made."""
            async with together:
                with contextlib.suppress(BlockptyError):
                    if conversation is not None:
                        await conversation.close()
            await over.wait()

        async with asyncio.TaskGroup() as group:
            for conversation, over in awaited:
                group.create_task(fail(conversation, over))

        async def detach(conversation: Conversation) -> None:
            async with together:
                if conversation.id in self._transient:
                    try:
                        await conversation.close()
                    except BlockptyError:
                        # Another engine has ended it, or taken it over: then it is not ours to close.
                        conversation.live.pump()
                await conversation.detach()

        async with asyncio.TaskGroup() as group:
            for conversation in self._conversations.values():
                group.create_task(detach(conversation))
        self._conversations.clear()
        self._transient.clear()
        if self._host is not None:
            self._host.leave()
            self._host = None
        if "audit_log" in vars(self):
            self.audit_log.close()

    @opening
    async def open(
        self,
        conversation_id: str | None = None,
        *,
        shell: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_from: Mapping[str, str] | str | None = None,
        pagers: bool | None = None,
        cols: int = 80,
        rows: int = 24,
        login: bool = False,
        persist: bool | None = None,
        answers: bool = True,
        timeout_ms: int = 30000,
        sandbox: str | None = None,
        source: str | None = None,
        resume: str | None = None,
        timeout: float | None = None,
    ) -> Conversation:
        """Start a shell in a new conversation, or a new shell in one whose shell has ended, and wait for its prompt.

        Await it, or enter it with `async with`, which closes the conversation at the end.

        Args:
            conversation_id: its name; one is made up when it is None.
            shell: name or path; default `$SHELL` when it is bash, zsh or fish, else bash.
            cwd: working directory; default the caller's.
            env: added to the clean environment of the shell.
            env_from: the environment of which PATH, LANG and the like are kept; default, and `server`, this process's.
            pagers: let programs page their output; default for a person only. Without, PAGER and the like are cat.
            cols, rows: size of the terminal, 1 to 1000.
            login: read the login files instead of the interactive ones.
            persist: keep the shell when this engine goes; default as this engine was made.
            answers: answer programs that ask their terminal what it is, where the cursor stands, and the like.
            timeout_ms: how long the first prompt may take; timeout: the same in seconds, in its place.
            sandbox: name of a profile: the shell runs behind that boundary, or does not start.
            source: what the terminal shows in place of a shell of this machine: `exec:program argument ...` (a program
                without a shell: one session block from its start to its end), `ssh:[user@]host[:port]` or
                `container:runtime/name` (the shell there, with hooks), `tmux:target` (a pane as it is, with its size).
                A password or a host key is asked for with NoPrompt; a person answers, and the hooks go in afterwards.
            resume: for ssh, whether the shell over there survives its connection, which is made again by itself:
                `always` (blockpty, or else tmux, must be installed there), `auto` (where one is), `never`, the default.

        Raises BadRequest, Busy (it is open already), SessionLimit, SpawnFailed, PtyLimit, NoPrompt.
        """
        name = check_conversation_id(conversation_id) if conversation_id is not None else f"c-{secrets.token_hex(4)}"
        timeout_ms = limits.milliseconds(timeout, timeout_ms)
        for label, value in (("cols", cols), ("rows", rows), ("timeout_ms", timeout_ms)):
            limits.check(label, value)
        persist = self._persist if persist is None else persist
        settings: dict[str, Any] = {
            "shell": shell, "cwd": os.fspath(cwd or os.getcwd()), "env": dict(env or {}), "cols": cols, "rows": rows,
            "login": login, "persist": persist, "answers": answers,
        }  # fmt: skip
        if sandbox is not None:
            settings["sandbox"] = sandbox
        if not (current().author() == "user" if pagers is None else pagers):
            settings["pagers"] = False
        inherited = _checked_environment(env_from)
        settings["env_from"] = inherited
        origin = _checked_source(source, shell, login, cwd)
        if origin is not None:
            settings["source"] = origin.text
        if resume not in (None, "never"):
            if origin is None or origin.kind != "ssh" or resume not in ("auto", "always"):
                raise BadRequest("resume is never, auto or always, and is for a source ssh:", hint="leave it out")
            settings["resume"] = resume
        more = {} if sandbox is None else {"sandbox": sandbox}
        changed = {**_changed_variables(inherited), **settings["env"]}
        text = _asked_to_open(origin.command if origin is not None else shell and shlex.quote(shell), changed)
        with self.gate.allowed("open", name, right="open", text=text, cwd=settings["cwd"], **more):
            if conversation_id is not None:
                await self._admit(name)
            return await self._open(name, settings, timeout_ms)

    async def _open(self, name: str, settings: dict[str, Any], timeout_ms: int) -> Conversation:
        persist = settings["persist"]
        closings = self._closings
        async with self._opening:
            self._refuse_closed(closings)
            host = await self.connected()
            live, count = await host.find(name)
            known = self._conversations.get(name)
            if live and known is not None and known.live.state.shell is ShellState.EXITED:
                # Its shell has ended, and another process still has the terminal open.
                await host.close(name)
                live, count = await host.find(name)
            if live:
                raise Busy(f"{name} is open already", hint="use the conversation that is there, or close it first")
            if not descriptors.has_room():
                await self._suspend_ended(0)
            if not descriptors.has_room():
                raise no_descriptors()
            if count >= self._session_limit:
                raise SessionLimit(
                    f"{count} conversations are open in {self.home}, which is the limit",
                    hint="list names them and close ends one; the limit is --session-limit of serve, "
                    "BLOCKPTY_SESSION_LIMIT, or session_limit of an engine",
                    details={"session_limit": self._session_limit},
                )
            # What lies there, damaged or not, is not this call's to remove.
            fresh = not os.path.lexists(conversations_directory(self.home) / name)
            before = self._settings.get(name)
            attached = name in self._conversations or name in self._suspended
            try:
                layout = await asyncio.to_thread(self._create, name, settings)
                self._settings[name] = settings
                suspended = self._suspended.get(name)
                conversation = await (self._resume(suspended) if suspended is not None else self._attach(name, layout))
                conversation.answering = settings["answers"]
                (self._transient.discard if persist else self._transient.add)(name)
                # The host starts the shell even when the caller has been cancelled; it is ended then.
                begin = await to_the_end(self._start(conversation, settings))
            except BaseException as problem:
                # Only where this was cancelled a shell may run that is ours.
                started = isinstance(problem, asyncio.CancelledError)
                await to_the_end(self._undo(name, before, fresh=fresh, started=started))
                if not attached and (left := self._conversations.pop(name, None)) is not None:
                    self._transient.discard(name)
                    await to_the_end(left.detach())
                raise
            await self._suspend_ended()
        self._awaited[name] = over = asyncio.Event()
        try:
            await first_prompt(conversation, begin, timeout_ms)
        except SpawnFailed:
            await self._undo(name, before, fresh=fresh, started=True)
            self._refuse_closed(closings)
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                # Its wait was cancelled, because the engine was closed.
                self._refuse_closed(closings)
            raise
        finally:
            del self._awaited[name]
            over.set()
        return conversation

    def _refuse_closed(self, closings: int) -> None:
        """Raise BadRequest when the engine has been closed since `_closings` was this."""
        if self._closings != closings:
            raise BadRequest("the engine was closed while a shell was opening", hint="open it in an engine that runs")

    async def _undo(self, name: str, before: Mapping[str, Any] | None, *, fresh: bool, started: bool) -> None:
        """Leave nothing of a shell that could not be opened; with `fresh`, nothing of its conversation either."""
        if before is None:
            self._settings.pop(name, None)
        else:
            self._settings[name] = dict(before)
        with contextlib.suppress(BlockptyError, OSError):
            if started and name in self._conversations:
                await end_shell(self._conversations[name])
            if fresh:
                await retention.delete(self, name)

    async def conversation(self, conversation_id: str) -> Conversation:
        """Return a conversation that exists, with its shell running or not; raises NotFound."""
        name = check_conversation_id(conversation_id)
        if name in self._conversations:
            await self.refuse_replaced(self._conversations[name])
            self._used[name] = asyncio.get_running_loop().time()
            return self._conversations[name]
        if (suspended := self._suspended.get(name)) is not None:
            return await self._resume(suspended)
        layout = Layout(conversations_directory(self.home) / name)
        try:
            meta = checkpoint.load_meta(layout.meta)
        except FileNotFoundError:
            await self._sought_elsewhere(name)
            raise NotFound(f"no conversation is called {name}", hint="list names those that exist") from None
        await self.connected()
        self._settings.setdefault(name, checkpoint.open_settings(name, meta))
        conversation = await self._attach(name, layout)
        await self._suspend_ended()
        return conversation

    async def refuse_replaced(self, conversation: Conversation) -> None:
        """Raise SpoolCorrupt when another record lies where this one was, and forget it unless its shell runs."""
        try:
            conversation.live.check_identity()
        except SpoolCorrupt as problem:
            if conversation.id in await self.live():
                raise SpoolCorrupt(
                    problem.message,
                    hint=f"its shell, process {conversation.pid}, still runs: put the record back, or end that process",
                    details=problem.details,
                ) from None
            if self._conversations.get(conversation.id) is conversation:
                del self._conversations[conversation.id]
                await conversation.detach()
            raise

    async def _admit(self, conversation_id: str) -> None:
        """Refuse a name for a conversation; an engine that knows of other hosts does."""

    async def _sought_elsewhere(self, conversation_id: str) -> None:
        """Say where a conversation is that is not here; an engine that knows of other hosts does."""

    async def list(self, filter: str | None = None) -> ListResult:
        """Return the conversations of this home, live ones first and then the newest; `filter` is part of the name."""
        host = await self.connected()
        live = {item.conversation: item.pid for item in await host.list()}
        found = []
        async for name in listing.names(self.home):
            if filter is None or filter in name:
                known = self._conversations.get(name)
                if known is not None:
                    known.live.pump()
                info = await self.looks.information(
                    Layout(conversations_directory(self.home) / name), live.get(name), self.listed_redactor, known
                )
                if info is not None:
                    found.append(info)
        return ListResult(sorted(found, key=lambda info: (info.live, info.created_ts), reverse=True))

    async def prune(
        self, *, keep_days: int | None = None, keep_total_mb: int | None = None, dry_run: bool = False
    ) -> PruneResult:
        """Delete conversations that were not used for `keep_days`, then the oldest until all take `keep_total_mb`.

        With `dry_run` the result says which would be deleted, and none is.
        Those whose shell runs, and those that another engine owns, stay. Raises BadRequest.
        """
        with self.gate.allowed("prune"):
            return await retention.prune(self, keep_days, keep_total_mb, dry_run=dry_run)

    async def erase(self, conversation_id: str, *, dry_run: bool = False) -> DeleteResult:
        """Delete a conversation whose shell has ended; see `Conversation.delete`."""
        with self.gate.allowed("delete", conversation_id):
            return await retention.delete(self, conversation_id, dry_run=dry_run)

    async def detach(self, conversation_id: str) -> int:
        """Detach from a conversation if it is attached; return where its stream ends, 0 if it is not."""
        conversation = self._conversations.pop(conversation_id, None)
        self._suspended.pop(conversation_id, None)
        self._transient.discard(conversation_id)
        if "gate" in vars(self):
            self.gate.forget(conversation_id)
        self._touched(conversation_id)
        if conversation is None:
            return 0
        await conversation.detach()
        return conversation.cursor

    async def import_recording(
        self,
        path: str | os.PathLike[str],
        conversation_id: str | None = None,
        *,
        timing: str | os.PathLike[str] | None = None,
    ) -> ImportResult:
        """Make a conversation of an asciicast (1, 2, 3) or a pair of script(1), which can be read and not written.

        `timing`: of a typescript the file with its times, by default `path` with `.timing` behind. Memory does not
        grow with the file. Cancelling leaves nothing. Raises BadRequest (with the line) for what is no recording,
        NotFound, Busy when there is a conversation of that name, StorageFull.
        """
        with self.gate.allowed("import_recording", conversation_id, right="files", text=os.fspath(path)):
            return await import_recording(self.home, path, conversation_id, timing)

    async def live(self) -> frozenset[str]:
        """Return the names of the conversations whose shell runs."""
        return frozenset(item.conversation for item in await (await self.connected()).list())

    def attached(self, conversation_id: str) -> Conversation | None:
        """Return a conversation that is attached, None for any other."""
        return self._conversations.get(conversation_id)

    async def verify(self, conversation_id: str, *, key: str | None = None) -> VerifyResult:
        """Compare the files of a conversation with what follows from its stream and timeline; nothing is written.

        `key`: also look for the seals that were made with it. Raises NotFound, SpoolCorrupt (what would be compared
        cannot be read), SpoolVersion, BadRequest.
        """
        from blockpty.runtime import record_checks

        return await record_checks.check(self, conversation_id, key, redact=self._record.redact)

    async def repair(self, conversation_id: str, *, key: str | None = None) -> RepairResult:
        """Derive everything of a conversation again, and return what that changed; stream and timeline stay.

        Only a line of the timeline without an end is taken back. Raises Busy while its shell runs, else as `verify`.
        """
        from blockpty.runtime import record_checks

        with self.gate.allowed("repair", conversation_id):
            return await record_checks.repair(self, conversation_id, key)

    async def seal(self, conversation_id: str, key: str) -> SealResult:
        """Have a conversation's record, as far as it goes now, sealed with a key, which is written nowhere.

        Raises SpoolCorrupt when `verify` finds differences, BadRequest for a key below 16 bytes, Busy when another
        engine owns it, NotFound.
        """
        from blockpty.runtime import record_checks

        with self.gate.allowed("seal", conversation_id):
            return await record_checks.seal(self, conversation_id, key)

    @cached_property
    def home_feed(self) -> HomeFeed:
        """What follows all conversations of this home; nothing is read before it is used."""
        from blockpty.runtime.home_feed import HomeFeed

        return HomeFeed(self)

    def _touched(self, conversation_id: str) -> None:
        if "home_feed" in vars(self):
            self.home_feed.touch(conversation_id)

    @cached_property
    def looks(self) -> listing.RecordLooks:
        """What was found in records that are not attached."""
        return listing.RecordLooks()

    @cached_property
    def listed_redactor(self) -> Redactor:
        """Redactor for the lines of conversations that are not attached; their files hold no nonce."""
        return Redactor(Mask(), self._record.redact)

    @cached_property
    def audit_log(self) -> AuditLog:
        """The audit log of this home; nothing is opened before it is used."""
        return AuditLog(self.home)

    @cached_property
    def gate(self) -> Gate:
        """What agents may do in this home."""
        return Gate(self.home, self.audit_log)

    async def halt(self, conversation_id: str | None = None, *, up_to: str = "INT") -> HaltResult:
        """Have agents type nothing, in one conversation or in all, and interrupt what runs there.

        It holds until `release`, also after a restart. `up_to`: how far the signals to what runs may go, as for
        `interrupt`. Raises NotFound.
        """
        from blockpty.runtime import halting

        halted = await halting.halt(self, self.gate, conversation_id, up_to)
        if "home_feed" in vars(self):
            self.home_feed.touch_all()
        return halted

    async def release(self, conversation_id: str | None = None) -> HaltResult:
        """Let agents type again, in one conversation or in all. Raises Forbidden for an agent, NotFound."""
        from blockpty.runtime import halting

        released = await halting.release(self, self.gate, conversation_id)
        if "home_feed" in vars(self):
            self.home_feed.touch_all()
        return released

    async def approvals(self, conversation_id: str | None = None) -> ApprovalsResult:
        """Return what waits for a person to allow it, in one conversation or in all that this engine has.

        Raises NotFound.
        """
        if conversation_id is not None:
            await self.conversation(conversation_id)
        waiting = self.gate.book.waiting(conversation_id)
        return ApprovalsResult([channel.live.redactor.value(asdict(approval)) for approval, channel in waiting])

    async def audit(
        self,
        *,
        conversation_id: str | None = None,
        principal: str | None = None,
        type: str | None = None,
        since: int | None = None,
        until: int | None = None,
        page: int | None = None,
        page_size: int = 100,
        verify: bool = False,
    ) -> AuditResult:
        """Return entries of the audit log, newest first, and with `verify` where the log is not what was written.

        `since`, `until`: ms since 1970. `page`: `next` of an earlier result. `page_size`: 1 to 1000. The log is read in
        a thread. Raises SpoolCorrupt when something else lies at its path.
        """
        log = self.audit_log
        asked = AuditFilter(conversation_id, principal, type, since, until, page)

        def read(pace: Pace) -> tuple[list[dict[str, Any]], AuditCheck | None]:
            log.flush()
            newest: deque[dict[str, Any]] = deque(maxlen=page_size + 1)
            for entry in log.entries():
                pace()
                if asked.admits(entry):
                    newest.append(entry)
            return [*reversed(newest)], log.check(pace) if verify else None

        try:
            found, check = await aside(read)
        except UnsafeFile as problem:
            raise unsafe(problem) from None
        shown, (unwritten, dropped) = found[:page_size], log.waiting
        return AuditResult(
            shown,
            shown[-1]["seq"] if len(found) > page_size else None,
            None if check is None else [asdict(one) for one in check.findings],
            None if check is None else check.head,
            unwritten,
            dropped,
        )

    async def sizes(self) -> dict[str, tuple[int, int]]:
        """Return how long stream and timeline of each conversation are whose shell runs, in bytes."""
        return {item.conversation: (item.offset, item.timeline) for item in await (await self.connected()).list()}

    async def connected(self) -> HostClient:
        async with self._connecting:
            return self._host or await self._connect()

    async def _connect(self) -> HostClient:
        make_private(self.home)
        make_private(conversations_directory(self.home))
        host = self._host = await HostClient.connect(self.home)
        host.on_lost = self._host_lost
        raise_descriptor_limit(self._session_limit)
        if self._suspending is None or self._suspending.done():
            self._suspending = self._tasks.start(self._suspend_unused())
            if self._idle_timeout is not None:
                self._tasks.start(close_idle(self, self._idle_timeout))
            if self._keep_days is not None or self._keep_total_mb is not None:
                self._tasks.start(retention.keep_to(self, self._keep_days, self._keep_total_mb))
        if self._stock is None or self._stock.done():
            self._stock = self._tasks.start(self._take_stock())
        return host

    def _host_lost(self) -> None:
        """The host's processes were killed, all of them: start another and find out what is left."""
        self._host = None
        self._finding = self._searches.start(self._find_host())

    async def _find_host(self) -> None:
        host = await self.connected()
        for conversation in list(self._conversations.values()):
            await conversation.attach(host)

    def _create(self, name: str, settings: Mapping[str, Any]) -> Layout:
        layout = Layout(conversations_directory(self.home) / name)
        with full_is_an_error(name):
            make_private(layout.directory)
            for directory in (layout.stream, layout.outputs, layout.commands):
                make_private(directory)
            asked = {key: value for key, value in settings.items() if key not in ("env", "env_from")}
            if "source" in asked:
                asked["format"] = OPEN_FORMAT
            if not os.path.lexists(layout.meta):
                # A host that was started by an older version, and runs on, seals no lines.
                sealed = 1 if self._host is not None and self._host.version == "1" else FORMAT_VERSION
                from blockpty.screen.widths import VERSION as WIDTHS

                meta: dict[str, Any] = {
                    "format": SOURCE_VERSION if "source" in asked else sealed,
                    "conversation_id": name,
                    "created_ts": time.time_ns() // 1_000_000,
                    "shell": settings["shell"] or "",
                    "widths": WIDTHS,
                    "open": asked,
                }
            else:
                known = checkpoint.load_meta(layout.meta)
                refuse_imported(name, known)
                before = known.get("open", {})
                if all(before.get(key) == asked.get(key) for key in ("source", "resume")):
                    return layout
                meta = {**known, "format": SOURCE_VERSION, "open": asked}
            checkpoint.replace(layout.meta, meta, durable=self._record.durability != "process")
        return layout

    async def _attach(self, name: str, layout: Layout) -> Conversation:
        """Attach to a conversation; concurrent callers wait for the same one."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            if name in self._conversations:
                return self._conversations[name]
            host = await self.connected()
            for directory in (layout.stream, layout.outputs, layout.commands):
                make_private(directory)
            await asyncio.to_thread(archived.fetch, layout.stream)
            try:
                await host.recover(name)
                conversation = self._made(name, layout, host, Ownership.take(layout.lock))
            except StorageFull:
                # It can be read all the same, and owned later.
                conversation = self._made(name, layout, host, None)
            conversation.answering = bool(self._settings[name].get("answers", True))
            conversation.records = self
            conversation.control.gate = self.gate
            try:
                await conversation.attach(host)
            except BaseException:
                await conversation.detach()
                raise
            self._conversations[name] = conversation
            self._touched(name)
            go_on(conversation)
            return conversation

    async def _suspend_ended(self, kept: int | None = None, *, unused_since: float | None = None) -> None:
        """Suspend conversations that have ended, but for those that were used last: they hold files and memory."""
        ended = [known for known in self._conversations.values() if known.over]
        for conversation in ended[: max(0, len(ended) - (ENDED_KEPT if kept is None else kept))]:
            # A concurrent caller attaches to it again when all its files are closed.
            async with self._locks.setdefault(conversation.id, asyncio.Lock()):
                if self._conversations.get(conversation.id) is not conversation:
                    continue
                if unused_since is not None and self._used.get(conversation.id, math.inf) > unused_since:
                    continue
                del self._conversations[conversation.id]
                self._used.pop(conversation.id, None)
                self._suspended[conversation.id] = conversation
                await conversation.suspend(self._resume)
                self._touched(conversation.id)

    async def _suspend_unused(self) -> None:
        """Suspend conversations that have ended and are no longer used."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(UNUSED_SECONDS)
            # Not while a shell is opened: its conversation has ended until that says something.
            async with self._opening:
                self._used = {
                    known.id: self._used.get(known.id, loop.time())
                    for known in self._conversations.values()
                    if known.over and known.id not in self._awaited
                }
                with contextlib.suppress(BlockptyError, OSError):
                    await self._suspend_ended(0, unused_since=loop.time() - UNUSED_SECONDS)

    async def _resume(self, conversation: Conversation) -> Conversation:
        """Attach again to what was suspended and is still in use."""
        async with self._locks.setdefault(conversation.id, asyncio.Lock()):
            if conversation.id not in self._conversations:
                if not conversation.directory.is_dir():
                    raise NotFound(f"{conversation.id} has been deleted")
                await conversation.resume(await self.connected())
                self._conversations[conversation.id] = conversation
                self._suspended.pop(conversation.id, None)
                self._touched(conversation.id)
            return self._conversations[conversation.id]

    async def _take_stock(self) -> None:
        """Find conversations whose shell was lost with the processes that held it, and enter that in their records."""
        await asyncio.sleep(STOCK_SECONDS)
        live = await self.live()
        async for name in listing.names(self.home):
            layout = Layout(conversations_directory(self.home) / name)
            if name in live or name in self._conversations or not layout.meta.exists():
                continue
            with contextlib.suppress(BlockptyError, OSError):
                checkpoint.load_meta(layout.meta)
                if listing.unfinished((await self.looks.look(layout))[0]) and name not in await self.live():
                    await self.conversation(name)

    def _made(self, name: str, layout: Layout, host: HostClient, ownership: Ownership | None) -> Conversation:
        try:
            return Conversation(name, layout, host, ownership, self._respawn, self._record)
        except BaseException:
            if ownership is not None:
                ownership.release()
            raise

    async def _respawn(self, conversation: Conversation) -> OpenResult:
        settings = self._settings[conversation.id]
        refuse_imported(conversation.id, checkpoint.load_meta(conversation.layout.meta))
        closings = self._closings
        # The conversation goes on, and so does what runs on its own (a server, an agent for keys).
        await end_shell(conversation, leave=True)
        async with self._opening:
            self._refuse_closed(closings)
            begin = await to_the_end(self._start(conversation, settings))
        return await first_prompt(conversation, begin, 30000)

    async def _start(self, conversation: Conversation, settings: Mapping[str, Any]) -> int:
        return await start_shell(conversation, settings, self._record, self._process_limit, self._shell_nice)


def _checked_source(
    text: str | None, shell: str | None, login: bool, cwd: str | os.PathLike[str] | None
) -> TerminalSource | None:
    """Return the source that is asked for, None for a shell of this machine; raises BadRequest."""
    source = parse_source(text) if text is not None else None
    if source is not None and (shell is not None or login):
        raise BadRequest(
            f"shell and login are for a shell of this machine, not for {source.kind}", hint="leave them out"
        )
    if source is not None and cwd is not None and source.kind != "exec":
        raise BadRequest(
            f"cwd is a directory of this machine, and {source.kind} leads elsewhere", hint="use cwd of run there"
        )
    return source


def _checked_environment(env_from: Mapping[str, str] | str | None) -> dict[str, str] | None:
    """Return the environment that a shell inherits, None for this process's; raises BadRequest."""
    if env_from is None or env_from == "server":
        return None
    if isinstance(env_from, str):
        raise BadRequest(f"env_from cannot be {env_from[:40]!r}", hint="server, or an object of variables")
    return kept_of(env_from)


def _changed_variables(inherited: Mapping[str, str] | None) -> dict[str, str]:
    """Return what a shell would find otherwise than with the environment of this process."""
    return {name: value for name, value in (inherited or {}).items() if os.environ.get(name) != value}


def _asked_to_open(command: str | None, env: Mapping[str, str]) -> str:
    """Return the command that stands for one with these variables, some of which have a shell run others."""
    functions = [
        f"{name.removeprefix('BASH_FUNC_').rstrip('%()')} {value}\n"
        for name, value in env.items()
        if name.startswith("BASH_FUNC_")
    ]
    variables = [f"{name}={shlex.quote(value)}" for name, value in env.items() if name.isidentifier()]
    return "".join(functions) + " ".join([*variables, *([command] if command else [])])


async def to_the_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Await something that cannot be stopped half-way: cancelling is passed on when it has come to its end."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()
        raise
