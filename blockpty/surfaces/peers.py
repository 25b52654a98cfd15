"""Peers: servers of other hosts, which are asked for the conversations that they have.

    <home>/server/peers         a line for each: its address, a blank, a token of that server; a file of mode 0600,
                                which `blockpty peers` writes. An address ssh:[user@]host[:port] has `-` for a token:
                                ssh lets us in, and the far side is `blockpty proxy`

Rules of this file: a token is shown to the address that stands before it and to no other, whatever a catalogue says,
and beyond this machine only over TLS or ssh. What has been handed on is not handed on again. Who may ask what was
decided before, as for a conversation of this home. What an agent asks for is handed on as an agent's.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from blockpty.control.principals import Principal
from blockpty.errors import BadRequest, BlockptyError, Forbidden, InternalError, NotFound, Unauthorized
from blockpty.model.events import Event
from blockpty.model.results import Result
from blockpty.surfaces.client import Client
from blockpty.surfaces.private_files import locked, read_private, server_directory, write_private
from blockpty.surfaces.settings import LOOPBACK
from blockpty.surfaces.ssh_way import is_way

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

PEERS_NAME: Final = "peers"
NO_TOKEN: Final = "-"
FORWARDED: Final = "Blockpty-Forwarded"
"""Header of what was handed on; it says who the caller's input is from, as `types_as` of a principal does."""
_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9._\[\]:-]{1,256}(?:/[A-Za-z0-9._~/-]{0,256})?")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{16,1024}")
# A server that is asked says something every 10 seconds, also where the answer takes longer.
SILENCE_SECONDS: Final = 45.0
# Agents choose their names: beyond this many clients they have one name.
_MOST_CLIENTS: Final = 64


class PeerClient(Client):
    """A client of a server that is asked on behalf of another caller."""

    _silence_seconds = SILENCE_SECONDS

    def __init__(self, home: Path, *, types_as: str = "agent", **options: Any) -> None:
        super().__init__(home, **options)
        self._headers = {**self._headers, FORWARDED: types_as}


class Peers:
    """The servers that this one may ask; `close` it."""

    def __init__(self, home: Path) -> None:
        self._home = home
        # By address, token, who the input is from, and name of the agent.
        self._clients: dict[tuple[str, str, str, str | None], Client] = {}

    async def call(self, found: NotFound, caller: Principal, name: str, params: Mapping[str, Any]) -> Result:
        """Run an operation of shape CALL where `found` says that the conversation is.

        Raises what that server answers, and `found` with the reason where it cannot be asked. Cancelling lets that
        server drop the call.
        """
        client = self._client(found, caller)
        try:
            return await client.call(name, params)
        except BlockptyError as problem:
            raise _unreachable(found, problem) from None

    async def stream(
        self, found: NotFound, caller: Principal, name: str, params: Mapping[str, Any]
    ) -> AsyncIterator[Event]:
        """Run an operation of shape STREAM there; raises as `call`."""
        client = self._client(found, caller)
        try:
            async with aclosing(cast("Any", client.stream(name, params))) as events:
                async for event in events:
                    yield event
        except BlockptyError as problem:
            raise _unreachable(found, problem) from None

    async def socket(self, found: NotFound, caller: Principal, target: str) -> ClientConnection:
        """Connect to a WebSocket there, by its path and query; raises as `call`."""
        try:
            return await self._client(found, caller).websocket(target)
        except BlockptyError as problem:
            raise _unreachable(found, problem) from None

    def _client(self, found: NotFound, caller: Principal) -> Client:
        address = str(found.details.get("address", ""))
        token = self._tokens(found).get(address)
        if token is None:
            raise found
        if not _may_be_asked(address):
            raise _not_asked(found, "its address is not one of https")
        # Our token may be a person's, or the owner's of the other home.
        agent = caller.name if caller.types_as == "agent" else None
        if agent is not None and len(self._clients) >= _MOST_CLIENTS:
            agent = "agent"
        key = address, token, caller.types_as, agent
        if key not in self._clients:
            shown = None if is_way(address) else token
            self._clients[key] = PeerClient(self._home, url=address, token=shown, agent=agent, types_as=caller.types_as)
        return self._clients[key]

    def _tokens(self, found: NotFound) -> dict[str, str]:
        try:
            return _pairs(_lines(server_directory(self._home)))
        except BlockptyError:
            raise _not_asked(found, "the file of peers here is not private, or not readable") from None

    async def close(self) -> None:
        """Close all connections."""
        while self._clients:
            await self._clients.popitem()[1].close()


def add_peer(home: Path, address: str, token: str) -> None:
    """Let the server of a home ask the one at an address with this token, in place of any before; raises BadRequest.

    An address of ssh needs no token.
    """
    if is_way(address):
        _change(home, address, f"{address} {NO_TOKEN}")
        return
    if not _ADDRESS.fullmatch(address) or not _may_be_asked(address):
        raise BadRequest(
            f"not an address that a token may be shown to: {address[:200]!r}",
            hint="https://host:port or ssh:user@host, as the other host has it in BLOCKPTY_ADDRESS; http only on this "
            "machine",
        )
    if not _TOKEN.fullmatch(token):
        raise BadRequest("not a token", hint="`blockpty token add` on the other host shows one, once")
    _change(home, address, f"{address} {token}")


def remove_peer(home: Path, address: str) -> None:
    """Have the server of a home ask the one at an address no more; raises NotFound."""
    if not _change(home, address, None):
        raise NotFound(f"no peer has the address {address[:200]}", hint="peers list names them")


def list_peers(home: Path) -> list[str]:
    """Return the addresses that the server of a home may ask; raises SpoolCorrupt for a file that is not private."""
    return sorted(_pairs(_lines(server_directory(home))))


def _change(home: Path, address: str, line: str | None) -> bool:
    """Put a line in the place of those of an address; return whether there were any. Comments stay."""
    directory = server_directory(home)
    with locked(directory):
        lines = _lines(directory)
        kept = [one for one in lines if one.split()[:1] != [address]]
        found = len(kept) < len(lines)
        if line is not None:
            kept.append(line)
        elif not found:
            return False
        write_private(directory / PEERS_NAME, "".join([f"{one}\n" for one in kept]).encode())
        return found


def _lines(directory: Path) -> list[str]:
    try:
        return read_private(directory / PEERS_NAME).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []


def _pairs(lines: list[str]) -> dict[str, str]:
    pairs = [line.split() for line in lines]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and not pair[0].startswith("#")}


def _may_be_asked(address: str) -> bool:
    """Whether a token may go there: over TLS, or within this machine; over ssh none is sent that is ours."""
    if is_way(address):
        return True
    try:
        parts = urlsplit(address)
        return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    except ValueError:
        return False


def _unreachable(found: NotFound, problem: BlockptyError) -> BlockptyError:
    """Return the error for the caller of one that came back."""
    if isinstance(problem, Unauthorized):
        return _not_asked(found, "the token for that server is not enough there")
    if isinstance(problem, Forbidden):
        # What is not allowed is our token, or an agent with it.
        return _not_asked(found, f"that server refuses it: {problem.message}")
    if isinstance(problem, InternalError) or (isinstance(problem, NotFound) and "server" in problem.details):
        return _not_asked(found, "that server does not answer as one")
    return problem


def _not_asked(found: NotFound, reason: str) -> NotFound:
    return NotFound(
        f"{found.message}; it was not handed on: {reason}", hint=found.hint, details={**found.details, "reason": reason}
    )
