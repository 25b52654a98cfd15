"""Results of the operations, as frozen data; every result carries a cursor where one makes sense.

This file holds their names and nothing else. Each class is loaded at first use with the file that it stands in: a
program that makes one call shows one kind of result, and building the classes of all takes longer than the call.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from blockpty.model.result import Result

if TYPE_CHECKING:
    from blockpty.model.command_results import ExecResult, RunResult, SessionResult
    from blockpty.model.control_results import (
        ApprovalsResult,
        AuditResult,
        ControlResult,
        HaltResult,
        UserInputResult,
        VerdictResult,
    )
    from blockpty.model.file_results import GetFileResult, PutFileResult
    from blockpty.model.list_results import BlockSummary, ConversationInfo, ListResult
    from blockpty.model.record_results import (
        ArchiveResult,
        CaptureResult,
        DeleteResult,
        ExportResult,
        ImportResult,
        PruneResult,
        RepairResult,
        SealResult,
        VerifyResult,
    )
    from blockpty.model.screen_results import ScreenResult
    from blockpty.model.search_results import Activity, FoundBlock, OverviewResult, SearchHit, SearchResult
    from blockpty.model.shell_results import CloseResult, DoneResult, OpenResult, ScrollbackResult, StatusResult
    from blockpty.model.timeline_results import (
        ControlChange,
        Silence,
        TimelineBlock,
        TimelineQuestion,
        TimelineResize,
        TimelineResult,
    )
    from blockpty.model.transcript_results import BlockResult, BlocksResult, DiffResult, ReadResult
    from blockpty.model.wait_results import SendResult, WaitResult

_FILES: Final = {
    "shell_results": ("OpenResult", "StatusResult", "DoneResult", "ScrollbackResult", "CloseResult"),
    "list_results": ("BlockSummary", "ConversationInfo", "ListResult"),
    "command_results": ("ExecResult", "SessionResult", "RunResult"),
    "wait_results": ("WaitResult", "SendResult"),
    "transcript_results": ("ReadResult", "BlocksResult", "BlockResult", "DiffResult"),
    "screen_results": ("ScreenResult",),
    "control_results": (
        "ControlResult", "HaltResult", "UserInputResult", "ApprovalsResult", "VerdictResult", "AuditResult",
    ),
    "file_results": ("PutFileResult", "GetFileResult"),
    "record_results": (
        "ExportResult", "ImportResult", "CaptureResult", "VerifyResult", "SealResult", "RepairResult",
        "ArchiveResult", "DeleteResult", "PruneResult",
    ),
    "search_results": ("Activity", "FoundBlock", "OverviewResult", "SearchHit", "SearchResult"),
    "timeline_results": (
        "ControlChange", "Silence", "TimelineBlock", "TimelineQuestion", "TimelineResize", "TimelineResult",
    ),
}  # fmt: skip
_PLACES: Final = {name: file for file, names in _FILES.items() for name in names}

__all__ = [
    "Activity",
    "ApprovalsResult",
    "ArchiveResult",
    "AuditResult",
    "BlockResult",
    "BlockSummary",
    "BlocksResult",
    "CaptureResult",
    "CloseResult",
    "ControlChange",
    "ControlResult",
    "ConversationInfo",
    "DeleteResult",
    "DiffResult",
    "DoneResult",
    "ExecResult",
    "ExportResult",
    "FoundBlock",
    "GetFileResult",
    "HaltResult",
    "ImportResult",
    "ListResult",
    "OpenResult",
    "OverviewResult",
    "PruneResult",
    "PutFileResult",
    "ReadResult",
    "RepairResult",
    "Result",
    "RunResult",
    "ScreenResult",
    "ScrollbackResult",
    "SealResult",
    "SearchHit",
    "SearchResult",
    "SendResult",
    "SessionResult",
    "Silence",
    "StatusResult",
    "TimelineBlock",
    "TimelineQuestion",
    "TimelineResize",
    "TimelineResult",
    "UserInputResult",
    "VerdictResult",
    "VerifyResult",
    "WaitResult",
]


if not TYPE_CHECKING:  # a type checker that saw this function would accept any name

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"blockpty.model.{_PLACES[name]}"), name)
        return value
