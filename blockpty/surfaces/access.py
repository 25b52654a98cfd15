"""Access control: the scopes that operations need, and the one gate between a surface and the table of operations.

Rules of this file: no transport, no file, no token. A surface finds out who its caller is (a token, the owner of the
process) and then calls operations only through a Caller. The table is loaded by the first call: a program that only
reads a token has no use for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from msgspec.structs import replace

from blockpty.control.principals import OWNER, Principal, Scope, acting
from blockpty.errors import Forbidden, NotFound
from blockpty.model.events import Event
from blockpty.model.results import ListResult, Result
from blockpty.ops.manifest import Effect

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

    from blockpty.ops.operation import Operation


AGENT_HEADER: Final = "Blockpty-Agent"
"""Header in which a program that is an agent gives its name: its input is an agent's, whatever its token is."""
AGENT_LENGTH: Final = 64

NEEDED: Final[Mapping[Effect, Scope]] = {
    Effect.READ: Scope.READ,
    Effect.INPUT: Scope.WRITE,
    Effect.LIFECYCLE: Scope.ADMIN,
}


def check(principal: Principal, operation: Operation, conversation_id: object) -> None:
    """Raise Forbidden unless a principal may use this operation on this conversation (None: on none in particular).

    The answer is the same whether the conversation exists or not.
    """
    needed = NEEDED[operation.effect]
    if principal.scope < needed:
        raise Forbidden(
            f"{operation.name} needs the scope {needed.name.lower()}; the token {principal.name} has "
            f"{principal.scope.name.lower()}",
            hint="use a token with that scope",
        )
    if principal.conversations is None or operation.name == "list":
        return
    # Of any type: it is not checked yet.
    if not isinstance(conversation_id, str) or conversation_id not in principal.conversations:
        raise Forbidden(
            f"the token {principal.name} is for other conversations", hint="list names those that it may use"
        )


class PeerForwarder(Protocol):
    """Asks for a conversation on the host that has it, for a caller of this one.

    `found` is the error that says where it is (`details.address`). An agent is one there too, whatever our token is.
    """

    async def call(self, found: NotFound, caller: Principal, name: str, params: Mapping[str, Any]) -> Result:
        """Run an operation of shape CALL there; raises BlockptyError."""

    def stream(self, found: NotFound, caller: Principal, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Run an operation of shape STREAM there; raises BlockptyError."""

    async def socket(self, found: NotFound, caller: Principal, target: str) -> ClientConnection:
        """Connect to a WebSocket there, by its path and query; raises BlockptyError."""


def address_of(found: NotFound) -> str | None:
    """Return where a conversation is that is not here; None when that is not known."""
    address = found.details.get("address")
    return None if address is None else str(address)


class Caller:
    """The operations as one principal may call them.

    Args:
        engine: an Engine, or a Client, which has the same methods.
        principal: who calls.
        elsewhere: asked for conversations of other hosts; None: the caller gets their address.
    """

    def __init__(self, engine: Any, principal: Principal = OWNER, elsewhere: PeerForwarder | None = None) -> None:
        self.principal = principal
        self._engine = engine
        self._elsewhere = elsewhere

    def as_person(self) -> Caller:
        """Return the caller of what a person types; that of an agent is the same."""
        if not self.principal.is_person:
            return self
        return Caller(self._engine, self.principal.as_person(), self._elsewhere)

    async def call(self, name: str, params: Mapping[str, Any]) -> Result:
        """Run an operation of shape CALL; raises BlockptyError, Forbidden among them.

        Cancelling it cancels the call as the operation's method says.
        """
        from blockpty.ops.dispatch import call
        from blockpty.ops.table import find

        check(self.principal, find(name), params.get("conversation_id"))
        if name == "audit" and params.get("conversation_id") is None and self.principal.scope < Scope.ADMIN:
            raise Forbidden(
                f"the audit of all conversations is for the scope admin; the token {self.principal.name} has another",
                hint="name a conversation",
            )
        if params.get("redact") not in (None, True) and self.principal.scope < Scope.ADMIN:
            raise Forbidden(
                f"secrets are shown to the scope admin; the token {self.principal.name} has another",
                hint="leave redact out",
            )
        try:
            with acting(self.principal):
                result = await call(self._engine, name, params)
        except NotFound as found:
            if self._elsewhere is None or address_of(found) is None:
                raise
            if name == "send":  # others look for blocks by their author
                self.principal.author(params.get("author"))
            return await self._elsewhere.call(found, self.principal, name, params)
        if isinstance(result, ListResult) and self.principal.conversations is not None:
            seen = [one for one in result.conversations if one.conversation_id in self.principal.conversations]
            return replace(result, conversations=seen)
        return result

    def stream(self, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Run an operation of shape STREAM; close the iterator when done (`contextlib.aclosing`)."""
        from blockpty.ops.dispatch import stream
        from blockpty.ops.table import find

        check(self.principal, find(name), params.get("conversation_id"))
        events = stream(self._engine, name, params)
        return events if self._elsewhere is None else self._here_or(self._elsewhere, events, name, params)

    async def _here_or(
        self, elsewhere: PeerForwarder, events: AsyncIterator[Event], name: str, params: Mapping[str, Any]
    ) -> AsyncIterator[Event]:
        try:
            async with aclosing(cast("Any", events)):
                async for event in events:
                    yield event
                return
        except NotFound as problem:
            if address_of(problem) is None:
                raise
            found = problem
        async with aclosing(cast("Any", elsewhere.stream(found, self.principal, name, params))) as events:
            async for event in events:
                yield event
