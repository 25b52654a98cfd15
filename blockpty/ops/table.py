"""The table of operations. Every surface is made from it, and enters through `call` and `stream`.

An operation that is not built is not here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from blockpty.errors import BadRequest
from blockpty.model import results
from blockpty.model.events import Event
from blockpty.ops import handlers, record_requests, requests
from blockpty.ops.operation import Effect, Operation, Shape

if TYPE_CHECKING:
    from blockpty.ops.engine import Engine

_HOME: Final = "/v1/conversations"
_CONVERSATION: Final = "/v1/conversations/{conversation_id}"


def _line(
    run: Callable[[Any, Any], Any],
    request: type[requests.Request],
    result: type[results.Result | Event],
    effect: Effect,
    *positional: str,
    method: str = "POST",
    path: str | None = None,
) -> Operation:
    """Return one line; an operation has the name of its handler, and by default a route of that name."""
    of_conversation = issubclass(request, requests.ConversationRequest)
    return Operation(
        name=run.__name__,
        request=request,
        result=result,
        effect=effect,
        shape=Shape.STREAM if result is Event else Shape.CALL,
        route=(method, f"{_CONVERSATION}/{run.__name__}" if path is None else path),
        positional=(*(("conversation_id",) if of_conversation else ()), *positional),
        run=run,
    )


_READ, _INPUT, _LIFE = Effect.READ, Effect.INPUT, Effect.LIFECYCLE

OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in (
        _line(handlers.open, requests.OpenRequest, results.OpenResult, _LIFE, "conversation_id", path=_HOME),
        _line(handlers.list, requests.ListRequest, results.ListResult, _READ, "filter", method="GET", path=_HOME),
        _line(handlers.status, requests.StatusRequest, results.StatusResult, _READ, method="GET"),
        _line(handlers.exec_block, requests.ExecBlockRequest, results.ExecResult, _INPUT, "command"),
        _line(handlers.exec_interactive, requests.ExecInteractiveRequest, results.SessionResult, _INPUT, "command"),
        _line(handlers.run, requests.RunRequest, results.RunResult, _INPUT, "command"),
        _line(handlers.send, requests.SendRequest, results.SendResult, _INPUT, "data"),
        _line(handlers.send_keys, requests.SendKeysRequest, results.SendResult, _INPUT, "keys"),
        _line(handlers.paste, requests.PasteRequest, results.SendResult, _INPUT, "text"),
        _line(handlers.ctrl_c, requests.CtrlCRequest, results.SendResult, _INPUT),
        _line(handlers.ctrl_d, requests.CtrlDRequest, results.SendResult, _INPUT),
        _line(handlers.enter, requests.EnterRequest, results.SendResult, _INPUT),
        _line(handlers.wait_for, requests.WaitForRequest, results.WaitResult, _READ, "match"),
        _line(handlers.read, requests.ReadRequest, results.ReadResult, _READ, "from_cursor", method="GET"),
        _line(handlers.blocks, requests.BlocksRequest, results.BlocksResult, _READ, "filter", method="GET"),
        _line(
            handlers.block, requests.BlockRequest, results.BlockResult, _READ, "block_id",
            method="GET", path=_CONVERSATION + "/blocks/{block_id}",
        ),
        _line(
            handlers.diff, record_requests.DiffRequest, results.DiffResult, _READ, "block_id", "against", method="GET",
            path=_CONVERSATION + "/blocks/{block_id}/diff",
        ),
        _line(handlers.events, requests.EventsRequest, Event, _READ, "from_seq", method="GET"),
        _line(handlers.screen, requests.ScreenRequest, results.ScreenResult, _READ, method="GET"),
        _line(handlers.resize, requests.ResizeRequest, results.DoneResult, _INPUT, "cols", "rows"),
        _line(handlers.set_scrollback, requests.SetScrollbackRequest, results.ScrollbackResult, _READ, "lines"),
        _line(handlers.start_capture, requests.StartCaptureRequest, results.CaptureResult, _READ),
        _line(handlers.stop_capture, requests.StopCaptureRequest, results.CaptureResult, _READ),
        _line(handlers.end_session, requests.EndSessionRequest, results.DoneResult, _LIFE, "session_id"),
        _line(handlers.enter_shell, requests.EnterShellRequest, results.DoneResult, _INPUT, "shell"),
        _line(handlers.interrupt, requests.InterruptRequest, results.DoneResult, _INPUT),
        _line(handlers.reset, requests.ResetRequest, results.OpenResult, _LIFE),
        _line(handlers.kill, requests.KillRequest, results.DoneResult, _LIFE),
        _line(handlers.close, requests.CloseRequest, results.CloseResult, _LIFE),
        _line(handlers.delete, requests.DeleteRequest, results.DeleteResult, _LIFE),
        _line(handlers.prune, requests.PruneRequest, results.PruneResult, _LIFE, path="/v1/prune"),
        _line(
            handlers.archive, record_requests.ArchiveRequest, results.ArchiveResult, _LIFE, "conversation_id",
            path="/v1/archive",
        ),
        _line(
            handlers.search, record_requests.SearchRequest, results.SearchResult, _READ, "query",
            method="GET", path="/v1/search",
        ),
        _line(
            handlers.overview, record_requests.OverviewRequest, results.OverviewResult, _READ,
            method="GET", path="/v1/overview",
        ),
        _line(handlers.export, requests.ExportRequest, results.ExportResult, _READ, "format"),
        _line(
            handlers.import_recording, record_requests.ImportRecordingRequest, results.ImportResult, _LIFE, "path",
            "conversation_id", path="/v1/import_recording",
        ),
        _line(
            handlers.verify, requests.VerifyRequest, results.VerifyResult, _READ, "conversation_id",
            path=_CONVERSATION + "/verify",
        ),
        _line(
            handlers.repair, requests.RepairRequest, results.RepairResult, _LIFE, "conversation_id",
            path=_CONVERSATION + "/repair",
        ),
        _line(
            handlers.seal, requests.SealRequest, results.SealResult, _LIFE, "conversation_id", "key",
            path=_CONVERSATION + "/seal",
        ),
    )
}  # fmt: skip


def find(name: str) -> Operation:
    """Return an operation; raises BadRequest."""
    try:
        return OPERATIONS[name]
    except KeyError:
        raise BadRequest(f"no operation is called {name[:40]!r}", hint=f"one of {', '.join(OPERATIONS)}") from None


async def call(engine: Engine, name: str, params: Mapping[str, Any]) -> results.Result:
    """Run one operation of shape CALL with plain parameters; raises BlockptyError."""
    operation = _shaped(name, Shape.CALL)
    result: results.Result = await operation.run(engine, operation.parse(params))
    return result


def stream(engine: Engine, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
    """Run one operation of shape STREAM with plain parameters; raises BlockptyError, some of it only when iterated."""
    operation = _shaped(name, Shape.STREAM)
    events: AsyncIterator[Event] = operation.run(engine, operation.parse(params))
    return events


def _shaped(name: str, shape: Shape) -> Operation:
    operation = find(name)
    if operation.shape is not shape:
        raise BadRequest(f"{name} is a {operation.shape.value}, not a {shape.value}")
    return operation
