"""Who calls and what they may do: the one gate between a surface and the table of operations.

Rules of this file: no transport, no file, no token. A surface finds out who its caller is (a token, the owner of the
process) and then calls operations only through a Caller. The table is loaded by the first call: a program that only
reads a token has no use for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from blockpty.errors import Forbidden, NotFound
from blockpty.model.events import Event
from blockpty.model.results import ListResult, Result
from blockpty.ops.kinds import Effect

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

    from blockpty.ops.operation import Operation


class Scope(IntEnum):
    """What a principal may do; each includes those before it."""

    READ = 1
    """Look: no operation that reaches the programs in the terminal."""
    WRITE = 2
    """Run commands and give input as well."""
    ADMIN = 3
    """Open, close, reset and kill as well."""


NEEDED: Final[Mapping[Effect, Scope]] = {
    Effect.READ: Scope.READ,
    Effect.INPUT: Scope.WRITE,
    Effect.LIFECYCLE: Scope.ADMIN,
}


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf something is called.

    Attributes:
        name: of the token, or `owner`.
        scope: what it may do.
        conversations: the only conversations it may see; None for all.
    """

    name: str
    scope: Scope
    conversations: frozenset[str] | None = None

    def check(self, operation: Operation, conversation_id: object) -> None:
        """Raise Forbidden unless this operation on this conversation (None: on none in particular) is allowed.

        The answer is the same whether the conversation exists or not.
        """
        needed = NEEDED[operation.effect]
        if self.scope < needed:
            raise Forbidden(
                f"{operation.name} needs the scope {needed.name.lower()}; the token {self.name} has "
                f"{self.scope.name.lower()}",
                hint="use a token with that scope",
            )
        if self.conversations is None or operation.name == "list":
            return
        # Of any type: nobody has looked at it yet.
        if not isinstance(conversation_id, str) or conversation_id not in self.conversations:
            raise Forbidden(
                f"the token {self.name} is for other conversations", hint="list names those that it may use"
            )


OWNER: Final = Principal("owner", Scope.ADMIN)


class Elsewhere(Protocol):
    """Whoever can ask for a conversation where it is; `found` is the error that says where (`details.address`)."""

    async def call(self, found: NotFound, name: str, params: Mapping[str, Any]) -> Result:
        """Run an operation of shape CALL there; raises BlockptyError."""

    def stream(self, found: NotFound, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Run an operation of shape STREAM there; raises BlockptyError."""

    async def socket(self, found: NotFound, target: str) -> ClientConnection:
        """Connect to a WebSocket there, by its path and query; raises BlockptyError."""


def address_of(found: NotFound) -> str | None:
    """Return where a conversation is that is not here; None when nobody knows of it."""
    address = found.details.get("address")
    return None if address is None else str(address)


class Caller:
    """The operations as one principal may call them.

    Args:
        engine: an Engine, or a Client, which has the same methods.
        principal: who calls.
        elsewhere: asked for conversations of other hosts; None: the caller is told their address.
    """

    def __init__(self, engine: Any, principal: Principal = OWNER, elsewhere: Elsewhere | None = None) -> None:
        self.principal = principal
        self._engine = engine
        self._elsewhere = elsewhere

    async def call(self, name: str, params: Mapping[str, Any]) -> Result:
        """Run an operation of shape CALL; raises BlockptyError, Forbidden among them.

        Cancelling it cancels the call as the operation's method says.
        """
        from blockpty.ops.table import call, find

        self.principal.check(find(name), params.get("conversation_id"))
        if params.get("redact") not in (None, True) and self.principal.scope < Scope.ADMIN:
            raise Forbidden(
                f"secrets are shown to the scope admin; the token {self.principal.name} has another",
                hint="leave redact out",
            )
        try:
            result = await call(self._engine, name, params)
        except NotFound as found:
            if self._elsewhere is None or address_of(found) is None:
                raise
            return await self._elsewhere.call(found, name, params)
        if isinstance(result, ListResult) and self.principal.conversations is not None:
            seen = [one for one in result.conversations if one.conversation_id in self.principal.conversations]
            return replace(result, conversations=seen)
        return result

    def stream(self, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Run an operation of shape STREAM; close the iterator when done (`contextlib.aclosing`)."""
        from blockpty.ops.table import find, stream

        self.principal.check(find(name), params.get("conversation_id"))
        events = stream(self._engine, name, params)
        return events if self._elsewhere is None else self._here_or(self._elsewhere, events, name, params)

    async def _here_or(
        self, elsewhere: Elsewhere, events: AsyncIterator[Event], name: str, params: Mapping[str, Any]
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
        async with aclosing(cast("Any", elsewhere.stream(found, name, params))) as events:
            async for event in events:
                yield event
