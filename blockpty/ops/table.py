"""Table of operations: every surface is made from it, and enters through `blockpty.ops.dispatch`.

An operation that is not built is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from blockpty.errors import BadRequest
from blockpty.model import results
from blockpty.model.events import Event
from blockpty.ops import requests
from blockpty.ops.operation import Effect, Operation, Shape

_HOME: Final = "/v1/conversations"
_CONVERSATION: Final = "/v1/conversations/{conversation_id}"


def _line(
    name: str,
    request: type[requests.Request],
    result: type[results.Result | Event],
    effect: Effect,
    *positional: str,
    method: str = "POST",
    path: str | None = None,
    result_attribute: str | None = None,
) -> Operation:
    """Return one line; by default an operation has a route of its name below its conversation."""
    of_conversation = issubclass(request, requests.ConversationRequest)
    return Operation(
        name=name,
        request=request,
        result=result,
        effect=effect,
        shape=Shape.STREAM if result is Event else Shape.CALL,
        route=(method, f"{_CONVERSATION}/{name}" if path is None else path),
        positional=(*(("conversation_id",) if of_conversation else ()), *positional),
        result_attribute=result_attribute,
    )


_READ, _INPUT, _LIFE = Effect.READ, Effect.INPUT, Effect.LIFECYCLE

OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in (
        _line(
            "open", requests.OpenRequest, results.OpenResult, _LIFE, "conversation_id",
            path=_HOME, result_attribute="opened",
        ),
        _line("list", requests.ListRequest, results.ListResult, _READ, "filter", method="GET", path=_HOME),
        _line("status", requests.StatusRequest, results.StatusResult, _READ, method="GET"),
        _line("exec_block", requests.ExecBlockRequest, results.ExecResult, _INPUT, "command"),
        _line("exec_interactive", requests.ExecInteractiveRequest, results.SessionResult, _INPUT, "command"),
        _line("run", requests.RunRequest, results.RunResult, _INPUT, "command"),
        _line("send", requests.SendRequest, results.SendResult, _INPUT, "data"),
        _line("send_line", requests.SendLineRequest, results.SendResult, _INPUT, "text"),
        _line("send_keys", requests.SendKeysRequest, results.SendResult, _INPUT, "keys"),
        _line("paste", requests.PasteRequest, results.SendResult, _INPUT, "text"),
        _line("ctrl_c", requests.CtrlCRequest, results.SendResult, _INPUT),
        _line("ctrl_d", requests.CtrlDRequest, results.SendResult, _INPUT),
        _line("enter", requests.EnterRequest, results.SendResult, _INPUT),
        _line("wait_for", requests.WaitForRequest, results.WaitResult, _READ, "match"),
        _line("read", requests.ReadRequest, results.ReadResult, _READ, "from_cursor", method="GET"),
        _line("blocks", requests.BlocksRequest, results.BlocksResult, _READ, "filter", method="GET"),
        _line(
            "block", requests.BlockRequest, results.BlockResult, _READ, "block_id",
            method="GET", path=_CONVERSATION + "/blocks/{block_id}",
        ),
        _line(
            "diff", requests.DiffRequest, results.DiffResult, _READ, "block_id", "against", method="GET",
            path=_CONVERSATION + "/blocks/{block_id}/diff",
        ),
        _line("timeline", requests.TimelineRequest, results.TimelineResult, _READ, "buckets", method="GET"),
        _line("events", requests.EventsRequest, Event, _READ, "from_seq", method="GET"),
        _line("screen", requests.ScreenRequest, results.ScreenResult, _READ, method="GET"),
        _line("resize", requests.ResizeRequest, results.DoneResult, _INPUT, "cols", "rows"),
        _line("set_scrollback", requests.SetScrollbackRequest, results.ScrollbackResult, _READ, "lines"),
        _line("start_capture", requests.StartCaptureRequest, results.CaptureResult, _READ),
        _line("stop_capture", requests.StopCaptureRequest, results.CaptureResult, _READ),
        _line("end_session", requests.EndSessionRequest, results.DoneResult, _LIFE, "session_id"),
        _line("enter_shell", requests.EnterShellRequest, results.DoneResult, _INPUT, "shell"),
        _line("interrupt", requests.InterruptRequest, results.DoneResult, _INPUT),
        _line("reset", requests.ResetRequest, results.OpenResult, _LIFE),
        _line("kill", requests.KillRequest, results.DoneResult, _LIFE),
        _line("close", requests.CloseRequest, results.CloseResult, _LIFE),
        _line("put_file", requests.PutFileRequest, results.PutFileResult, _INPUT, "path", "data"),
        _line("get_file", requests.GetFileRequest, results.GetFileResult, _INPUT, "path", "local_path"),
        _line("delete", requests.DeleteRequest, results.DeleteResult, _LIFE),
        _line("prune", requests.PruneRequest, results.PruneResult, _LIFE, path="/v1/prune"),
        _line(
            "archive", requests.ArchiveRequest, results.ArchiveResult, _LIFE, "conversation_id",
            path="/v1/archive",
        ),
        _line("halt", requests.HaltRequest, results.HaltResult, _INPUT, "conversation_id", path="/v1/halt"),
        _line("release", requests.ReleaseRequest, results.HaltResult, _INPUT, "conversation_id", path="/v1/release"),
        _line("request_user_input", requests.RequestUserInputRequest, results.UserInputResult, _INPUT, "message"),
        _line("take_control", requests.TakeControlRequest, results.ControlResult, _INPUT, "who"),
        _line("release_control", requests.ReleaseControlRequest, results.ControlResult, _INPUT),
        _line(
            "approvals", requests.ApprovalsRequest, results.ApprovalsResult, _READ, "conversation_id",
            method="GET", path="/v1/approvals",
        ),
        _line("approve", requests.ApproveRequest, results.VerdictResult, _INPUT, "approval_id", "digest"),
        _line("deny", requests.DenyRequest, results.VerdictResult, _INPUT, "approval_id", "digest"),
        _line(
            "search", requests.SearchRequest, results.SearchResult, _READ, "query",
            method="GET", path="/v1/search",
        ),
        _line(
            "overview", requests.OverviewRequest, results.OverviewResult, _READ,
            method="GET", path="/v1/overview",
        ),
        _line("audit", requests.AuditRequest, results.AuditResult, _READ, method="GET", path="/v1/audit"),
        _line("export", requests.ExportRequest, results.ExportResult, _READ, "format"),
        _line(
            "import_recording", requests.ImportRecordingRequest, results.ImportResult, _LIFE, "path",
            "conversation_id", path="/v1/import_recording",
        ),
        _line(
            "verify", requests.VerifyRequest, results.VerifyResult, _READ, "conversation_id",
            path=_CONVERSATION + "/verify",
        ),
        _line(
            "repair", requests.RepairRequest, results.RepairResult, _LIFE, "conversation_id",
            path=_CONVERSATION + "/repair",
        ),
        _line(
            "seal", requests.SealRequest, results.SealResult, _LIFE, "conversation_id", "key",
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
