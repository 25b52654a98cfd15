"""Protocol of a home for what acts on whole conversations: retention, archiving, checks, closing when idle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from blockpty.model.results import VerifyResult
    from blockpty.runtime.conversation import Conversation


class Home(Protocol):
    """Protocol of an engine for these functions."""

    home: Path

    async def live(self) -> frozenset[str]:
        """Return the names of the conversations whose shell runs."""

    async def sizes(self) -> dict[str, tuple[int, int]]:
        """Return how long stream and timeline of each live conversation are, in bytes."""

    async def conversation(self, conversation_id: str) -> Conversation:
        """Return a conversation that exists."""

    def attached(self, conversation_id: str) -> Conversation | None:
        """Return a conversation that is attached, None for any other."""

    async def detach(self, conversation_id: str) -> int:
        """Detach from a conversation; return where its stream ends."""

    async def refuse_replaced(self, conversation: Conversation) -> None:
        """Raise SpoolCorrupt when another record lies where this one was."""

    async def verify(self, conversation_id: str, *, key: str | None = None) -> VerifyResult:
        """Compare the files of a conversation with its record."""
