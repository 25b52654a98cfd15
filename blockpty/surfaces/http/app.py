"""Application of the server: a route for each operation of the table, and the few other paths.

    /v1/...                       the operations
    /v1/conversations/{id}/stream the bytes of a span, as they are
    /v1/ws  /v1/feed              the list of conversations as it changes, over a WebSocket and as server-sent events
    /v1/conversations/{id}/ws     a terminal over a WebSocket, and /replay what was recorded of it
    /mcp                          the operations as MCP tools
    /openapi.json  /docs  /metrics  /healthz  /readyz
    /auth/code  /auth/token       a one-time code for a browser, and the token it is changed into
    /  /c/...  /search  /assets   the page, without a token
    /embed/...                    one terminal, to be framed by other pages
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route, WebSocketRoute

from blockpty import __version__
from blockpty.control import principals
from blockpty.control.principals import Principal
from blockpty.errors import BadRequest, BlockptyError, Forbidden, NotFound
from blockpty.ops.operation import Shape
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces import access
from blockpty.surfaces.faults import status_of
from blockpty.surfaces.http.calls import CallEndpoint, ClientGone, body, defect
from blockpty.surfaces.http.docs_page import DOCS_POLICY, docs_page
from blockpty.surfaces.http.feed import FeedEndpoint
from blockpty.surfaces.http.guard import App, Guard, Receive, Scope, Send
from blockpty.surfaces.http.metrics import CONTENT_TYPE, Metrics
from blockpty.surfaces.http.openapi import openapi
from blockpty.surfaces.http.page import BuiltPage
from blockpty.surfaces.http.replay import ReplayEndpoint
from blockpty.surfaces.http.socket import SocketEndpoint
from blockpty.surfaces.http.span import SpanEndpoint
from blockpty.surfaces.http.sse import EventsEndpoint, HomeFeedEndpoint
from blockpty.surfaces.tokens import TokenBook

if TYPE_CHECKING:
    from starlette.requests import Request


_READY_SECONDS: Final = 2.0


def application(
    engine: Any,
    tokens: TokenBook,
    metrics: Metrics,
    *,
    hosts: Iterable[str],
    origins: Iterable[str],
    frames: Iterable[str] = (),
    mcp: App | None = None,
    elsewhere: access.PeerForwarder | None = None,
    stop: Callable[[], None] | None = None,
    entered: Callable[[Principal, str], None] = lambda principal, address: None,
) -> App:
    """Return the application with the gate in front of it.

    Args:
        engine: the engine of one home.
        tokens, metrics: who may call, and what is counted.
        hosts, origins: the values of these headers that are ours.
        frames: origins of pages that may frame a terminal.
        mcp: what answers at /mcp.
        elsewhere: asked for conversations of other hosts.
        stop: ends the server; without it `/admin/stop` is not there.
        entered: called with who is let in, and from which address.
    """
    beside = _AdminEndpoints(engine, tokens, metrics, stop)
    paths: dict[str, dict[str, App]] = {}
    for operation in OPERATIONS.values():
        method, path = operation.route
        endpoint = EventsEndpoint if operation.shape is Shape.STREAM else CallEndpoint
        paths.setdefault(path, {})[method] = endpoint(operation, engine, metrics, elsewhere)
    routes: list[BaseRoute] = [Route(path, _ByMethod(ways), methods=[*ways]) for path, ways in paths.items()]
    routes += [
        WebSocketRoute("/v1/ws", FeedEndpoint(engine, metrics)),
        Route("/v1/feed", HomeFeedEndpoint(engine, metrics), methods=["GET"]),
        WebSocketRoute("/v1/conversations/{conversation_id}/ws", SocketEndpoint(engine, metrics, elsewhere)),
        WebSocketRoute("/v1/conversations/{conversation_id}/replay", ReplayEndpoint(engine, metrics, elsewhere)),
        Route("/v1/conversations/{conversation_id}/stream", SpanEndpoint(engine, metrics, elsewhere), methods=["GET"]),
        Route("/openapi.json", beside.openapi),
        Route("/metrics", beside.metrics),
        Route("/docs", beside.docs),
        Route("/healthz", beside.health),
        Route("/readyz", beside.ready),
        Route("/auth/code", beside.code, methods=["POST"]),
        Route("/auth/token", beside.token, methods=["POST"]),
    ]
    routes += BuiltPage(frames=frames).routes()
    if stop is not None:
        routes.append(Route("/admin/stop", beside.stop, methods=["POST"]))
    if mcp is not None:
        # An instance, not a function: Starlette takes it for the ASGI application that it is.
        routes.append(Route("/mcp", mcp, methods=["GET", "POST", "DELETE"]))
    handlers: Any = {HTTPException: _http_problem, BlockptyError: _problem, ClientGone: _gone, Exception: _defect}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(
        app,
        tokens,
        hosts=hosts,
        origins=origins,
        entered=entered,
        refused=lambda code: metrics.refused.labels(code).inc(),
        is_served=lambda scope: any(route.matches(scope)[0] is Match.FULL for route in routes),
    )


class _ByMethod:
    """All operations at one path: with a route for each, the answer to another method would name only one of them."""

    def __init__(self, endpoints: Mapping[str, App]) -> None:
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await self._endpoints[method](scope, receive, send)


async def _http_problem(_request: Request, problem: HTTPException) -> Response:
    headers = dict(problem.headers or {})
    error: BlockptyError
    if problem.status_code == 404:
        error = NotFound("there is nothing at this path", hint="GET /openapi.json says what there is")
    else:
        error = BadRequest(str(problem.detail), details={"http_status": problem.status_code})
    return JSONResponse(error.to_dict(), problem.status_code, headers)


async def _problem(_request: Request, error: BlockptyError) -> Response:
    return JSONResponse(error.to_dict(), status_of(error))


async def _gone(_request: Request, _problem: Exception) -> Response:
    # Goes nowhere; but without an answer each request that was broken off would fill the log with a trace.
    return Response(status_code=400)


async def _defect(_request: Request, problem: Exception) -> Response:
    return JSONResponse(defect(problem).to_dict(), 500)


class _AdminEndpoints:
    """The paths that are no operations."""

    def __init__(self, engine: Any, tokens: TokenBook, metrics: Metrics, stop: Callable[[], None] | None) -> None:
        self._engine = engine
        self._tokens = tokens
        self._metrics = metrics
        self._stop = stop

    async def openapi(self, _request: Request) -> Response:
        return JSONResponse(openapi())

    async def health(self, _request: Request) -> Response:
        # Needs no token, so it says nothing that a stranger could use.
        return JSONResponse({"ok": True})

    async def ready(self, _request: Request) -> Response:
        # The host has the terminals: without it no shell can be opened. Without a token no more is said.
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await self._engine.live()
        except (BlockptyError, TimeoutError):
            return JSONResponse({"ok": False}, 503)
        return JSONResponse({"ok": True})

    async def docs(self, _request: Request) -> Response:
        return HTMLResponse(docs_page(), headers={"Content-Security-Policy": DOCS_POLICY})

    async def metrics(self, request: Request) -> Response:
        _of_all(request, principals.Scope.READ)
        self._metrics.conversations.set(len(await self._engine.live()))
        return Response(self._metrics.render(), media_type=CONTENT_TYPE)

    async def code(self, request: Request) -> Response:
        principal: Principal = request.scope["state"]["principal"]
        code = self._tokens.make_code(principal, time.time())
        return JSONResponse({"ok": True, "code": code, "expires_seconds": TokenBook.CODE_SECONDS})

    async def token(self, request: Request) -> Response:
        content = await body(request.receive)
        code = content.get("code")
        if not isinstance(code, str) or set(content) != {"code"}:
            raise BadRequest('the body must be {"code": "..."}')
        token = self._tokens.change_code(code, time.time())
        principal = self._tokens.principal(token, time.time())
        # What the page then offers; what it may do is decided here, with each request.
        may = {"name": principal.name, "scope": principal.scope.name.lower(), "person": principal.is_person}
        return JSONResponse({"ok": True, "token": token, "expires_seconds": TokenBook.BROWSER_SECONDS, **may})

    async def stop(self, request: Request) -> Response:
        _of_all(request, principals.Scope.ADMIN)
        if self._stop is not None:
            # After the answer has gone out.
            asyncio.get_running_loop().call_later(0.05, self._stop)
        return JSONResponse({"ok": True, "version": __version__})


def _of_all(request: Request, needed: principals.Scope) -> None:
    """Raise Forbidden for who may not see every conversation."""
    principal: Principal = request.scope["state"]["principal"]
    if principal.scope < needed or principal.conversations is not None:
        raise Forbidden(f"this needs a token with the scope {needed.name.lower()} for all conversations")
