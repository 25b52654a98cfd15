"""Runs a real shell for your program: exact output and exit status of each command, and waits for prompts and text.

A first session:

    import asyncio
    import blockpty

    async def main() -> None:
        async with blockpty.Engine() as engine:
            conversation = await engine.open()
            result = await conversation.run("make test", timeout_ms=60_000)
            print(result.exit_status, result.output)

    asyncio.run(main())

This file holds the public names and nothing else. They are looked up at first use, so that `import blockpty` costs
next to nothing and the small host processes, which need neither asyncio nor any library, do not pay for it. Rooms
inside the package import each other directly and never this file. tests/test_exports.py pins all of this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from blockpty.ops.engine import Engine
    from blockpty.runtime.conversation import Conversation
    from blockpty.surfaces.client import Client

__version__ = "0.1.0"

__all__ = [
    "ApprovalDenied",
    "ApprovalRequired",
    "ArchiveUnreachable",
    "BadCondition",
    "BadCursor",
    "BadRequest",
    "BlockptyError",
    "Busy",
    "Client",
    "ConnectionLost",
    "Conversation",
    "Engine",
    "Exited",
    "Forbidden",
    "Halted",
    "InteractiveSessionActive",
    "InternalError",
    "LineTooLong",
    "NoPrompt",
    "NoSession",
    "NotFound",
    "Principal",
    "PtyLimit",
    "RequestError",
    "SessionLimit",
    "SpawnFailed",
    "SpoolCorrupt",
    "SpoolError",
    "SpoolVersion",
    "Stale",
    "StorageFull",
    "TerminalError",
    "Unauthorized",
    "UserInControl",
    "__version__",
    "acting",
]

_ROOMS = {
    "Principal": "blockpty.control.principals",
    "acting": "blockpty.control.principals",
    "Client": "blockpty.surfaces.client",
    "Conversation": "blockpty.runtime.conversation",
    "Engine": "blockpty.ops.engine",
}


if not TYPE_CHECKING:  # a type checker that saw this function would accept any name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(_ROOMS.get(name, "blockpty.errors")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
