"""Gate in front of all that the server answers: HTTP, WebSocket and MCP alike.

Pure ASGI, because a WebSocket must pass here too. In this order: the Host must be one of ours (a web page that had its
name pointed at this machine comes by another), the Origin must be one of ours if there is one, the body must have a
bounded size and be JSON, and a token must come with the request. An endpoint behind it finds the `Principal` in
`scope["state"]["principal"]`; what goes on for long asks `scope["state"]["renew"]()` now and then, which raises
Unauthorized once the token does not hold any more. Nothing behind the gate has run before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final
from urllib.parse import unquote

from msgspec.structs import replace

from blockpty.control.principals import Principal
from blockpty.errors import BadRequest, BlockptyError, Forbidden, SpoolError, Unauthorized
from blockpty.surfaces.access import AGENT_HEADER
from blockpty.surfaces.faults import status_of
from blockpty.surfaces.http.page import EMBED, is_page
from blockpty.surfaces.peers import FORWARDED
from blockpty.surfaces.tokens import TokenBook

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY: Final = 128 * 1024 * 1024  # a command of 16 MiB in which JSON escapes every byte
MAX_OPEN_BODY: Final = 4096  # of who has shown no token yet
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/docs", "/auth/token"})
PROTOCOL: Final = "blockpty.v1"
TOKEN_PROTOCOL: Final = "blockpty.token."
UNIX_ADDRESS: Final = "unix"  # where a caller at our unix socket is
UNIX_HOST: Final = "localhost"  # what clients call a server at the other end of a unix socket, which has no port

_HEADERS: Final = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]


class Guard:
    """The gate.

    Args:
        app: what is behind it.
        tokens: who is let in.
        hosts: values of the Host header that are ours, in lower case.
        origins: values of the Origin header that are ours.
        refused: called with the code of each refusal.
        entered: called with who is let in, and from which address.
        is_served: whether something would run for a request; without that, what its body is does not matter.
    """

    def __init__(
        self,
        app: App,
        tokens: TokenBook,
        *,
        hosts: Iterable[str],
        origins: Iterable[str],
        refused: Callable[[str], None] = lambda code: None,
        entered: Callable[[Principal, str], None] = lambda principal, address: None,
        is_served: Callable[[Scope], bool] = lambda scope: True,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origins)
        self._refused = refused
        self._entered = entered
        self._is_served = is_served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
        except BlockptyError as error:
            self._refused(error.code)
            await refuse(scope, receive, send, error)
            return
        if scope["type"] == "http":
            receive = _bounded(receive, _limit(scope))
        await self._app(scope, receive, _hardened(send))

    def _check(self, scope: Scope) -> None:
        headers = _Headers(scope)
        host = headers.only(b"host")
        if host is None or not (host.lower() in self._hosts or (host == UNIX_HOST and _is_unix(scope))):
            raise Forbidden(
                "the server does not go by the name in the Host header",
                hint="use 127.0.0.1 or localhost with the right port, or allow the name (allowed_hosts)",
            )
        origin = headers.only(b"origin")
        if origin is not None and origin not in self._origins:
            raise Forbidden("this web page may not call the server", hint="allow its origin (allowed_origins)")
        is_open_page = scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and is_page(scope["path"])
        # A link on another site may lead to the page, which says nothing without a token.
        leads_here = headers.only(b"sec-fetch-dest")
        is_link = is_open_page and (
            leads_here == "document" or (leads_here == "iframe" and scope["path"].startswith(EMBED))
        )
        if origin is None and not is_link and headers.only(b"sec-fetch-site") == "cross-site":
            raise Forbidden("another site's page may not call the server")
        if scope["type"] == "http":
            if _says_length_twice(scope):
                raise BadRequest("a request has either Content-Length or Transfer-Encoding")
            self._check_body(scope, headers)
            if scope["path"] in OPEN_PATHS or is_open_page:
                return
        token, from_page = _token(scope, headers)
        if from_page and origin is None:
            raise Forbidden(
                "a token in Sec-WebSocket-Protocol is for browsers, which send an Origin",
                hint="send it in the Authorization header",
            )
        state = scope.setdefault("state", {})
        state["renew"] = lambda: self._tokens.principal(token, time.time())
        principal = state["renew"]()
        typing = headers.only(FORWARDED.lower().encode())
        if principal.is_person and typing in ("user", "either"):
            principal = replace(principal, types_as=typing)
        agent = headers.only(AGENT_HEADER.lower().encode())
        state["principal"] = principal if agent is None else principal.as_agent(unquote(agent))
        client = scope.get("client")
        self._entered(state["principal"], client[0] if client and client[0] else UNIX_ADDRESS)

    def _check_body(self, scope: Scope, headers: _Headers) -> None:
        kind = (headers.only(b"content-type") or "").partition(";")[0].strip().lower()
        # Bodies come with POST only; with other methods a page has to ask first, or nothing is changed.
        if kind != "application/json" and scope["method"] == "POST" and self._is_served(scope):
            # A page can make a browser send other types to us without asking first.
            raise BadRequest(
                "the body must be JSON, said by Content-Type: application/json", details={"http_status": 415}
            )
        length = headers.only(b"content-length")
        limit = _limit(scope)
        if length is not None and length.isdigit() and int(length) > limit:
            raise too_large(limit)


def _says_length_twice(scope: Scope) -> bool:
    """Whether a proxy that goes by Content-Length would see another request than we do (RFC 9112, section 6.3)."""
    return {b"content-length", b"transfer-encoding"} <= {key for key, _ in scope["headers"]}


def _is_unix(scope: Scope) -> bool:
    server = scope.get("server")
    return server is not None and server[1] is None


class _Headers:
    """The headers of a request; one that decides may be there once only."""

    def __init__(self, scope: Scope) -> None:
        self._all: list[tuple[bytes, bytes]] = list(scope["headers"])

    def only(self, name: bytes) -> str | None:
        values = [value for key, value in self._all if key == name]
        if len(values) > 1:
            raise BadRequest(f"the header {name.decode()} came more than once")
        return values[0].decode("latin-1") if values else None

    def every(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for key, value in self._all if key == name]


def _limit(scope: Scope) -> int:
    return MAX_OPEN_BODY if scope["path"] in OPEN_PATHS else MAX_BODY


def too_large(limit: int) -> BadRequest:
    """Return the error for a body that is larger than this."""
    return BadRequest(f"the body is larger than {limit} bytes", details={"http_status": 413})


def _token(scope: Scope, headers: _Headers) -> tuple[str, bool]:
    """Return the token, and whether it came the way that only a page needs."""
    given = headers.only(b"authorization")
    if given is not None:
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthorized("Authorization must be `Bearer <token>`")
        return token.strip(), False
    if scope["type"] == "websocket":
        offered = [one.strip() for line in headers.every(b"sec-websocket-protocol") for one in line.split(",")]
        tokens = [one.removeprefix(TOKEN_PROTOCOL) for one in offered if one.startswith(TOKEN_PROTOCOL)]
        if len(tokens) == 1:
            return tokens[0], True
    raise Unauthorized(
        "the request came without a token", hint="send Authorization: Bearer with what is in <home>/server/token"
    )


def _bounded(receive: Receive, limit: int) -> Receive:
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise too_large(limit)
        return message

    return bounded


def _hardened(send: Send) -> Send:
    async def hardened(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {key for key, _ in message.get("headers", ())}
            message["headers"] = [*message.get("headers", ()), *(one for one in _HEADERS if one[0] not in present)]
        await send(message)

    return hardened


async def refuse(scope: Scope, receive: Receive, send: Send, error: BlockptyError) -> None:
    """Answer a request, or the handshake of a WebSocket, with an error in the one shape."""
    kind = "http"
    if scope["type"] == "websocket":
        message = await receive()
        if message["type"] != "websocket.connect":
            return
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 4000 + status_of(error) % 1000, "reason": error.code})
            return
        kind = "websocket.http"
    body = json.dumps(error.to_dict()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *_HEADERS]
    if _says_length_twice(scope):
        # What follows on the connection may be part of the body for others.
        headers.append((b"connection", b"close"))
    if isinstance(error, Unauthorized):
        headers.append((b"www-authenticate", b'Bearer realm="blockpty"'))
    status = 500 if isinstance(error, SpoolError) else status_of(error)
    await send({"type": f"{kind}.response.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": body})
