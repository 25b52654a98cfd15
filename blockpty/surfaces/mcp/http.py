"""Streamable HTTP transport of MCP, as an ASGI application for one path of the server.

Rules of this file: who calls has been found out before a request comes here, and stands in `scope["state"]`; without a
principal there is no answer. A session belongs to the principal that began it: its id alone opens nothing
(CVE-2026-52869). Host and Origin are checked here again, because the SDK checks only what it is configured to check.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from blockpty.control.principals import Principal
from blockpty.errors import Unauthorized
from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp.approvals import Person
from blockpty.surfaces.mcp.calling import Context
from blockpty.surfaces.mcp.own_conversation import OwnConversations
from blockpty.surfaces.mcp.server import build_server
from blockpty.surfaces.mcp.subscriptions import ListenStreams
from blockpty.surfaces.mcp.toolsets import ToolSet, tool_set

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_SESSIONS: Final = 1024
# Of one token; a further one ends the one that was used longest ago.
SESSIONS_EACH: Final = 64
_SESSION: Final = b"mcp-session-id"
IDLE_SECONDS: Final = 1800.0


class StreamableHttp:
    """The app and what must run around it.

    Attributes:
        app: to be mounted at a path, `/mcp`; it does not look at the path, so that `Route("/mcp", app)` and
            `Mount("/mcp", app)` both do.
    """

    app: ASGIApp

    def __init__(
        self,
        caller_of: Callable[[Principal], Caller],
        *,
        allowed_hosts: Sequence[str],
        allowed_origins: Sequence[str] = (),
        person_of: Callable[[Principal], Caller] | None = None,
    ) -> None:
        """Make the app.

        Args:
            caller_of: gives the caller for the principal of a request.
            allowed_hosts: exact values of the Host header, with the port, such as `127.0.0.1:7717`.
            allowed_origins: exact values of the Origin header; a request without one is no browser's.
            person_of: gives the caller for the principal of a person who answers at the client; None: none is asked.
        """

        def caller(context: Context) -> Caller:
            request = context.request
            if not isinstance(request, Request):
                raise Unauthorized("this call came without its HTTP request")
            return caller_of(_principal(request.scope))

        def person(context: Context) -> Person | None:
            request = context.request
            if person_of is None or not isinstance(request, Request):
                return None
            principal = _principal(request.scope)
            if not principal.is_person:
                return None
            answering = replace(principal.as_person(), name=f"{principal.name}/mcp elicitation")
            return Person(person_of(answering), caller_of(principal).principal.name)

        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=list(allowed_hosts),
            allowed_origins=list(allowed_origins),
        )
        self._own, self._caller_of = OwnConversations(), caller_of
        self._streams = ListenStreams()
        self._sessions = StreamableHTTPSessionManager(
            build_server(caller, person, tools_of=_tools, own=self._own, streams=self._streams),
            security_settings=security,
            max_sessions=MAX_SESSIONS,
            session_idle_timeout=IDLE_SECONDS,
        )
        self._inner = AuthContextMiddleware(StreamableHTTPASGIApp(self._sessions))
        # The sessions of each principal, used longest ago first.
        self._used: dict[Principal, OrderedDict[bytes, None]] = {}

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                principal = _principal(scope)
            except Unauthorized as error:
                response = Response(json.dumps(error.to_dict()), 401, media_type="application/json")
                await response(scope, receive, send)
                return
            await self._pass(principal, {**scope, "user": _user(principal)}, receive, send)

        self.app = app

    async def _pass(self, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on; where it began a session too many, another of the same principal ends."""
        used = self._used.setdefault(principal, OrderedDict())
        known = next((value for name, value in scope["headers"] if name == _SESSION), None)
        if known is not None and known in used:
            used.move_to_end(known)
            if scope["method"] == "DELETE":
                del used[known]
                await self._own.ended(known.decode("latin-1"), self._caller_of(principal))

        async def noting(message: Message) -> None:
            if known is None and message["type"] == "http.response.start" and message["status"] < 400:
                for name, value in message.get("headers", ()):
                    if name.lower() == _SESSION:
                        used[value] = None
            await send(message)

        await self._inner(scope, receive, noting)
        while len(used) > SESSIONS_EACH:
            oldest, _ = used.popitem(last=False)
            await self._own.ended(oldest.decode("latin-1"), self._caller_of(principal))
            await self._end(scope, oldest)

    async def _end(self, scope: Scope, session: bytes) -> None:
        """End a session as its client would."""
        headers = [one for one in scope["headers"] if one[0] in (b"host", b"origin", b"authorization")]
        ending = {**scope, "method": "DELETE", "headers": [*headers, (_SESSION, session)]}

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            """Whether it had ended already does not matter."""

        await self._inner(ending, receive, send)

    def end_streams(self) -> None:
        """End the streams of clients that listen, which would keep a server that stops."""
        self._streams.close()

    def run(self) -> AbstractAsyncContextManager[None]:
        """Return what must be entered before the first request, and left after the last; once."""
        return self._sessions.run()


def _tools(context: Context) -> ToolSet:
    """Return the tools that a client's URL asks for, such as `/mcp?tools=all`; raises BadRequest."""
    request = context.request
    choice = request.query_params.get("tools", "core") if isinstance(request, Request) else "core"
    return tool_set(choice)


def _principal(scope: Scope) -> Principal:
    principal = scope.get("state", {}).get("principal")
    if not isinstance(principal, Principal):
        raise Unauthorized("no token came with the request", hint="send Authorization: Bearer ...")
    return principal


def _user(principal: Principal) -> AuthenticatedUser:
    """Return the principal as the SDK knows one: it holds sessions, and calls made anew, to who began them."""
    rights: dict[str, Any] = {"scope": principal.scope.name, "conversations": None}
    if principal.conversations is not None:
        rights["conversations"] = sorted(principal.conversations)
    subject = json.dumps(rights)
    return AuthenticatedUser(AccessToken(token="", client_id=principal.name, scopes=[], subject=subject))
