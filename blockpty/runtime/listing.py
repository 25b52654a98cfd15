"""Listing of a home, without attaching to its conversations: there may be thousands, most of them suspended.

A conversation that was left in order is known from its checkpoint alone: nothing has been added to stream and timeline
since. Only where something has is the record read on from there.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from blockpty.control.state import ControlState
from blockpty.engine.machine_state import MachineState
from blockpty.engine.records import open_record, pending_record
from blockpty.engine.states import ShellState
from blockpty.errors import SpoolError, StorageFull
from blockpty.host.recovery import boot_id
from blockpty.model.block import Block
from blockpty.model.results import BlockSummary, ConversationInfo
from blockpty.runtime.record_reader import RecordReader, resume_points
from blockpty.runtime.redactor import Redactor
from blockpty.runtime.status import ALTERNATE_SCREENS, integrity_of, mode_of, source_text, tty_of
from blockpty.runtime.worker_threads import aside
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout, conversations_directory
from blockpty.spool.line_reader import last_line
from blockpty.spool.stream import StreamReader

if TYPE_CHECKING:
    from blockpty.runtime.channel import ConversationChannel

_PROMPTS: Final = {"password": "password", "reads_line": "line"}
# Of so many records it is kept what was found.
_LOOKS: Final = 64
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


class RecordLooks:
    """Looks at the records of a home that are not followed, beside the event loop where there is much to read.

    What an engine did not leave in order, as after a crash, may be long, and lists are taken again and again; so what
    was found last is kept as long as nothing is added to it.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[Path, tuple[tuple[int, ...], tuple[MachineState, int]]] = OrderedDict()

    async def information(
        self, layout: Layout, pid: int | None, redactor: Redactor, known: ConversationChannel | None = None
    ) -> ConversationInfo | None:
        """Return the line of `list` about a conversation, None for what is none.

        `pid`: of its shell, if that runs; `known`: the conversation, if this engine has taken it up.
        """
        try:
            meta = checkpoint.load_meta(layout.meta)
        except (OSError, SpoolError):
            return None
        recent: Block | None = None
        if known is not None:
            state, cursor, redactor = known.live.state, known.cursor, known.live.redactor
            recent = next(reversed(known.live.deriver.recent.values()), None)
        else:
            state, cursor = await self.look(layout)
        lost = state.exit.get("lost") if state.exit is not None else None
        # The alternate screen is known from the bytes; `status` asks for all modes.
        modes = ALTERNATE_SCREENS if state.screen.shown else frozenset()
        tty = tty_of(state, state.tty, modes) if pid is not None else None
        control = known.control.state if known is not None else ControlState.from_record(state.control)
        return ConversationInfo(
            conversation_id=layout.directory.name,
            live=pid is not None,
            mode=mode_of(state) if pid is not None else "exited",
            shell=state.current.name,
            cwd=state.current.cwd,
            pid=pid,
            cursor=cursor,
            blocks=state.next_block - 1,
            created_ts=int(meta.get("created_ts", 0)),
            lost=lost_because(state) if pid is None and unfinished(state) else lost,
            used_ts=state.ts,
            running=_running(state, redactor) if pid is not None else None,
            last=_last(recent, layout, redactor),
            needs=_needs(state, tty, known) if pid is not None else [],
            tty=tty,
            cols=state.size[0],
            rows=state.size[1],
            control=control.state,
            control_by=control.who,
            halted=control.halted or (known.gate.halted if known is not None and known.gate is not None else None),
            integrity=integrity_of(state),
            source=source_text(state),
        )

    async def look(self, layout: Layout) -> tuple[MachineState, int]:
        """Return a conversation's state and the end of its stream."""
        stream = StreamReader(layout.stream)
        try:
            saved = checkpoint.load_checkpoint(layout.checkpoint)
            known = _at_rest(saved, layout, stream) if saved is not None else None
            if known is not None:
                return known
            place = stream.size(), *_place(layout.timeline)
        finally:
            stream.close()
        last = self._found.get(layout.directory)
        if last is not None and last[0] == place:
            self._found.move_to_end(layout.directory)
            return last[1]
        found = await aside(lambda pace: look(layout, pace))
        self._found[layout.directory] = place, found
        if len(self._found) > _LOOKS:
            self._found.popitem(last=False)
        return found


def look(layout: Layout, pace: Callable[[], None] = lambda: None) -> tuple[MachineState, int]:
    """Return a conversation's state and the end of its stream, reading on from its last checkpoint.

    `pace`: called after each step.
    """
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
                pace()
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


def _place(path: Path) -> tuple[int, ...]:
    """Return what tells a file from what it was before, or from another one in its place."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _running(state: MachineState, redactor: Redactor) -> BlockSummary | None:
    if state.block is not None:
        return BlockSummary.of(redactor.block(open_record(state.block, state)))
    return BlockSummary.of(redactor.block(pending_record(state))) if state.submission is not None else None


def _last(recent: Block | None, layout: Layout, redactor: Redactor) -> BlockSummary | None:
    """Return the last finished block: of `recent`, or of the file where nothing has finished since it was read."""
    if recent is None:
        try:
            record, _ = last_line(layout.blocks)
            recent = Block.from_dict(record) if record is not None else None
        except (OSError, SpoolError, KeyError, TypeError):
            return None  # not there, or damaged: `verify` says so
    return BlockSummary.of(redactor.block(recent)) if recent is not None else None


def _needs(state: MachineState, tty: str | None, known: ConversationChannel | None) -> list[str]:
    """Return what waits for a person."""
    asked = set()
    if known is not None and known.gate is not None and known.gate.book.waiting(known.id):
        asked.add("approval")
    if "" in state.requests.values():
        asked.add("user_input")
    if tty in _PROMPTS:
        asked.add(_PROMPTS[tty])
    if known is not None and isinstance(known.live.deriver.problem, StorageFull):
        asked.add("storage")
    return sorted(asked)
