"""Recordings as files, and the conversations that imports make of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import blockpty
from blockpty.runtime.conversation import Conversation
from tests.support.exports import MIB

HEADER = {"version": 2, "width": 80, "height": 24}
HEADER_3 = {"version": 3, "term": {"cols": 80, "rows": 24}}


@asynccontextmanager
async def imported(home: Path, path: Path, **options: Any) -> AsyncIterator[Conversation]:
    """Give a conversation that was made of a file, in an engine of its own, and see that its record is sound."""
    async with blockpty.Engine(home) as engine:
        result = await engine.import_recording(path, "i", **options)
        conversation = await engine.conversation(result.conversation_id)
        yield conversation
        found = await conversation.verify()
        assert found.clean, found.differences
        assert result.cursor == conversation.cursor and conversation.mode == "exited"


def cast(path: Path, header: dict[str, Any], *events: Any, ends: bool = True) -> Path:
    lines = [json.dumps(one) for one in (header, *events)]
    path.write_text("\n".join(lines) + ("\n" if ends else ""), "utf-8")
    return path


async def text_of(conversation: Conversation, block_id: str | None = None) -> str:
    return (await conversation.read(block_id=block_id, max_bytes=MIB)).data
