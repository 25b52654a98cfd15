"""Servers of other hosts: what is asked of a conversation that one of them has is handed on to it.

    <home>/server/peers         a line for each: its address, a blank, a token of that server; a file of mode 0600

Rules of this file: a token is shown to the address that stands before it and to no other, whatever a catalogue says,
and beyond this machine only over TLS. What has been handed on is not handed on again. Who may ask what was decided
before, as for a conversation of this home.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar, Final, cast
from urllib.parse import urlsplit

from blockpty.errors import BlockptyError, Forbidden, InternalError, NotFound, Unauthorized
from blockpty.model.events import Event
from blockpty.model.results import Result
from blockpty.surfaces.client import Client
from blockpty.surfaces.settings import LOOPBACK
from blockpty.surfaces.tokens import read_private, server_directory

PEERS_NAME: Final = "peers"
FORWARDED: Final = "Blockpty-Forwarded"
"""Header of what was handed on."""
# A server that is asked says something every 10 seconds, also where the answer takes longer.
SILENCE_SECONDS: Final = 45.0


class PeerClient(Client):
    """A client of a server that is asked on behalf of somebody else."""

    _headers: ClassVar[Mapping[str, str]] = {FORWARDED: "1"}
    _silence_seconds = SILENCE_SECONDS


class Peers:
    """The servers that this one may ask; `close` it."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._clients: dict[tuple[str, str], Client] = {}

    async def call(self, found: NotFound, name: str, params: Mapping[str, Any]) -> Result:
        """Run an operation of shape CALL where `found` says that the conversation is.

        Raises what that server answers, and `found` with the reason where it cannot be asked. Cancelling lets that
        server drop the call.
        """
        client = self._client(found)
        try:
            return await client.call(name, params)
        except BlockptyError as problem:
            raise _told(found, problem) from None

    async def stream(self, found: NotFound, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Run an operation of shape STREAM there; raises as `call`."""
        client = self._client(found)
        try:
            async with aclosing(cast("Any", client.stream(name, params))) as events:
                async for event in events:
                    yield event
        except BlockptyError as problem:
            raise _told(found, problem) from None

    def _client(self, found: NotFound) -> Client:
        address = str(found.details.get("address", ""))
        token = self._tokens(found).get(address)
        if token is None:
            raise found
        parts = urlsplit(address)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
            raise _unasked(found, "its address is not one of https")
        if (address, token) not in self._clients:
            self._clients[address, token] = PeerClient(self._home, url=address, token=token)
        return self._clients[address, token]

    def _tokens(self, found: NotFound) -> dict[str, str]:
        try:
            lines = read_private(server_directory(self._home) / PEERS_NAME).decode("ascii").splitlines()
        except FileNotFoundError:
            return {}
        except (BlockptyError, ValueError):
            raise _unasked(found, "the file of peers here is not private, or not readable") from None
        pairs = [line.split() for line in lines]
        return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}

    async def close(self) -> None:
        """Close all connections."""
        while self._clients:
            await self._clients.popitem()[1].close()


def _told(found: NotFound, problem: BlockptyError) -> BlockptyError:
    """Return what the caller is told of an error that came back."""
    if isinstance(problem, (Unauthorized, Forbidden)):
        # What is not allowed is our token, not the caller's.
        return _unasked(found, "the token for that server is not enough there")
    if isinstance(problem, InternalError) or (isinstance(problem, NotFound) and "server" in problem.details):
        return _unasked(found, "that server does not answer as one")
    return problem


def _unasked(found: NotFound, reason: str) -> NotFound:
    return NotFound(
        f"{found.message}; it was not handed on: {reason}", hint=found.hint, details={**found.details, "reason": reason}
    )
