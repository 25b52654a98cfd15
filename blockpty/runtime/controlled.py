"""Protocol of a terminal for the control of who may type into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from blockpty.control.principals import Principal
    from blockpty.host.client import HostClient
    from blockpty.runtime.follower import RecordFollower


class ControlledTerminal(Protocol):
    """Protocol of a conversation for control and gate."""

    id: str
    live: RecordFollower
    host: HostClient

    @property
    def epoch(self) -> int:
        """This engine's epoch for the conversation."""

    async def own(self, *, stopping: bool = False) -> None:
        """Make sure that this engine may write."""

    def note(self, note: Mapping[str, Any]) -> None:
        """Have something recorded in the timeline."""

    async def noted(self) -> None:
        """Return when every note is in the timeline and has been read."""

    def last_output(self) -> bytes:
        """Return the end of what was printed, as text."""

    def check_control(self, principal: Principal, author: str) -> None:
        """Raise Halted or UserInControl unless this principal may type now."""
