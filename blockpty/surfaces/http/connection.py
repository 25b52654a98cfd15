"""One connection of uvicorn's, with two things changed that it has no setting for.

What is no HTTP at all is refused in the one error shape as well; and whoever connects must say within `HEAD_SECONDS`
what it wants, since before that nobody has shown a token, and every connection is a descriptor that others lack.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from blockpty.errors import BadRequest

HEAD_SECONDS: Final = 20.0
_EVERYDAY: Final = (
    "ASGI callable returned without completing handshake.",  # a WebSocket that was refused
    "Invalid HTTP request received.",
    "Unsupported upgrade request.",
)


def is_worth_logging(record: logging.LogRecord) -> bool:
    """Return whether a record of uvicorn's is not one that every stranger can write as often as he likes."""
    return record.msg not in _EVERYDAY


class Connection(H11Protocol):
    """HTTP/1.1 on one transport."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Take what came; an unfinished head does not buy more time."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait_for_head()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer too."""
        self._stop_waiting()
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
