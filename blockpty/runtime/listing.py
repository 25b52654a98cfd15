"""Listing of a home, without attaching to its conversations: there may be thousands, most of them suspended.

A conversation that was left in order is known from its checkpoint alone: nothing has been added to stream and timeline
since. Only where something has is the record read on from there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

from blockpty.engine.machine_state import MachineState
from blockpty.engine.states import ShellState
from blockpty.errors import SpoolError
from blockpty.host.client import ListedShell
from blockpty.host.recovery import boot_id
from blockpty.model.results import ConversationInfo
from blockpty.runtime.record_reader import RecordReader, resume_points
from blockpty.runtime.status import mode_of
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout, conversations_directory
from blockpty.spool.stream import StreamReader

# So many are looked at before others have their turn; a few milliseconds.
_TURN: Final = 16


def lost_because(state: MachineState) -> str:
    """Return why no process holds the terminal of a shell that has not ended: `machine_restarted` or `host_gone`."""
    return "machine_restarted" if state.boot and boot_id() not in ("", state.boot) else "host_gone"


def unfinished(state: MachineState) -> bool:
    """Whether the record does not tell of the shell's end."""
    return state.instance > 0 and state.shell is not ShellState.EXITED


async def names(home: Path) -> AsyncIterator[str]:
    """Yield the names of what may be conversations; others have their turn in between."""
    directory = conversations_directory(home)
    for number, name in enumerate(sorted(os.listdir(directory)) if directory.is_dir() else []):
        if number % _TURN == _TURN - 1:
            await asyncio.sleep(0)
        yield name


def look(layout: Layout) -> tuple[MachineState, int]:
    """Return a conversation's state and the end of its stream, reading on from its last checkpoint."""
    stream = StreamReader(layout.stream)
    try:
        saved = checkpoint.load_checkpoint(layout.checkpoint)
        known = _at_rest(saved, layout, stream) if saved is not None else None
        if known is not None:
            return known
        points = resume_points(saved, layout, stream)
        reader = RecordReader(layout, stream, *(points[-1] if points else (None, 0)))
        try:
            reader.look()
            while reader.step() is not None:
                pass
            return reader.machine.state, reader.position.offset
        finally:
            reader.close()
    finally:
        stream.close()


def _at_rest(saved: Mapping[str, Any], layout: Layout, stream: StreamReader) -> tuple[MachineState, int] | None:
    """Return what a checkpoint says when it is about all that is there."""
    try:
        end, timeline = saved["ends"]
        if (end, timeline) != (stream.size(), layout.timeline.stat().st_size):
            return None
        return MachineState.from_dict(saved["points"][-1]["state"]), end
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError):
        return None


def information(
    layout: Layout, live: ListedShell | None, known: tuple[MachineState, int] | None
) -> ConversationInfo | None:
    """Return the line of `list` about a conversation, None for what is none; `known`: state and cursor, if taken up."""
    try:
        meta = checkpoint.load_meta(layout.meta)
    except (OSError, SpoolError):
        return None
    state, cursor = known or look(layout)
    lost = state.exit.get("lost") if state.exit is not None else None
    return ConversationInfo(
        conversation_id=layout.directory.name,
        live=live is not None,
        mode=mode_of(state) if live is not None else "exited",
        shell=state.current.name,
        cwd=state.current.cwd,
        pid=live.pid if live is not None else None,
        cursor=cursor,
        blocks=state.next_block - 1,
        created_ts=int(meta.get("created_ts", 0)),
        lost=lost_because(state) if live is None and unfinished(state) else lost,
    )
