"""HTTP connection of uvicorn, with three changes that it has no setting for.

What is no HTTP at all is refused in the one error shape as well; so is a request whose length is said twice, which a
proxy in front may see as another one. And a client must say within `HEAD_SECONDS` what it wants; those that have shown
no token are bounded, because every connection is a descriptor that others lack.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from blockpty.errors import BadRequest
from blockpty.surfaces.http.accepting import Strangers

HEAD_SECONDS: Final = 10.0
_EVERYDAY: Final = (
    "ASGI callable returned without completing handshake.",  # a WebSocket that was refused
    "Invalid HTTP request received.",
    "Unsupported upgrade request.",
)


_strangers = Strangers()


def is_worth_logging(record: logging.LogRecord) -> bool:
    """Return whether a record of uvicorn's is not one that every stranger can write as often as he likes."""
    return record.msg not in _EVERYDAY


class Connection(H11Protocol):
    """HTTP/1.1 on one transport."""

    _waiting: asyncio.TimerHandle | None = None
    _known = False

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait_for_head()
        bound = transport.get_extra_info("socket")
        if bound is None or bound.family != socket.AF_UNIX:
            _strangers.add(self)

    @property
    def known(self) -> bool:
        """Whether a token has come over it that holds."""
        # The gate leaves the principal in the scope of the last request.
        scope: Any = self.scope
        self._known = self._known or (bool(scope) and "principal" in scope.get("state", {}))
        return self._known

    def abort(self) -> None:
        """End it at once."""
        self.transport.abort()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over; the gate has it answered at once."""
        _strangers.remove(self)
        super().handle_websocket_upgrade(event)

    def data_received(self, data: bytes) -> None:
        """Take what came; an unfinished head does not buy more time."""
        _ = self.known  # before another request takes the scope's place
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait_for_head()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer too."""
        self._stop_waiting()
        _strangers.remove(self)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, and close."""
        error = BadRequest("the request is not one of HTTP/1.1", hint="one Host header is part of it")
        body = json.dumps(error.to_dict())
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        try:
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=body.encode()),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            pass  # an answer is on its way already; all that is left is to close
        self.transport.close()

    def _wait_for_head(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
