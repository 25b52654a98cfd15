"""Answers to calls of tools.

Rules of this file: what a caller did wrong is a result with `isError`, in the one error shape; only a tool that does
not exist is an error of the protocol.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import Any, Final

from mcp.client.session import DEFAULT_CLIENT_INFO
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, InputRequiredResult, TextContent
from msgspec.structs import replace

from blockpty.errors import BadRequest, BlockptyError, InternalError
from blockpty.surfaces.mcp.approvals import ApprovalQuestions, InputNeeded
from blockpty.surfaces.mcp.bounds import fit
from blockpty.surfaces.mcp.calling import Call, CallerOf, Context
from blockpty.surfaces.mcp.own_conversation import OwnConversations
from blockpty.surfaces.mcp.schemas import NOTE
from blockpty.surfaces.mcp.text import describe, describe_error
from blockpty.surfaces.mcp.tools import PtyTool
from blockpty.surfaces.mcp.toolsets import ToolSet

logger = logging.getLogger(__name__)

_UNNAMED: Final = DEFAULT_CLIENT_INFO.name
_PRINTED: Final = frozenset({"output", "data", "data_b64", "text", "before", "content"})
"""Fields of results that hold what a program printed."""
_OPENING: Final = frozenset({"pty_open", "pty_launch"})
"""Tools whose conversation is the session's own from then on."""


class _Structured(Enum):
    """Structured content beside the text of a result."""

    WHOLE = "whole"
    """All of it: the tool was listed with a schema of its results."""
    FACTS = "facts"
    """All but what a program printed, which is in the text."""
    NOTHING = "nothing"

    @classmethod
    def of(cls, tools: ToolSet, name: str, context: Context) -> _Structured:
        """Return what a client gets for a tool.

        Several programs for agents hand their model the structured content in place of the text, and others hand it
        both. So without a promise only a program that has not named itself, which is a script, gets any.
        """
        if tools.promises(name):
            return cls.WHOLE
        client = context.session.client_params
        return cls.FACTS if client is not None and client.client_info.name == _UNNAMED else cls.NOTHING


class ToolCalls:
    """Answers the calls that come to one server."""

    def __init__(self, caller_of: CallerOf, questions: ApprovalQuestions, own: OwnConversations) -> None:
        """Make it.

        Args:
            caller_of: gives the caller of a request; raises BlockptyError when there is none.
            questions: to the person at the client.
            own: the conversations that are meant where none is named.
        """
        self._caller_of = caller_of
        self._questions = questions
        self._own = own

    async def answer(
        self, tools: ToolSet, context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Answer a call; raises MCPError for a tool that is not offered, and for nothing else."""
        tool = tools.find(params.name)
        if tool is None:
            name = params.name[:60]
            error = BadRequest(
                f"no tool is called {name!r} here",
                hint=f"one of {', '.join(sorted(tools.callable))}; the server's --tools says which are offered",
            )
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name}", data=error.to_dict())
        structured = _Structured.of(tools, params.name, context)
        try:
            answers, state = params.input_responses, params.request_state
            resumed = await self._questions.resumed(context, state, answers)
            state = state if resumed is None else None
            arguments = params.arguments or {}
            caller = self._caller_of(context)
            call = Call(context, caller, arguments, answers, state, self._questions, resumed)
            return await self._answer(tool, call, structured=structured)
        except InputNeeded as needed:
            return needed.result
        except BlockptyError as error:
            return _failure(error, structured=structured)
        except Exception as error:
            logger.exception("%s failed", params.name)
            hint = "please report this defect of blockpty"
            return _failure(InternalError(f"{type(error).__name__}: {error}", hint=hint), structured=structured)

    async def _answer(
        self, tool: PtyTool, call: Call, *, structured: _Structured
    ) -> CallToolResult | InputRequiredResult:  # fmt: skip
        opened = None
        if tool.own and "conversation_id" not in call.params:
            name, is_new = await self._own.given(call, opens=tool.opens)
            call = replace(call, params={**call.params, "conversation_id": name})
            opened = name if is_new else None
        answer = await tool.answer(call)
        if isinstance(answer, InputRequiredResult):
            return answer
        payload, asked = answer
        if tool.listed.name in _OPENING:
            self._own.opened(call.context, payload["conversation_id"])
        if opened is not None:
            note = f"the terminal {opened} was opened for this session, and is meant where no other is named"
            payload = {**payload, NOTE: "; ".join(filter(None, (note, payload.get(NOTE))))}
        return _result(payload, describe(tool.described_as, payload, asked), structured=structured)


def _result(
    payload: dict[str, Any], text: str, *, structured: _Structured, is_error: bool = False
) -> CallToolResult:  # fmt: skip
    found = None
    if structured is _Structured.WHOLE:
        found = payload
    elif structured is _Structured.FACTS:
        found = {name: value for name, value in payload.items() if name not in _PRINTED}
    return CallToolResult(content=[TextContent(text=text)], structured_content=found, is_error=is_error)


def _failure(error: BlockptyError, *, structured: _Structured) -> CallToolResult:
    payload = fit(error.to_dict())
    return _result(payload, describe_error(payload["error"]), structured=structured, is_error=True)
