"""Listening sockets that leave descriptors for the conversations, and bounded connections that have shown no token.

A connection that would take one of the reserve is closed at once. Where the system gives no more, accepting pauses, and
the log says so once in a while, not once for every client.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections import OrderedDict
from typing import Any, Final, Protocol

from blockpty.host import descriptors
from blockpty.host.protocol import peer_uid

# asyncio takes its reader away for a second when accept fails so; until then it would ask once for each of the backlog.
_PAUSE_SECONDS: Final = 0.9
_SAID_SECONDS: Final = 60.0
# Connections that have shown no token, together; fewer where there are few descriptors.
STRANGERS: Final = 64
_STRANGERS_PART: Final = 8

_log = logging.getLogger("uvicorn.error")


class Listening(socket.socket):
    """A listening TCP socket."""

    _part = 1.0
    _paused_until = 0.0

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept; raises ConnectionAbortedError for a client that is turned away, which asyncio passes over."""
        if time.monotonic() < self._paused_until:
            raise BlockingIOError
        try:
            connection, address = super().accept()
        except OSError as problem:
            if problem.errno in descriptors.EXHAUSTED:
                self._paused_until = time.monotonic() + _PAUSE_SECONDS
                _say_once()
            raise
        if connection.fileno() >= descriptors.bound(self._part):
            connection.close()
            _say_once()
            raise ConnectionAbortedError
        return connection, address


class PrivateListening(Listening):
    """A unix socket that lets only this user in, also where its mode does not keep others out.

    It may use half of the reserve: its clients can close conversations.
    """

    _part = 0.5

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept; raises as Listening does, also for another user."""
        connection, address = super().accept()
        if peer_uid(connection) != os.geteuid():
            connection.close()
            raise ConnectionAbortedError
        return connection, address


_said = -_SAID_SECONDS


def _say_once() -> None:
    global _said
    now = time.monotonic()
    if now - _said >= _SAID_SECONDS:
        _said = now
        _log.warning("connections are turned away: there are too few descriptors (ulimit -n)")


def is_news(record: logging.LogRecord) -> bool:
    """Return whether a record of asyncio's is not the one that it writes for each failed accept."""
    return not str(record.msg).startswith("socket.accept() out of system resource")


class Stranger(Protocol):
    """A connection of which it is not known whose it is."""

    @property
    def known(self) -> bool: ...
    def abort(self) -> None: ...


class Strangers:
    """The connections over TCP that have shown no token, oldest first; where there are too many the oldest ends."""

    def __init__(self) -> None:
        self._all: OrderedDict[Stranger, None] = OrderedDict()

    def add(self, connection: Stranger) -> None:
        """Count one more in."""
        self._all[connection] = None
        most = max(4, min(STRANGERS, descriptors.bound() // _STRANGERS_PART))
        if len(self._all) <= most:
            return
        for one in [one for one in self._all if one.known]:
            del self._all[one]
        while len(self._all) > most:
            self._all.popitem(last=False)[0].abort()

    def remove(self, connection: Stranger) -> None:
        """Forget one that has ended, or become another protocol's."""
        self._all.pop(connection, None)
