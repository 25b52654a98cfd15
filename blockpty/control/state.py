"""Control of a conversation: who may type into it now.

    agent    agents type; no person has taken control, and what a person types is taken as well
    user     one person types; agents and other persons are refused
    shared   one person and agents type; other persons are refused

Beside that, agents may be halted: they type nothing until a person releases them, whatever the state is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from blockpty.control.principals import Principal
from blockpty.errors import Halted, UserInControl

STATES: Final = ("agent", "user", "shared")
A_PERSON: Final = "a person"


class ControlState(Struct, frozen=True):
    """State of control: who may type.

    Attributes:
        state: `agent`, `user` or `shared`.
        who: name of the person who has control; None when there is none, or a person was only asked.
        holder: the principal that took control for that person; its input is that person's.
        since: ms since 1970 of the last change; None when there was none.
        halted: who halted agents here; None when they may type.
        lease: whether control ends some time after the connection of its holder.
    """

    state: str = "agent"
    who: str | None = None
    holder: str | None = None
    since: int | None = None
    halted: str | None = None
    lease: bool = False

    @classmethod
    def from_record(cls, record: Mapping[str, Any] | None) -> ControlState:
        """Return the state of a conversation's machine (`MachineState.control`)."""
        if record is None:
            return AGENT
        return cls(**record)

    def to_dict(self) -> dict[str, Any]:
        """Return what `status` says."""
        return {"state": self.state, "who": self.who, "since": self.since, "halted": self.halted}

    def check(self, principal: Principal, author: str) -> None:
        """Raise Halted or UserInControl unless this principal may type now, as this author."""
        if author == "engine":
            return
        if author == "agent":
            if self.halted is not None:
                raise halted_by(self.halted)
            if self.state == "user":
                raise self.refusal()
        elif self.who is not None and self.holder != principal.name:
            raise self.refusal()

    def refusal(self) -> UserInControl:
        """Return the error for who may not type while a person has control."""
        return UserInControl(
            f"{self.who or A_PERSON} has control of this conversation",
            hint="wait for the event control, or ask for it: it is handed back with release_control",
            details=self.to_dict(),
        )


AGENT: Final = ControlState()


def halted_by(who: str, everywhere: bool = False) -> Halted:
    """Return the error for an agent that was halted."""
    return Halted(
        f"{who} has halted agents{' in all conversations' if everywhere else ''}",
        hint="a person can allow it with release", details={"halted": who, "all": everywhere},
    )  # fmt: skip
