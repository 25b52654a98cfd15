"""Tool `pty_launch`: a program in a terminal with one call, under the name and parameters that apchat's users know.

It is `open`, where the conversation is not live yet, and then `exec_interactive`; it has no rule of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import Field

from blockpty.errors import BlockptyError, NotFound
from blockpty.model.results import OpenResult
from blockpty.ops.operation import Effect, Operation, Shape
from blockpty.ops.requests import Columns, Command, ConversationId, Request, Rows
from blockpty.surfaces.mcp.calling import Call
from blockpty.surfaces.mcp.schemas import outcome_schema


class LaunchRequest(Request):
    """Start a program on a terminal, opening a conversation for it when needed; without a command, only the shell.

    The program is an interactive session: talk to it with pty_send or pty_send_keys and pty_wait_for. To run a command
    that ends by itself, pty_run is simpler.
    """

    command: Command | None = Field(default=None, description="What to start; by default only the shell.")
    working_dir: str | None = Field(
        default=None, min_length=1, description="Directory to start in; by default the current one."
    )
    cols: Columns = 80
    rows: Rows = 24
    conversation_id: ConversationId | None = Field(
        default=None, description="Conversation to use; opened when it is not live, made up when not given."
    )


_INTEGER: Final = {"type": "integer"}
_TEXT: Final = {"type": "string"}
_TEXT_OR_NONE: Final = {"anyOf": [_TEXT, {"type": "null"}]}
LAUNCHED: Final = outcome_schema(
    {
        "conversation_id": _TEXT,
        "session_id": _TEXT_OR_NONE,
        "block_id": _TEXT_OR_NONE,
        "command": _TEXT_OR_NONE,
        "working_dir": _TEXT_OR_NONE,
        "size": {"type": "array", "items": _INTEGER, "description": "Columns and rows."},
        "cursor": _INTEGER,
    },
    ["conversation_id", "session_id", "block_id", "command", "working_dir", "size", "cursor"],
)


async def launch(call: Call) -> dict[str, Any]:
    """Answer `pty_launch`; raises BlockptyError."""
    request = cast("LaunchRequest", LAUNCH.parse(call.params))
    # Opened already before a person was asked, if this call is made again.
    name = request.conversation_id or (call.resumed.conversation_id if call.resumed is not None else None)
    live = await _live(call, name)
    if live is None:
        opening = {
            "conversation_id": name,
            "cwd": request.working_dir,
            "cols": request.cols,
            "rows": request.rows,
        }
        begun = (await call.run("open", opening)).to_dict()
    else:
        begun = live
    started: Mapping[str, Any] = {"session_id": None, "block_id": None, "cursor": begun["cursor"]}
    if request.command is not None:
        command = {"conversation_id": begun["conversation_id"], "command": request.command}
        if live is not None:
            command["cwd"] = request.working_dir
        try:
            started = (await call.run("exec_interactive", command)).to_dict()
        except BlockptyError as error:
            error.details.setdefault("conversation_id", begun["conversation_id"])
            raise
    status = (await call.run("status", {"conversation_id": begun["conversation_id"]})).to_dict()
    return {
        "ok": True,
        "conversation_id": begun["conversation_id"],
        "session_id": started["session_id"],
        "block_id": started["block_id"],
        "command": request.command,
        # The shell tells where it is only at its next prompt.
        "working_dir": request.working_dir or status["cwd"],
        "size": [status["cols"], status["rows"]],
        "cursor": started["cursor"],
    }


async def _live(call: Call, conversation_id: str | None) -> dict[str, Any] | None:
    """Return the status of a conversation with a running shell, or None."""
    if conversation_id is None:
        return None
    try:
        status = (await call.run("status", {"conversation_id": conversation_id})).to_dict()
    except NotFound:
        return None
    return None if status["mode"] == "exited" else status


LAUNCH: Final = Operation("pty_launch", LaunchRequest, OpenResult, Effect.LIFECYCLE, Shape.CALL, ("POST", ""), ())
"""Not in the table, which holds what every surface has; here for its way to refuse parameters."""
