"""Shells inside the shell of a conversation, which have our hooks."""

from __future__ import annotations

from typing import Final

import blockpty

SHELLS: Final = {"bash": "bash --norc", "zsh": "zsh -f"}
"""Commands that start one without the hooks."""
_TIMEOUT_MS: Final = 20_000


async def inside(conversation: blockpty.Conversation, command: str) -> None:
    """Start a shell inside, and give it the hooks: files go through its terminal then."""
    session = await conversation.exec_interactive(command)
    while True:
        waited = await conversation.wait_for({"idle_ms": 100}, from_cursor=session.cursor, timeout_ms=_TIMEOUT_MS)
        assert waited.matched, waited
        if waited.tty == "raw":
            break
    await conversation.enter_shell(timeout_ms=_TIMEOUT_MS)
