"""Runs a real shell for your program: exact output and exit status of each command, and waits for prompts and text.

A first session:

    import asyncio
    import blockpty

    async def main() -> None:
        async with blockpty.Engine() as engine, engine.open() as conversation:
            result = await conversation.run("make test", timeout=60)
            print(result.exit_status, result.output)

    asyncio.run(main())

Without asyncio, `blockpty.sync` has the same classes, and `blockpty.run("make test")` runs one command.

This file holds the public names and nothing else. They are looked up at first use, so that `import blockpty` costs
next to nothing and the small host processes, which need neither asyncio nor any library, do not pay for it. Rooms
inside the package import each other directly and never this file. tests/test_exports.py pins all of this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blockpty import sync
    from blockpty.api.any_conversation import AnyConversation
    from blockpty.api.progress import Progress
    from blockpty.control.principals import Principal, acting
    from blockpty.errors import (
        ApprovalDenied,
        ApprovalRequired,
        ArchiveUnreachable,
        BadCondition,
        BadCursor,
        BadRequest,
        BlockptyError,
        Busy,
        ConnectionLost,
        Exited,
        Forbidden,
        Halted,
        InteractiveSessionActive,
        InternalError,
        LineTooLong,
        NoPrompt,
        NoSession,
        NotFound,
        PtyLimit,
        RequestError,
        SessionLimit,
        SpawnFailed,
        SpoolCorrupt,
        SpoolError,
        SpoolVersion,
        Stale,
        StorageFull,
        TerminalError,
        Unauthorized,
        UserInControl,
    )
    from blockpty.model.block import Block, ListedBlock
    from blockpty.model.conditions import EOF, INPUT, PROMPT, Changed, Idle, Match, Regex, Screen, Text
    from blockpty.model.events import Event
    from blockpty.model.results import (
        ApprovalsResult,
        ArchiveResult,
        AuditResult,
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
        HaltResult,
        ImportResult,
        ListResult,
        OpenResult,
        OverviewResult,
        PruneResult,
        PutFileResult,
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
        TimelineResult,
        UserInputResult,
        VerdictResult,
        VerifyResult,
        WaitResult,
    )
    from blockpty.model.unmet import CommandFailed, EndOfFile, InputPrompt, NotMatched, PasswordPrompt, Timeout
    from blockpty.ops.engine import Engine
    from blockpty.runtime.conversation import Conversation
    from blockpty.surfaces.client import Client, RemoteConversation
    from blockpty.sync import run

__version__ = "0.1.0"

__all__ = [
    "AnyConversation",
    "ApprovalDenied",
    "ApprovalRequired",
    "ApprovalsResult",
    "ArchiveResult",
    "ArchiveUnreachable",
    "AuditResult",
    "BadCondition",
    "BadCursor",
    "BadRequest",
    "Block",
    "BlockResult",
    "BlockptyError",
    "BlocksResult",
    "Busy",
    "CaptureResult",
    "Changed",
    "Client",
    "CloseResult",
    "CommandFailed",
    "ConnectionLost",
    "ControlResult",
    "Conversation",
    "DeleteResult",
    "DiffResult",
    "DoneResult",
    "EOF",
    "EndOfFile",
    "Engine",
    "Event",
    "ExecResult",
    "Exited",
    "ExportResult",
    "Forbidden",
    "GetFileResult",
    "HaltResult",
    "Halted",
    "INPUT",
    "Idle",
    "ImportResult",
    "InputPrompt",
    "InteractiveSessionActive",
    "InternalError",
    "LineTooLong",
    "ListResult",
    "ListedBlock",
    "Match",
    "NoPrompt",
    "NoSession",
    "NotFound",
    "NotMatched",
    "OpenResult",
    "OverviewResult",
    "PROMPT",
    "PasswordPrompt",
    "Principal",
    "Progress",
    "PruneResult",
    "PtyLimit",
    "PutFileResult",
    "ReadResult",
    "Regex",
    "RemoteConversation",
    "RepairResult",
    "RequestError",
    "RunResult",
    "Screen",
    "ScreenResult",
    "ScrollbackResult",
    "SealResult",
    "SearchResult",
    "SendResult",
    "SessionLimit",
    "SessionResult",
    "SpawnFailed",
    "SpoolCorrupt",
    "SpoolError",
    "SpoolVersion",
    "Stale",
    "StatusResult",
    "StorageFull",
    "TerminalError",
    "Text",
    "TimelineResult",
    "Timeout",
    "Unauthorized",
    "UserInControl",
    "UserInputResult",
    "VerdictResult",
    "VerifyResult",
    "WaitResult",
    "__version__",
    "acting",
    "run",
    "sync",
]

# Where a name is; an error stands in `blockpty.errors`, a result in `blockpty.model.results`.
_ROOMS = {
    "Principal": "blockpty.control.principals",
    "acting": "blockpty.control.principals",
    "Block": "blockpty.model.block",
    "ListedBlock": "blockpty.model.block",
    "EOF": "blockpty.model.conditions",
    "INPUT": "blockpty.model.conditions",
    "PROMPT": "blockpty.model.conditions",
    "Changed": "blockpty.model.conditions",
    "Idle": "blockpty.model.conditions",
    "Match": "blockpty.model.conditions",
    "Regex": "blockpty.model.conditions",
    "Screen": "blockpty.model.conditions",
    "Text": "blockpty.model.conditions",
    "Event": "blockpty.model.events",
    "CommandFailed": "blockpty.model.unmet",
    "EndOfFile": "blockpty.model.unmet",
    "InputPrompt": "blockpty.model.unmet",
    "NotMatched": "blockpty.model.unmet",
    "PasswordPrompt": "blockpty.model.unmet",
    "Timeout": "blockpty.model.unmet",
    "Engine": "blockpty.ops.engine",
    "AnyConversation": "blockpty.api.any_conversation",
    "Progress": "blockpty.api.progress",
    "Conversation": "blockpty.runtime.conversation",
    "Client": "blockpty.surfaces.client",
    "RemoteConversation": "blockpty.surfaces.client",
    "run": "blockpty.sync",
}


if not TYPE_CHECKING:  # a type checker that saw this function would accept any name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "sync":
            return import_module("blockpty.sync")
        room = "blockpty.model.results" if name.endswith("Result") else "blockpty.errors"
        value: object = getattr(import_module(_ROOMS.get(name, room)), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
