"""Imports: recordings of other programs as conversations that can be read, exported, replayed and verified."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blockpty.errors import BadRequest, Exited
from blockpty.model.results import ImportResult
from blockpty.spool.layout import check_conversation_id, conversations_directory, make_private


async def import_recording(
    home: Path,
    path: str | os.PathLike[str],
    conversation_id: str | None,
    timing: str | os.PathLike[str] | None,
) -> ImportResult:
    """Make a conversation of a home of a recording; `Engine.import_recording` says the rest."""
    # An engine loads what reads recordings only for this.
    from blockpty.runtime.importing.writer import ImportStopped, exists, free_name, import_file

    for one in (path, timing):
        if one is not None and "\0" in os.fsdecode(one):
            raise BadRequest("a path cannot hold the character NUL")
    file = Path(path).absolute()
    name = check_conversation_id(conversation_id) if conversation_id is not None else free_name(file.stem)
    make_private(home)
    if (conversations_directory(home) / name).exists():
        raise exists(name)
    stopped = threading.Event()
    times = None if timing is None else Path(timing).absolute()
    try:
        return await asyncio.to_thread(import_file, home, name, file, times, stopped)
    except ImportStopped:
        raise asyncio.CancelledError from None
    finally:
        stopped.set()


def refuse_imported(name: str, meta: Mapping[str, Any]) -> None:
    """Raise Exited for a conversation that was imported: nothing can be opened in it."""
    if "imported" in meta:
        raise Exited(f"{name} is an imported recording, which can only be read", hint="open another conversation")
