"""The block builder: blocks, and their events and signals.

Rules of this file: it opens, extends and closes blocks, and cuts their output into deltas, when the machine calls; it
decides nothing. It shares the machine's state and keeps no output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blockpty.engine.hints import MAX_HINTS, PROMPT_BEGINS, Hint
from blockpty.engine.loading import is_keyed
from blockpty.engine.machine_state import OPENED, MachineState, OpenBlock
from blockpty.engine.outcome import NO_HOOKS, is_whole, lacks_hooks
from blockpty.engine.records import exit_number, finished, number, word
from blockpty.engine.states import ShellState
from blockpty.model.entries import Entry
from blockpty.model.events import Event, Signal


class BlockBuilder:
    """Keeps the open block of a state, and collects events to be written and signals for waits."""

    def __init__(self, state: MachineState) -> None:
        self.state = state
        self.events: list[Event] = []
        self.signals: list[Signal] = []

    def taken(self) -> tuple[list[Event], list[Signal]]:
        """Return what has been collected since the last call."""
        events, signals = self.events, self.signals
        self.events, self.signals = [], []
        return events, signals

    def open(self, offset: int, typed: str = "", degraded: str | None = None, *, other: bool = False) -> None:
        """Open the block of the pending submission; when there is none, or this is another line, of what was typed."""
        state = self.state
        if offset < state.classified:
            # What has passed since then is output after all.
            self.signals.append(Signal("output", offset, state.classified))
        submission = {} if other else state.submission or {}
        seq = state.next_block
        state.next_block += 1
        kind = str(submission.get("kind", "user"))
        block = OpenBlock(
            seq=seq,
            kind=kind,
            cmd=str(submission.get("cmd", typed)),
            cwd=state.current.cwd,
            cwd_b64=state.current.cwd_b64,
            ts_begin=int(submission.get("ts", state.ts)),
            begin=offset,
            author=str(submission.get("author", "user")),
            session_id=f"s{seq}" if kind == "session" else None,
            request=submission.get("request"),
            degraded=degraded,
            incomplete=submission.get("incomplete") is True,
            awaited=submission.get("awaited") is True,
        )
        state.block, state.submission = block, state.submission if other else None
        if state.echo.out_end is not None:
            state.echo.note_output_end(None)
        state.hints, state.nested = 0, None
        if block.request is not None:
            state.last_opened = (*state.last_opened[1 - OPENED :], (block.request, seq, block.ts_begin))
        self._emit_begin(block, offset)
        if block.session_id:
            self.emit("agent_session_begin", offset, session_id=block.session_id, block_id=block.block_id)
        self.begin_region(offset)

    def _emit_begin(self, block: OpenBlock, offset: int) -> None:
        fields: dict[str, Any] = {
            "block_id": block.block_id, "block_seq": block.seq, "kind": block.kind, "cmd": block.cmd,
            "cwd": block.cwd, "ts_begin": block.ts_begin, "author": block.author,
        }  # fmt: skip
        if block.session_id:
            fields["session_id"] = block.session_id
        self.emit("agent_block_begin", offset, **fields)

    def open_background(self, begin: int, offset: int) -> None:
        """Open a block for what no command of the shell's foreground printed; its first bytes are there already."""
        state = self.state
        state.background = block = OpenBlock(
            seq=state.next_block, kind="background", cmd="", cwd=state.current.cwd, cwd_b64=state.current.cwd_b64,
            ts_begin=state.ts, begin=begin, author="engine", session_id=None, request=None,
        )  # fmt: skip
        state.next_block += 1
        self._emit_begin(block, offset)
        state.region.delta_begin = begin
        self.cut(offset)

    def close_background(self) -> None:
        """Nothing that comes now is background output, until a silence; close the block of what came, if any."""
        state, block = self.state, self.state.background
        state.unattributed.stop()
        if block is None:
            return
        # Not the place of an entry: bytes before it may still turn out to be the beginning of a mark.
        self.cut(state.classified)
        block.ended_at, block.ts_end, block.state = state.classified, state.ts, "ended"
        state.background = state.region.delta_begin = None
        self._emit_end(finished(block, state.system), block.ended_at)

    def open_unseen(self, reason: str, limit: int | None = None) -> None:
        """Open a block whose BEGIN never came: its output begins after the echo of the submitted line."""
        state = self.state
        begin = state.echo.behind_line(state.submission, state.current.name)
        self.open(begin if limit is None else min(begin, limit))
        assert self.state.block is not None  # open has just made it
        self.state.block.degraded = "prompt_only" if self.state.current.prompt_only else reason

    def open_program(self, offset: int) -> None:
        """Open the block of what has the terminal, which the spawn entry has named."""
        source = self.state.source or {"kind": "shell", "command": "", "author": "engine"}
        self.state.submission = {"kind": "session", "cmd": source["command"], "author": source["author"]}
        self.open(offset, degraded=NO_HOOKS if lacks_hooks(source) else None)

    def open_rejected(self, end: int) -> None:
        """Open the block of a line that the shell did not run; what it printed about it is the output."""
        state = self.state
        known = state.echo.line_end is not None and is_keyed(state.submission)
        if known:
            end = state.echo.out_end if state.echo.out_end is not None else end
            end = min(end, state.echo.behind_line(state.submission, state.current.name))
        self.open(end)

    def add_part(self, begin: int, end: int, typed: str = "") -> None:
        if self.state.block is None:
            self.open(end, typed)
            return
        self.end_region(begin)
        block = self.state.block
        block.parts += 1
        block.ended_at = block.ts_end = block.exit_status = None
        block.state = "running"
        self.state.echo.note_output_end(None)
        self.begin_region(end)

    def end_output(self, offset: int, status: int | None) -> None:
        self.state.current.note_recovered("end_lost")
        if status is not None:
            self.state.exit_status = status
        if self.state.block is None:
            return
        self.end_region(offset)
        if self.state.block.ended_at is None or self.state.echo.out_end is not None:
            self.state.block.ended_at = self.state.echo.out_end if self.state.echo.out_end is not None else offset
        self.state.block.ts_end = self.state.ts
        self.state.block.exit_status = status

    def degrade(self, reason: str) -> None:
        """Keep why the borders or the output of the open block are less than certain."""
        assert self.state.block is not None  # the callers have asked
        self.state.block.degraded = reason

    def note_not_run(self, state: str) -> None:
        """The line of the open block did not run: it was "cancelled" or "rejected"."""
        assert self.state.block is not None  # the caller has just opened it
        self.state.block.state = state

    def exit_block(self, offset: int) -> None:
        state = self.state
        if state.shell is ShellState.SUBMITTED and state.submission is not None:
            self.open_unseen("begin_lost")
        if state.block is not None and state.block.ended_at is None:
            state.block.exit_status = (state.exit or {}).get("status")
            state.block.signal = (state.exit or {}).get("signal")
            whole = "ended" if is_whole(state.source, state.block) else "shell_exited"
            state.block.state = (state.exit or {}).get("reason") or whole
            if (state.exit or {}).get("lost"):
                state.block.state = "lost"
        self.close(offset)
        self.region(None, offset)

    def leave_block(self, offset: int) -> None:
        """Close the open block: the shell that it started, or that replaced its own, gets our hooks and blocks."""
        state = self.state
        self._open_pending()
        if state.block is not None:
            state.block.degraded = "shell_entered"
            self.close(offset, state="ended")
        self.region(None, offset)

    def _open_pending(self) -> None:
        """Open the block of a submission whose BEGIN has not come; one that came while a block is open has none."""
        if self.state.submission is not None and self.state.block is None:
            self.open_unseen("begin_lost")
        self.state.submission = None

    def end_block(self, offset: int, status: int | None) -> None:
        """Close what was open in a shell that has ended, with the status that the shell outside of it reports."""
        state = self.state
        self._open_pending()
        if state.block is not None and state.block.ended_at is None:
            self.close(offset, status=status, state="shell_exited")
        else:
            self.close(offset)
        self.region(None, offset)

    def close(self, offset: int, *, status: int | None = None, state: str | None = None) -> None:
        """Close the open block, if there is one; its end and status came with END, or are `offset` and `status`."""
        block = self.state.block
        waits = block is None and is_keyed(self.state.submission)
        if not waits and (block is None or block.request is not None):
            # One that came while a submitted block ran belongs to nothing any more; behind a typed line it comes next.
            self.state.submission = None
        if block is None:
            return
        if block.ended_at is None:
            self.end_region(offset)
            block.ended_at = self.state.echo.out_end if self.state.echo.out_end is not None else offset
            block.ts_end = self.state.ts
            if block.exit_status is None:
                block.exit_status = status
        if state is not None:
            block.state = state
        elif block.state == "running":
            interrupted = block.exit_status == 130 and self.state.interrupted
            rejected = block.incomplete and block.exit_status != 0
            block.state = "interrupted" if interrupted else "rejected" if rejected else "ended"
        self.state.interrupted = False
        self.state.block = None
        record = finished(block, self.state.system)
        self.state.session_over = block.session_id is not None
        self.state.awaited_over = block.awaited
        if block.session_id:
            self.emit("agent_session_end", offset, session_id=block.session_id, block_id=record["block_id"],
                       exit_status=block.exit_status, state=record["state"])  # fmt: skip
        self._emit_end(record, offset)

    def _emit_end(self, record: dict[str, Any], offset: int) -> None:
        self.emit("agent_block_end", offset, block_id=record["block_id"], exit_status=record["exit_status"],
                   state=record["state"], block=record)  # fmt: skip
        if self.state.pictures:
            self.picture(offset, offset, record["block_id"])

    def noted(self, offset: int, note: Mapping[str, Any]) -> None:
        """Take a note that speaks of pictures; records of older engines keep the events that they have."""
        if note["type"] == "owner":
            self.state.pictures = self.state.pictures or note.get("pictures") is True
        elif self.state.pictures:
            self.picture(offset, min(number(note, "at", offset), offset), None)

    def take_imported(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Take a note of an imported recording, which opens or closes a block at its place; bytes decide nothing there.

        The bytes before its offset have been classified.
        """
        state = self.state
        self.close(entry.offset, status=exit_number(note), state="ended")
        cmd = word(note, "cmd")
        if cmd is not None:
            state.submission = {"kind": "user", "cmd": cmd, "ts": entry.ts, "author": "user"}
            self.open(entry.offset)

    def picture(self, offset: int, at: int, block_id: str | None) -> None:
        """Name a place whose picture is of interest. The picture itself is a function of the record up to there."""
        cols, rows = self.state.size
        self.emit("screen_snapshot", offset, block_id=block_id, at=at, cols=cols, rows=rows,
                  alt_screen=self.state.screen.shown)  # fmt: skip

    # What speaks of another shell inside the block

    def hinted(self, begin: int, end: int, hint: Hint) -> None:
        """Emit what another shell integration printed, if it is output of the foreground, up to `MAX_HINTS`."""
        state = self.state
        if self._in_output() and state.hints <= MAX_HINTS:
            if hint == PROMPT_BEGINS:
                state.nested = state.nested or "hints"
            more = {"more": True} if state.hints == MAX_HINTS else {}
            state.hints += 1
            self.emit("hint", begin, source=hint.source, kind=hint.kind, span=[begin, end], **more)

    def marked(self) -> None:
        """A mark of ours came as a shell writes it that has our prompts and is not ours."""
        if self._in_output():
            self.state.nested = "marks"

    def _in_output(self) -> bool:
        state = self.state
        return state.shell is ShellState.RUNNING and state.region.kind == "output" and state.block is not None

    # Regions and deltas

    def begin_region(self, offset: int) -> None:
        self.state.region.delta_begin, self.state.region.delta_ts = offset, self.state.ts
        self.region("output", offset)

    def end_region(self, offset: int) -> None:
        if self.state.region.delta_begin is not None:
            self.cut(offset)
            self.state.region.delta_begin = None
            self.region(None, offset)

    def region(self, kind: str | None, offset: int) -> None:
        if kind != self.state.region.kind:
            self.state.region.kind = kind
            self.signals.append(Signal("region", offset, kind))

    def cut(self, end: int) -> None:
        """Emit what has come since the last delta."""
        begin, block = self.state.region.delta_begin, self.state.block or self.state.background
        if begin is not None and end > begin and block is not None:
            self.state.region.delta_begin, self.state.region.delta_ts = end, self.state.ts
            self.emit("agent_block_delta", end, block_id=block.block_id, span=[begin, end])

    def emit(self, kind: str, cursor: int, /, **fields: Any) -> None:
        """Add an event; no field may have a name of `ENVELOPE`."""
        self.events.append(Event(self.state.next_event, self.state.ts, cursor, kind, fields))
        self.state.next_event += 1
