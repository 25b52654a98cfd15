"""The protocol of a conversation, whether it is an engine's or a server's.

Written by tools/gen_reference from the methods of Conversation. Do not edit.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from blockpty.model.conditions import Match
from blockpty.model.events import Event
from blockpty.model.results import (
    BlockResult,
    BlocksResult,
    CaptureResult,
    CloseResult,
    ControlResult,
    DeleteResult,
    DiffResult,
    DoneResult,
    ExecResult,
    ExportResult,
    GetFileResult,
    OpenResult,
    PutFileResult,
    ReadResult,
    RepairResult,
    RunResult,
    ScreenResult,
    ScrollbackResult,
    SealResult,
    SendResult,
    SessionResult,
    StatusResult,
    TimelineResult,
    UserInputResult,
    VerdictResult,
    VerifyResult,
    WaitResult,
)


class AnyConversation(Protocol):
    """What a function takes that works with conversations of an engine and of a server alike."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def opened(self) -> OpenResult | None:
        """The result of `open`; None for one that existed."""

    async def __aenter__(self) -> Self:
        """Return the conversation."""

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""

    def lines(self, block_id: str | None = None) -> AsyncIterator[str]:
        """Yield the lines of a block's output as text as they come, without their ends, until the block has ended."""

    async def status(self) -> StatusResult:
        """Show what the shell and its terminal are doing now."""

    async def exec_block(self, command: str, *, cwd: str | None = None, queue: bool = False) -> ExecResult:
        """Start a command as one block, and return when it has begun."""

    async def exec_interactive(self, command: str, *, cwd: str | None = None) -> SessionResult:
        """Start a program to talk to with send and wait_for; it is an interactive session until it ends."""

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
        """Run a command as one block, wait for its end and return its output and exit status."""

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
        """Write text or bytes to the terminal, exactly as given; give data or data_b64. No newline is added."""

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
        """Type a line into the running program: a text, and Enter. Line ends in the text are Enter too."""

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
        """Press keys: text with named keys in it."""

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
        """Paste text: in brackets where the program asked for that, otherwise with Enter at the line ends."""

    async def ctrl_c(self, *, session_id: str | None = None) -> SendResult:
        """Press Ctrl-C."""

    async def ctrl_d(self, *, session_id: str | None = None) -> SendResult:
        """Press Ctrl-D."""

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
        """Press Enter."""

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
        """Wait until something appears or happens; what is recorded already is searched first."""

    async def expect(
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
        """Wait as `wait_for` does, with the same parameters, and raise an error when nothing matched."""

    async def read(
        self,
        from_cursor: int | None = None,
        *,
        to_cursor: int | None = None,
        block_id: str | None = None,
        max_bytes: int = 65536,
        view: str = "text",
        style: str = "plain",
        from_line: int | None = None,
    ) -> ReadResult:
        """Read part of the transcript, from a cursor or of a block; the next piece begins at the result's cursor."""

    async def blocks(
        self,
        filter: str | None = None,
        *,
        failed: bool | None = None,
        min_duration_ms: int | None = None,
        cwd: str | None = None,
        author: str | None = None,
        kind: str | None = None,
        order: str = "oldest",
        before_seq: int | None = None,
        after_seq: int | None = None,
        running: bool = False,
        measure: bool = False,
        page: int = 0,
        page_size: int = 100,
    ) -> BlocksResult:
        """List the blocks that have ended, oldest first; with `running`, those as well that have not."""

    async def block(self, block_id: str) -> BlockResult:
        """Show the record of one block, running or ended."""

    async def diff(
        self,
        block_id: str,
        against: str | None = None,
        *,
        context: int = 3,
        max_bytes: int = 65536,
    ) -> DiffResult:
        """Compare the output of a block with another one, by default with the previous run of the same command."""

    async def timeline(self, buckets: int = 600) -> TimelineResult:
        """Show a recording over its whole time: blocks, silences, sizes, control, questions, and how much was printed
        when."""

    def events(self, from_seq: int = 0, *, follow: bool = True) -> AsyncIterator[Event]:
        """Return the events of a conversation in order, and then live ones as they happen."""

    async def screen(
        self,
        *,
        format: str = "text",
        since: int | None = None,
        scrollback: int = 0,
        first_line: int | None = None,
        last_line: int | None = None,
        at: int | None = None,
        record: bool = False,
    ) -> ScreenResult:
        """Show the screen of the terminal, now or at a cursor: a full-screen program, or the last lines of a shell."""

    async def resize(self, cols: int, rows: int) -> DoneResult:
        """Change the size of the terminal."""

    async def set_scrollback(self, lines: int = 1000) -> ScrollbackResult:
        """Set how many lines above the screen can be requested; the record does not change."""

    async def start_capture(self) -> CaptureResult:
        """Start to capture the terminal as an asciicast, or describe the capture that is already running."""

    async def stop_capture(self) -> CaptureResult:
        """Stop the capture and write its asciicast to the home's `exports/`; later calls describe the stopped one."""

    async def end_session(self, session_id: str | None = None) -> DoneResult:
        """End an interactive session as gently as possible; the result says how."""

    async def enter_shell(
        self,
        shell: str | None = None,
        *,
        timeout_ms: int = 10000,
        timeout: float | None = None,
    ) -> DoneResult:
        """Install the shell integration in a shell inside a command (ssh, su, a container): its commands become
        blocks."""

    async def interrupt(self, *, up_to: str = "INT", grace_ms: int = 1000) -> DoneResult:
        """Interrupt the running program with SIGINT, and stronger signals only if allowed; the result says how."""

    async def reset(self) -> OpenResult:
        """Kill the shell and start another on a new terminal; transcript and cursors continue."""

    async def kill(self, *, signal: str = "TERM") -> DoneResult:
        """Kill the shell and its foreground program: TERM, then HUP and KILL until the shell has ended."""

    async def close(self, *, leave: bool = False) -> CloseResult:
        """Terminate the shell and its processes. The transcript is kept."""

    async def put_file(
        self,
        path: str,
        data: str | bytes | None = None,
        *,
        data_b64: str | None = None,
        local_path: str | None = None,
        mode: str | None = None,
    ) -> PutFileResult:
        """Write a file where the shell is: on this machine or, after enter_shell, behind ssh, su or a container."""

    async def get_file(
        self,
        path: str,
        local_path: str | None = None,
        *,
        max_bytes: int = 4194304,
        redact: bool | None = None,
    ) -> GetFileResult:
        """Read a file where the shell is, exactly; text comes as data, anything else as data_b64."""

    async def delete(self, *, dry_run: bool = False) -> DeleteResult:
        """Delete an ended conversation with its transcript. This cannot be undone."""

    async def request_user_input(self, message: str, *, timeout_seconds: int = 300) -> UserInputResult:
        """Ask a person to take over the terminal and type, and wait until that is done."""

    async def take_control(self, who: str | None = None, *, shared: bool = False, lease: bool = False) -> ControlResult:
        """Give control to a person: what agents type is refused, and cut off where it is under way."""

    async def release_control(self, *, cancelled: bool = False) -> ControlResult:
        """Hand control back to agents. Only a person may ask for it, not only the one who has control."""

    async def approve(self, approval_id: str, digest: str, *, scope: str = "once") -> VerdictResult:
        """Approve pending input. Only a person may do that."""

    async def deny(self, approval_id: str, digest: str, *, reason: str | None = None) -> VerdictResult:
        """Deny pending input. Only a person may do that."""

    async def export(
        self,
        format: str = "cast",
        *,
        from_cursor: int | None = None,
        to_cursor: int | None = None,
        block_id: str | None = None,
        max_bytes: int = 65536,
        redact: bool | None = None,
    ) -> ExportResult:
        """Export a conversation, a block or a span for other tools; small results as data, others as a file."""

    async def verify(self, *, key: str | None = None) -> VerifyResult:
        """Compare all files with what follows from stream and timeline, waits included; nothing is written."""

    async def repair(self, *, key: str | None = None) -> RepairResult:
        """Derive everything again from stream and timeline, and report what changed; only while no shell runs."""

    async def seal(self, key: str) -> SealResult:
        """Seal the record up to now with a key, so that verify with this key finds any later change to it."""
