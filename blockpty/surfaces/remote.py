"""A conversation of a server, with the methods of Conversation.

Rules of this file: no parameter and no rule of its own; a method hands its parameters to the operation of its name.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from blockpty.model.conditions import Match
from blockpty.model.events import Event
from blockpty.model.results import (
    BlockResult,
    BlocksResult,
    CaptureResult,
    CloseResult,
    DeleteResult,
    DiffResult,
    DoneResult,
    ExecResult,
    ExportResult,
    OpenResult,
    ReadResult,
    RepairResult,
    RunResult,
    ScreenResult,
    ScrollbackResult,
    SealResult,
    SendResult,
    SessionResult,
    StatusResult,
    VerifyResult,
    WaitResult,
)
from blockpty.surfaces.replay import RemoteReplay

if TYPE_CHECKING:
    from blockpty.surfaces.client import Client


class RemoteConversation:
    """A conversation of a server, with the methods of Conversation.

    Attributes:
        id, conversation_id: its name.
        opened: the result of `open`, None for one that existed.
    """

    def __init__(self, client: Client, conversation_id: str, opened: OpenResult | None = None) -> None:
        self.id = self.conversation_id = conversation_id
        self.opened = opened
        self._client = client

    async def _call(self, operation: str, **params: Any) -> Any:
        return await self._client.call(operation, {"conversation_id": self.id, **params})

    async def status(self) -> StatusResult:
        """Return mode, terminal state and integrity, sampled now."""
        return cast("StatusResult", await self._call("status"))

    async def exec_block(self, command: str, *, cwd: str | None = None, queue: bool = False) -> ExecResult:
        """Run a command as exactly one block and return when it has begun."""
        return cast("ExecResult", await self._call("exec_block", command=command, cwd=cwd, queue=queue))

    async def exec_interactive(self, command: str, *, cwd: str | None = None) -> SessionResult:
        """Start an interactive program as one block; then use `send` and `wait_for`."""
        return cast("SessionResult", await self._call("exec_interactive", command=command, cwd=cwd))

    async def run(
        self, command: str, *, cwd: str | None = None, timeout_ms: int = 30000, max_bytes: int = 65536
    ) -> RunResult:
        """Run a command as one block and wait for its end; when the time is up it runs on."""
        params = {"command": command, "cwd": cwd, "timeout_ms": timeout_ms, "max_bytes": max_bytes}
        return cast("RunResult", await self._call("run", **params))

    async def send(
        self,
        data: str | bytes | None = None,
        *,
        data_b64: str | None = None,
        session_id: str | None = None,
        author: str = "agent",
        secret: bool = False,
    ) -> SendResult:
        """Write text or bytes to the terminal, exactly as given."""
        if isinstance(data, bytes) and data_b64 is None:
            data_b64, data = base64.b64encode(data).decode("ascii"), None
        params = {"data": data, "data_b64": data_b64, "session_id": session_id, "author": author, **_secret(secret)}
        return cast("SendResult", await self._call("send", **params))

    async def send_keys(self, keys: str, *, session_id: str | None = None, secret: bool = False) -> SendResult:
        """Press keys: text with named keys in it."""
        return cast("SendResult", await self._call("send_keys", keys=keys, session_id=session_id, **_secret(secret)))

    async def paste(self, text: str, *, session_id: str | None = None, secret: bool = False) -> SendResult:
        """Paste text, in brackets where the program asked for that."""
        return cast("SendResult", await self._call("paste", text=text, session_id=session_id, **_secret(secret)))

    async def ctrl_c(self, *, session_id: str | None = None) -> SendResult:
        """Press Ctrl-C."""
        return cast("SendResult", await self._call("ctrl_c", session_id=session_id))

    async def ctrl_d(self, *, session_id: str | None = None) -> SendResult:
        """Press Ctrl-D."""
        return cast("SendResult", await self._call("ctrl_d", session_id=session_id))

    async def enter(self, *, session_id: str | None = None) -> SendResult:
        """Press Enter."""
        return cast("SendResult", await self._call("enter", session_id=session_id))

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
        """Wait until something appears or happens, looking at what is recorded already first."""
        params = {
            "match": match, "session_id": session_id, "from_cursor": from_cursor, "timeout_ms": timeout_ms,
            "max_bytes": max_bytes, "stop": stop, "view": view, "echo": echo,
        }  # fmt: skip
        return cast("WaitResult", await self._call("wait_for", **params))

    async def read(
        self, from_cursor: int | None = None, *, block_id: str | None = None, max_bytes: int = 65536, view: str = "text"
    ) -> ReadResult:
        """Return a piece of the transcript from a cursor, or the output of a block, in a view."""
        params = {"from_cursor": from_cursor, "block_id": block_id, "max_bytes": max_bytes, "view": view}
        return cast("ReadResult", await self._call("read", **params))

    async def blocks(
        self,
        filter: str | None = None,
        *,
        failed: bool | None = None,
        min_duration_ms: int | None = None,
        cwd: str | None = None,
        page: int = 0,
        page_size: int = 100,
    ) -> BlocksResult:
        """Return a page of finished blocks, oldest first."""
        params = {"filter": filter, "failed": failed, "min_duration_ms": min_duration_ms, "cwd": cwd}
        return cast("BlocksResult", await self._call("blocks", **params, page=page, page_size=page_size))

    async def block(self, block_id: str) -> BlockResult:
        """Return one block, running or finished; raises NotFound."""
        return cast("BlockResult", await self._call("block", block_id=block_id))

    async def diff(
        self, block_id: str, against: str | None = None, *, context: int = 3, max_bytes: int = 65536
    ) -> DiffResult:
        """Compare the output of a block with that of another one, by default of its previous run."""
        params = {"block_id": block_id, "against": against, "context": context, "max_bytes": max_bytes}
        return cast("DiffResult", await self._call("diff", **params))

    async def events(self, from_seq: int = 0, *, follow: bool = True) -> AsyncIterator[Event]:
        """Yield events from a number on; with `follow`, those that come as well."""
        params = {"conversation_id": self.id, "from_seq": from_seq, "follow": follow}
        async with contextlib.aclosing(cast("Any", self._client.stream("events", params))) as events:
            async for event in events:
                yield event

    async def screen(
        self, *, format: str = "text", since: int | None = None, scrollback: int = 0, at: int | None = None,
        record: bool = False,
    ) -> ScreenResult:  # fmt: skip
        """Show what the terminal shows, now or at a cursor."""
        found = await self._call("screen", format=format, since=since, scrollback=scrollback, at=at, record=record)
        return cast("ScreenResult", found)

    async def set_scrollback(self, lines: int = 1000) -> ScrollbackResult:
        """Set how many lines above the screen can be asked for."""
        return cast("ScrollbackResult", await self._call("set_scrollback", lines=lines))

    async def resize(self, cols: int, rows: int) -> DoneResult:
        """Change the size of the terminal."""
        return cast("DoneResult", await self._call("resize", cols=cols, rows=rows))

    async def start_capture(self) -> CaptureResult:
        """Begin to capture what the terminal shows."""
        return cast("CaptureResult", await self._call("start_capture"))

    async def stop_capture(self) -> CaptureResult:
        """Stop the capture and write its asciicast, on the server's machine."""
        return cast("CaptureResult", await self._call("stop_capture"))

    async def end_session(self, session_id: str | None = None) -> DoneResult:
        """End an interactive session as gently as it allows; the result says how."""
        return cast("DoneResult", await self._call("end_session", session_id=session_id))

    async def enter_shell(self, shell: str | None = None, *, timeout_ms: int = 10_000) -> DoneResult:
        """Give the hooks to a shell that runs inside a command."""
        return cast("DoneResult", await self._call("enter_shell", shell=shell, timeout_ms=timeout_ms))

    async def interrupt(self, *, up_to: str = "INT", grace_ms: int = 1000) -> DoneResult:
        """Interrupt what runs, with stronger signals only as far as asked for; says how it ended."""
        return cast("DoneResult", await self._call("interrupt", up_to=up_to, grace_ms=grace_ms))

    async def reset(self) -> OpenResult:
        """Kill the shell and start another on a new terminal; transcript and cursors go on."""
        return cast("OpenResult", await self._call("reset"))

    async def kill(self, *, signal: str = "TERM") -> DoneResult:
        """End the shell and what it runs in the foreground, as `Conversation.kill` does."""
        return cast("DoneResult", await self._call("kill", signal=signal))

    async def close(self, *, leave: bool = False) -> CloseResult:
        """End the shell and what came from it, as `Conversation.close` does; the transcript stays."""
        return cast("CloseResult", await self._call("close", leave=leave))

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
        """Export the conversation, a block or a span; a file is one of the server's machine."""
        params = {
            "from_cursor": from_cursor, "to_cursor": to_cursor, "block_id": block_id, "max_bytes": max_bytes,
            "redact": redact,
        }  # fmt: skip
        return cast("ExportResult", await self._call("export", format=format, **params))

    async def delete(self) -> DeleteResult:
        """Delete the conversation, as `Conversation.delete` does."""
        return cast("DeleteResult", await self._call("delete"))

    def replay(
        self,
        *,
        speed: float = 1.0,
        idle_limit: float | None = None,
        from_seconds: float = 0.0,
        to_seconds: float | None = None,
        from_cursor: int | None = None,
        to_cursor: int | None = None,
        block_id: str | None = None,
    ) -> RemoteReplay:
        """Return an async iterator of the moments at their recorded times; the server keeps the time."""
        params = {
            "speed": speed, "idle_limit": idle_limit, "from_seconds": from_seconds, "to_seconds": to_seconds,
            "from_cursor": from_cursor, "to_cursor": to_cursor, "block_id": block_id,
        }  # fmt: skip
        return RemoteReplay(self._client, self.id, params)

    async def verify(self, *, key: str | None = None) -> VerifyResult:
        """Compare all files with what follows from stream and timeline, as `Conversation.verify` does."""
        return cast("VerifyResult", await self._call("verify", key=key))

    async def repair(self, *, key: str | None = None) -> RepairResult:
        """Derive everything again, and return what that changed, as `Conversation.repair` does."""
        return cast("RepairResult", await self._call("repair", key=key))

    async def seal(self, key: str) -> SealResult:
        """Have the record sealed with a key, as `Conversation.seal` does."""
        return cast("SealResult", await self._call("seal", key=key))


def _secret(secret: bool) -> dict[str, bool]:
    """Left out where it is not asked for: a server of an older version refuses what it does not know."""
    return {"secret": True} if secret else {}
