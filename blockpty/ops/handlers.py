"""What each operation does: one call of Engine or Conversation, and nothing else.

No rule lives here; a surface that has only a conversation's name finds the conversation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from blockpty.errors import InternalError
from blockpty.model.events import Event
from blockpty.model.results import (
    ArchiveResult,
    BlockResult,
    BlocksResult,
    CaptureResult,
    CloseResult,
    DeleteResult,
    DiffResult,
    DoneResult,
    ExecResult,
    ExportResult,
    ImportResult,
    ListResult,
    OpenResult,
    OverviewResult,
    PruneResult,
    ReadResult,
    RepairResult,
    RunResult,
    ScreenResult,
    ScrollbackResult,
    SealResult,
    SearchResult,
    SendResult,
    SessionResult,
    StatusResult,
    VerifyResult,
    WaitResult,
)
from blockpty.ops import record_requests, requests

if TYPE_CHECKING:
    # The table must be readable (help, schemas) without loading the engine.
    from blockpty.ops.engine import Engine
    from blockpty.runtime.conversation import Conversation


async def _of(engine: Engine, request: requests.ConversationRequest) -> Conversation:
    return await engine.conversation(request.conversation_id)


async def open(engine: Engine, request: requests.OpenRequest) -> OpenResult:  # noqa: A001  (the operation's name)
    conversation = await engine.open(
        request.conversation_id,
        shell=request.shell,
        cwd=request.cwd,
        env=request.env,
        cols=request.cols,
        rows=request.rows,
        login=request.login,
        persist=request.persist,
        answers=request.answers,
        timeout_ms=request.timeout_ms,
    )
    if conversation.opened is None:
        raise InternalError("a conversation was opened without a result")
    return conversation.opened


async def list(engine: Engine, request: requests.ListRequest) -> ListResult:  # noqa: A001
    return await engine.list(request.filter)


async def status(engine: Engine, request: requests.StatusRequest) -> StatusResult:
    return await (await _of(engine, request)).status()


async def exec_block(engine: Engine, request: requests.ExecBlockRequest) -> ExecResult:
    conversation = await _of(engine, request)
    return await conversation.exec_block(request.command, cwd=request.cwd, queue=request.queue)


async def exec_interactive(engine: Engine, request: requests.ExecInteractiveRequest) -> SessionResult:
    return await (await _of(engine, request)).exec_interactive(request.command, cwd=request.cwd)


async def run(engine: Engine, request: requests.RunRequest) -> RunResult:
    conversation = await _of(engine, request)
    return await conversation.run(
        request.command, cwd=request.cwd, timeout_ms=request.timeout_ms, max_bytes=request.max_bytes
    )


async def send(engine: Engine, request: requests.SendRequest) -> SendResult:
    conversation = await _of(engine, request)
    return await conversation.send(
        request.data, data_b64=request.data_b64, session_id=request.session_id, author=request.author,
        secret=request.secret,
    )  # fmt: skip


async def send_keys(engine: Engine, request: requests.SendKeysRequest) -> SendResult:
    conversation = await _of(engine, request)
    return await conversation.send_keys(request.keys, session_id=request.session_id, secret=request.secret)


async def paste(engine: Engine, request: requests.PasteRequest) -> SendResult:
    conversation = await _of(engine, request)
    return await conversation.paste(request.text, session_id=request.session_id, secret=request.secret)


async def ctrl_c(engine: Engine, request: requests.CtrlCRequest) -> SendResult:
    return await (await _of(engine, request)).ctrl_c(session_id=request.session_id)


async def ctrl_d(engine: Engine, request: requests.CtrlDRequest) -> SendResult:
    return await (await _of(engine, request)).ctrl_d(session_id=request.session_id)


async def enter(engine: Engine, request: requests.EnterRequest) -> SendResult:
    return await (await _of(engine, request)).enter(session_id=request.session_id)


async def wait_for(engine: Engine, request: requests.WaitForRequest) -> WaitResult:
    conversation = await _of(engine, request)
    return await conversation.wait_for(
        request.match,
        session_id=request.session_id,
        from_cursor=request.from_cursor,
        timeout_ms=request.timeout_ms,
        max_bytes=request.max_bytes,
        stop=request.stop,
        view=request.view,
        echo=request.echo,
    )


async def read(engine: Engine, request: requests.ReadRequest) -> ReadResult:
    conversation = await _of(engine, request)
    return await conversation.read(
        request.from_cursor, block_id=request.block_id, max_bytes=request.max_bytes, view=request.view
    )


async def blocks(engine: Engine, request: requests.BlocksRequest) -> BlocksResult:
    conversation = await _of(engine, request)
    return await conversation.blocks(
        request.filter,
        failed=request.failed,
        min_duration_ms=request.min_duration_ms,
        cwd=request.cwd,
        page=request.page,
        page_size=request.page_size,
    )


async def block(engine: Engine, request: requests.BlockRequest) -> BlockResult:
    return await (await _of(engine, request)).block(request.block_id)


async def diff(engine: Engine, request: record_requests.DiffRequest) -> DiffResult:
    conversation = await _of(engine, request)
    return await conversation.diff(
        request.block_id, request.against, context=request.context, max_bytes=request.max_bytes
    )


async def events(engine: Engine, request: requests.EventsRequest) -> AsyncIterator[Event]:
    conversation = await _of(engine, request)
    events = conversation.events(request.from_seq, follow=request.follow)
    # Its reader is closed here, not when the collector comes by.
    async with aclosing(cast("AsyncGenerator[Event, None]", events)):
        async for event in events:
            yield event


async def screen(engine: Engine, request: requests.ScreenRequest) -> ScreenResult:
    conversation = await _of(engine, request)
    return await conversation.screen(
        format=request.format, since=request.since, scrollback=request.scrollback, at=request.at, record=request.record
    )


async def set_scrollback(engine: Engine, request: requests.SetScrollbackRequest) -> ScrollbackResult:
    return await (await _of(engine, request)).set_scrollback(request.lines)


async def resize(engine: Engine, request: requests.ResizeRequest) -> DoneResult:
    return await (await _of(engine, request)).resize(request.cols, request.rows)


async def start_capture(engine: Engine, request: requests.StartCaptureRequest) -> CaptureResult:
    return await (await _of(engine, request)).start_capture()


async def stop_capture(engine: Engine, request: requests.StopCaptureRequest) -> CaptureResult:
    return await (await _of(engine, request)).stop_capture()


async def end_session(engine: Engine, request: requests.EndSessionRequest) -> DoneResult:
    return await (await _of(engine, request)).end_session(request.session_id)


async def enter_shell(engine: Engine, request: requests.EnterShellRequest) -> DoneResult:
    return await (await _of(engine, request)).enter_shell(request.shell, timeout_ms=request.timeout_ms)


async def interrupt(engine: Engine, request: requests.InterruptRequest) -> DoneResult:
    return await (await _of(engine, request)).interrupt(up_to=request.up_to, grace_ms=request.grace_ms)


async def reset(engine: Engine, request: requests.ResetRequest) -> OpenResult:
    return await (await _of(engine, request)).reset()


async def kill(engine: Engine, request: requests.KillRequest) -> DoneResult:
    return await (await _of(engine, request)).kill(signal=request.signal)


async def close(engine: Engine, request: requests.CloseRequest) -> CloseResult:
    return await (await _of(engine, request)).close(leave=request.leave)


async def delete(engine: Engine, request: requests.DeleteRequest) -> DeleteResult:
    return await (await _of(engine, request)).delete()


async def archive(engine: Engine, request: record_requests.ArchiveRequest) -> ArchiveResult:
    return await engine.archive(request.conversation_id, keep_days=request.keep_days)


async def prune(engine: Engine, request: requests.PruneRequest) -> PruneResult:
    return await engine.prune(keep_days=request.keep_days, keep_total_mb=request.keep_total_mb)


async def search(engine: Engine, request: record_requests.SearchRequest) -> SearchResult:
    return await engine.search(
        request.query,
        mode=request.mode,
        ignore_case=request.ignore_case,
        conversation_id=request.conversation_id,
        cwd=request.cwd,
        exit_status=request.exit_status,
        failed=request.failed,
        since=request.since,
        until=request.until,
        min_duration_ms=request.min_duration_ms,
        author=request.author,
        kind=request.kind,
        part=request.part,
        per_block=request.per_block,
        page=request.page,
        page_size=request.page_size,
        timeout_ms=request.timeout_ms,
    )


async def overview(engine: Engine, request: record_requests.OverviewRequest) -> OverviewResult:
    return await engine.overview(
        conversations=request.conversations,
        blocks=request.blocks,
        conversation_id=request.conversation_id,
        failed=request.failed,
        before=request.before,
    )


async def export(engine: Engine, request: requests.ExportRequest) -> ExportResult:
    return await (await _of(engine, request)).export(
        request.format,
        from_cursor=request.from_cursor,
        to_cursor=request.to_cursor,
        block_id=request.block_id,
        max_bytes=request.max_bytes,
        redact=request.redact,
    )


async def import_recording(engine: Engine, request: record_requests.ImportRecordingRequest) -> ImportResult:
    return await engine.import_recording(request.path, request.conversation_id, timing=request.timing)


async def verify(engine: Engine, request: requests.VerifyRequest) -> VerifyResult:
    return await engine.verify(request.conversation_id, key=request.key)


async def repair(engine: Engine, request: requests.RepairRequest) -> RepairResult:
    return await engine.repair(request.conversation_id, key=request.key)


async def seal(engine: Engine, request: requests.SealRequest) -> SealResult:
    return await engine.seal(request.conversation_id, request.key)
