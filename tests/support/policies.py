"""Policies of homes under test, and the moment at which a person was asked."""

from __future__ import annotations

from pathlib import Path

import blockpty

ASKS = 'approval_timeout_seconds = {seconds}\n[default]\nexec = "ask"\ninput = "ask"\n'


def write_policy(home: Path, text: str) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "policy.toml").write_text(text)


async def asked(conversation: blockpty.Conversation, times: int = 1) -> None:
    """Return when a person was asked so often in this conversation."""
    async for event in conversation.events(0):
        times -= event.type == "approval_requested"
        if not times:
            return
