"""Password prompts: the person at the client is asked to type it elsewhere, and the wait goes on.

Rules of this file: no secret passes through here; MCP forbids asking for one in a form, and the model would see it. The
person types it in a terminal of their own and says when that is done; without a client that can ask, or without a yes,
the wait ends with its reason `password`, as on every other surface.

A client either answers while the call waits (protocol versions up to 2025-11-25), or gets the question as the answer,
with a state to bring along, and makes the call again (2026-07-28). That state holds the result so far; the SDK seals it
for the same principal, tool and arguments.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from msgspec.structs import replace

from blockpty.model.block import Block
from blockpty.model.results import Result, RunResult, WaitResult
from blockpty.surfaces.mcp.approvals import can_elicit
from blockpty.surfaces.mcp.bounds import block_output
from blockpty.surfaces.mcp.calling import Call
from blockpty.surfaces.sanitize import one_line

MAX_QUESTIONS: Final = 3
STATE_SECONDS: Final = 3600.0
"""How long a person may take where the question is an answer of its own."""
_KEY: Final = "password"
_FORM: Final[dict[str, Any]] = {"type": "object", "properties": {}}


async def run_and_ask(call: Call, operation: str, params: Mapping[str, Any]) -> Result | InputRequiredResult:
    """Call `run` or `wait_for`; while its program waits for a password, ask and wait on for the rest of the time."""
    timeout_ms = int(params["timeout_ms"])
    asked, goes_on = 0, True
    if call.state is None:
        result, left_ms = await _timed(call, operation, params, timeout_ms, timeout_ms)
    else:
        result, left_ms, asked = _restored(call.state)
        goes_on = _accepted(call)
        if goes_on:
            result, left_ms = await _wait_on(call, operation, params, result, left_ms)
    while goes_on and _paused(result) and asked < MAX_QUESTIONS and can_elicit(call.context):
        asked += 1
        if not call.context.session.can_send_request:
            question = ElicitRequest(params=_question(params))
            return InputRequiredResult(input_requests={_KEY: question}, request_state=_stored(result, left_ms, asked))
        goes_on = await _asked(call, params)
        if goes_on:
            result, left_ms = await _wait_on(call, operation, params, result, left_ms)
    return result


async def _asked(call: Call, params: Mapping[str, Any]) -> bool:
    """Ask now; return whether the answer is yes."""
    message = _question(params).message
    try:
        answer = await call.context.session.elicit_form(message, _FORM, related_request_id=call.context.request_id)
    except MCPError:
        return False  # the client said that it can ask, but it cannot
    return answer.action == "accept"


def _paused(result: Result) -> bool:
    return isinstance(result, (RunResult, WaitResult)) and result.reason == "password"


def _accepted(call: Call) -> bool:
    answer = (call.answers or {}).get(_KEY)
    return isinstance(answer, ElicitResult) and answer.action == "accept"


def _question(params: Mapping[str, Any]) -> ElicitRequestFormParams:
    conversation_id = one_line(str(params["conversation_id"]))
    return ElicitRequestFormParams(
        message=f"The program in the terminal {conversation_id} waits for a password. Type it in a terminal of your "
        f"own, not here: blockpty send {conversation_id} --hidden\nChoose accept when that is done.",
        requested_schema=_FORM,
    )


async def _timed(
    call: Call, operation: str, params: Mapping[str, Any], left_ms: int, timeout_ms: int
) -> tuple[Result, int]:
    """Call an operation for at most the time that is left; return its result and what is left then."""
    begin = _now()
    waited_ms = timeout_ms - left_ms
    result = await call.run(operation, {**params, "timeout_ms": left_ms}, waited_ms=waited_ms)
    return result, max(0, left_ms - round((_now() - begin) * 1000))


async def _wait_on(
    call: Call, operation: str, params: Mapping[str, Any], result: Result, left_ms: int
) -> tuple[Result, int]:
    timeout_ms = int(params["timeout_ms"])
    if isinstance(result, WaitResult):
        return await _timed(call, operation, {**params, "from_cursor": result.cursor}, left_ms, timeout_ms)
    if not isinstance(result, RunResult):
        return result, left_ms
    conversation_id = params["conversation_id"]
    rest = {"conversation_id": conversation_id, "match": {"token": "PROMPT"}, "from_cursor": result.cursor}
    waited, left_ms = await _timed(call, "wait_for", rest, left_ms, timeout_ms)
    found = await call.caller.call("block", {"conversation_id": conversation_id, "block_id": result.block.block_id})
    block = found.to_dict()["block"]
    output, whole, truncated = await block_output(
        call.caller, conversation_id, block, int(params["max_bytes"]), params["view"]
    )
    ended = waited.to_dict()
    return replace(
        result, block=Block.from_dict(block), output=output, output_bytes=whole, truncated=truncated,
        timed_out=ended["reason"] == "timeout", reason=ended["reason"], cursor=ended["cursor"],
        tty=None if ended["matched"] else ended["tty"], foreground=ended["foreground"], hint=ended["hint"],
    ), left_ms  # fmt: skip


def _stored(result: Result, left_ms: int, asked: int) -> str:
    return json.dumps({"result": result.to_dict(), "left_ms": left_ms, "asked": asked})


def _restored(state: str) -> tuple[Result, int, int]:
    stored = json.loads(state)
    fields = {name: value for name, value in stored["result"].items() if name != "ok"}
    result: Result
    if "block" in fields:
        result = RunResult(**{**fields, "block": Block.from_dict(fields["block"])})
    else:
        result = WaitResult(**{**fields, "span": tuple(fields["span"]) if fields["span"] else None})
    return result, stored["left_ms"], stored["asked"]


def _now() -> float:
    return asyncio.get_running_loop().time()
