"""MCP server without a transport: requests of the protocol on one side, a Caller on the other.

The SDK's low-level server is used: tools are made from our table, not from Python functions. Each request asks anew who
makes it, so that a session never has more rights than the token of this very request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from blockpty import __version__
from blockpty.errors import BlockptyError
from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp import prompts, resources, subscriptions, tools
from blockpty.surfaces.mcp.answering import ToolCalls
from blockpty.surfaces.mcp.approvals import ApprovalQuestions, PersonOf
from blockpty.surfaces.mcp.calling import CallerOf, Context
from blockpty.surfaces.mcp.own_conversation import OwnConversations
from blockpty.surfaces.mcp.password import STATE_SECONDS
from blockpty.surfaces.mcp.toolsets import ToolSet, tool_set

NAME = "blockpty"


def build_server(
    caller_of: CallerOf,
    person_of: PersonOf | None = None,
    *,
    tools_of: Callable[[Context], ToolSet] | None = None,
    own: OwnConversations | None = None,
    streams: subscriptions.ListenStreams | None = None,
) -> Server[Any]:
    """Return the server; serve it with stdio.py or http.py.

    Args:
        caller_of: gives the caller of a request; raises BlockptyError when there is none.
        person_of: finds the person at the client of a request, who is asked for approvals; None: no person is.
        tools_of: gives the tools that are offered to a request; raises BlockptyError; by default all.
        own: knows the conversations that are meant where none is named.
        streams: has the streams of clients that listen, for who ends them.
    """
    every = tool_set("all")
    streams = streams or subscriptions.ListenStreams()
    calls = ToolCalls(caller_of, ApprovalQuestions(person_of), own or OwnConversations())

    def offered(context: Context) -> ToolSet:
        try:
            return every if tools_of is None else tools_of(context)
        except BlockptyError as error:
            raise MCPError(code=INVALID_REQUEST, message=error.message, data=error.to_dict()) from None

    def caller(context: Context) -> Caller:
        try:
            return caller_of(context)
        except BlockptyError as error:
            raise MCPError(code=INVALID_REQUEST, message=error.message, data=error.to_dict()) from None

    async def list_tools(context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(offered(context).listed))

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        return await calls.answer(offered(context), context, params)

    async def list_resources(context: Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        return await resources.list_resources(caller(context))

    async def list_templates(_context: Context, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return resources.listed_templates()

    async def read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await resources.read_resource(caller(context), params)

    async def subscribe(context: Context, params: SubscribeRequestParams) -> EmptyResult:
        await subscriptions.subscribe(caller(context), context, params.uri)
        return EmptyResult()

    async def unsubscribe(context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        await subscriptions.unsubscribe(context, params.uri)
        return EmptyResult()

    async def listen(context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        return await streams.listen(caller(context), context, params)

    async def list_prompts(_context: Context, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        return prompts.listed_prompts()

    async def get_prompt(_context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        return prompts.prompt(params)

    server: Server[Any] = Server(
        NAME,
        version=__version__,
        instructions=prompts.INSTRUCTIONS,
        get_tool_input_schema=tools.input_schema_of,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=listen,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    # What a client brings along to a call it makes anew was written by us, for it and for this call, or is refused.
    security = RequestStateSecurity.ephemeral(ttl=STATE_SECONDS)
    server.middleware.append(RequestStateBoundary(security, default_audience=NAME))
    return server
