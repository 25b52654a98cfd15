"""Principals: on whose behalf something is asked, and whether that one types as an agent or as a person.

The principal of a call travels with the call, as a context variable: a surface sets it with `acting`, and what is
recorded names it. A program that uses an engine of its own is `LOCAL` unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from blockpty.errors import Forbidden

Author = Literal["agent", "user", "engine"]
TypesAs = Literal["agent", "user", "either", "engine"]


class Scope(IntEnum):
    """Scope of a principal; each includes those before it."""

    READ = 1
    """Look: no operation that reaches the programs in the terminal."""
    WRITE = 2
    """Run commands and give input as well."""
    ADMIN = 3
    """Open, close, reset and kill as well."""


class Principal(Struct, frozen=True):
    """On whose behalf something is called.

    Attributes:
        name: of the token, or `owner`; with a slash and the name of the program behind it where that is known.
        scope: what it may do.
        conversations: the only conversations it may see; None for all.
        types_as: who its input is from: an agent, a person (`user`), or either, as it says with each input.
    """

    name: str
    scope: Scope
    conversations: frozenset[str] | None = None
    types_as: TypesAs = "agent"

    @property
    def is_person(self) -> bool:
        """Whether it may act for a person: take control, answer approvals, release what was halted."""
        return self.types_as in ("user", "either")

    def author(self, claimed: str | None = None) -> Author:
        """Return who its input is from; raises Forbidden where it claims to be someone else."""
        if self.types_as == "engine":
            return "engine"
        if claimed is None:
            return "user" if self.types_as == "user" else "agent"
        if claimed not in ("agent", "user") or self.types_as not in (claimed, "either"):
            raise Forbidden(
                f"{self.name} types as {self.types_as}, not as {claimed[:20]}",
                hint="leave author out, or use a token that types as that",
            )
        return "user" if claimed == "user" else "agent"

    def as_agent(self, program: str | None = None) -> Principal:
        """Return the same principal for a program that is an agent, such as an MCP client; a person's token too."""
        shown = "".join(character if character.isprintable() else "?" for character in (program or "")[:64])
        name = f"{self.name}/{shown}" if shown else self.name
        return replace(self, name=name, types_as="agent")

    def as_person(self) -> Principal:
        """Return the same principal for a page or program that a person types into; raises Forbidden."""
        self.author("user")
        return replace(self, types_as="user")


OWNER: Final = Principal("owner", Scope.ADMIN, types_as="either")
LOCAL: Final = Principal("local", Scope.ADMIN, types_as="either")
ENGINE: Final = Principal("engine", Scope.ADMIN, types_as="engine")
RESERVED: Final = frozenset({OWNER.name, LOCAL.name, ENGINE.name})
"""Names that no token may have."""

_current: ContextVar[Principal] = ContextVar("principal", default=LOCAL)
current = _current.get
"""Return the principal of the call that runs."""


@contextmanager
def acting(principal: Principal) -> Iterator[None]:
    """Have what is called within, and the tasks that it starts, act for a principal."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)
