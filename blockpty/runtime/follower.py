"""Follower of a live record: reads what is new, slice by slice, and passes each step on.

`_take` is the only place where the machine moves. It never awaits, so it cannot be interrupted half way. It is called
in turn with all other records of the loop when the host notifies or a slow timer fires (a lost notification costs time,
never data), and at once, for more bytes, where a caller knows from the host that something was recorded.

Beside the follower, not in it: the deriver writes what follows from the record, the wait registry answers waits, the
subscribers are notified. They act in this order, so that nothing is known outside that is not written.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

from blockpty.engine.machine_state import MachineState
from blockpty.engine.records import new_nonce
from blockpty.engine.states import ShellState
from blockpty.errors import SpoolError
from blockpty.host.recovery import boot_id
from blockpty.model.events import Event
from blockpty.runtime.background_tasks import BackgroundTasks
from blockpty.runtime.deriver import Deriver
from blockpty.runtime.drawn import DrawnStream
from blockpty.runtime.expected_echo import ExpectedEcho
from blockpty.runtime.rcfiles import remove_private
from blockpty.runtime.record_reader import Position, RecordReader, Step, resume_points
from blockpty.runtime.redactor import Redactor
from blockpty.runtime.scheduler import scheduler_of
from blockpty.runtime.shared_pieces import SharedPieces
from blockpty.runtime.subscribers import Subscribers
from blockpty.runtime.wait_registry import WaitRegistry
from blockpty.runtime.waits import ResumePoint, ResumePoints, first_point
from blockpty.screen.bells import Bells
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout
from blockpty.spool.log_start import LogStart, load_log_start
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader

if TYPE_CHECKING:
    from blockpty.runtime.joining import Joining
    from blockpty.runtime.screens import Screens

# Bytes and steps taken at most at once for a caller that has asked: they were recorded before the host's reply to it.
CATCH_UP_BYTES: Final = 1024 * 1024
CATCH_UP_STEPS: Final = 4096
# A slice, which a record takes in its turn, in bytes and in steps: 0.3 ms. Steps that end blocks take longer, so no
# other step is begun after so long.
SLICE_BYTES: Final = 128 * 1024
SLICE_STEPS: Final = 64
SLICE_SECONDS: Final = 0.002
# The same where a wait searches the text, which is redacted for it first: 1 ms, 8 ms where every word needs a look.
SEARCHED_BYTES: Final = 32 * 1024
# The same where no other record waits for its turn and no wait searches the text: below 2 ms.
ALONE_BYTES: Final = 256 * 1024
RECHECK_SECONDS: Final = 0.25
# Notifications are not lost in practice: another recorder that takes over sends one.
LONGEST_RECHECK_SECONDS: Final = 60.0

_POINT_EVENTS: Final = frozenset({"input", "prompt", "agent_block_begin"})
_WITH_NONCE: Final = frozenset({"spawn", "note"})


def _left_in_order(saved: Mapping[str, Any] | None) -> bool:
    """Return whether an engine wrote this checkpoint at its own end, and no loss of power can have come after it."""
    left = saved.get("in_order") if saved is not None else None
    return isinstance(left, Mapping) and bool(left.get("forced") or left.get("boot") == boot_id() != "")


class Replies(Protocol):
    """Replies to the queries of programs to their terminal."""

    def look(self, data: bytes, state: MachineState) -> None:
        """Take what has just come; `state` is the machine's, after it."""


class Truncation(Protocol):
    """Truncation of a record to its budget of bytes."""

    def resume(self) -> None:
        """Go on from where the record begins now."""

    def passed(self) -> None:
        """Note that more has been read and written."""


class RecordFollower:
    """Follows a record; with `owner` it also derives its files, with `truncation` it keeps them within a budget.

    Attributes:
        deriver, waits, subscribers, screens, joining, pieces: its collaborators.
        tasks: what runs beside the calls of this conversation; `close` cancels it.
        reader: the machine, and how far it has read.
        state: the machine's state; read it, never change it.
        points: places from which the record can be read again.
        echo: what may still come back of what was typed.
        mask: the nonces of its shells.
        answers: replies to what programs ask the terminal; None while old bytes are read.
        bells: those in what arrives; not in old bytes.
        closed: whether `close` was called.
    """

    def __init__(
        self, conversation_id: str, layout: Layout, *, owner: bool, durability: str = "process", redact: bool = True,
        truncation: Callable[[RecordFollower], Truncation] | None = None,
    ) -> None:  # fmt: skip
        self._redact = redact
        self._truncation = truncation(self) if truncation is not None else None
        self._loop = asyncio.get_running_loop()
        # What the loop counts time with; asking the loop costs one more call at each step.
        self._clock = time.monotonic
        self._timer: asyncio.TimerHandle | None = None
        self._pause = RECHECK_SECONDS
        self._scheduler = scheduler_of(self._loop)
        self._cleaned_instance = 0
        self.layout = layout
        self.stream = StreamReader(layout.stream)
        self.drawn = DrawnStream(layout)
        self.mask: Mask = Mask()
        self.closed = False
        self.answers: Replies | None = None
        self.bells = Bells()
        self.pieces = SharedPieces(self.stream, self.drawn, lambda: self.redactor)
        self.tasks = BackgroundTasks()
        self.waits = WaitRegistry()
        self.subscribers = Subscribers()
        self.deriver = Deriver(
            conversation_id, layout, self.stream, durability, lambda: self.reader.sync(), self._checkpoint
        )
        try:
            self._resume(owner)
        except BaseException:
            self._close_files()
            raise

    def _resume(self, owner: bool) -> None:
        saved = checkpoint.load_checkpoint(self.layout.checkpoint)
        beginning = load_log_start(self.layout.directory)
        self.points, self.echo = ResumePoints(first_point(beginning)), ExpectedEcho()
        (state, timeline), journal, marks = self.points.first, None, None
        if beginning is not None:
            journal, marks = beginning.journal, beginning.marks()
        in_order = _left_in_order(saved)
        points = resume_points(saved, self.layout, self.stream, whole=owner and not in_order)
        if saved is not None and points:
            state, timeline, journal, marks = *points[-1], saved["journal"], saved["files"]
            for point in points:
                self.points.add(point[0], Position(point[0].classified, point[1]))
        self.reader = RecordReader(self.layout, self.stream, state, timeline)
        self.state = self.reader.machine.state
        if journal is not None:
            self.mask = Mask(journal["nonces"])
        if owner:
            first = None if points and in_order else 1 if beginning is None else beginning.first_block()
            self.mask = self.deriver.start(self.mask, journal, marks, first)
            if self._truncation is not None:
                self._truncation.resume()

    @property
    def redactor(self) -> Redactor:
        """The redaction of all output."""
        return Redactor(self.mask, self._redact)

    async def catch_up(self) -> None:
        """Read everything that is there, in turn with all others, and go on."""
        await self.drain()
        self._recheck()

    def become_owner(self) -> None:
        """Begin to write the derived files, from the last checkpoint on."""
        self.reader.close()
        self._resume(True)

    def reopen(self, *, owner: bool) -> None:
        """Go on after `close`, from the checkpoint."""
        self.closed = False
        self.pieces.clear()
        self.deriver.reopen()
        self._resume(owner)

    def derive_again(self) -> None:
        """Derive everything from the record's beginning, from nothing that was saved; the waits end as cancelled."""
        self.close()
        self.layout.checkpoint.unlink(missing_ok=True)
        self.reopen(owner=True)

    def check_identity(self) -> None:
        """Raise SpoolCorrupt when another record has taken the place of this one."""
        if not self.closed and self.deriver.replaced():
            assert self.deriver.problem is not None
            raise self.deriver.problem

    # Reading

    def pump(self) -> bool:
        """Take what is new, at most about `CATCH_UP_BYTES`; return whether there is more, which is taken in turn."""
        if not self._take(CATCH_UP_BYTES, CATCH_UP_STEPS):
            return False
        self._scheduler.queue(self._slice)
        return True

    def notified(self) -> None:
        """Take what is new when it is this record's turn: the host has said that the record grew."""
        self._scheduler.ask(self._slice)

    async def drain(self) -> None:
        """Read everything that is there, in turn with all others."""
        while self._slice():
            await self.deriver.uncrowd()
            await self._scheduler.turn()

    async def turn(self) -> None:
        """Return when the caller may take a slice of its own, in the same queue as all records."""
        await self._scheduler.turn()

    def _recheck(self) -> None:
        if not self.closed:
            before = self.reader.position
            self.notified()
            # Thousands of idle conversations must not keep the loop busy with looking.
            idle = self.reader.position == before and self.deriver.problem is None
            self._pause = min(self._pause * 2, LONGEST_RECHECK_SECONDS) if idle else RECHECK_SECONDS
            self._timer = self._loop.call_later(self._pause, self._recheck)

    def _slice(self) -> bool:
        until = self._clock() + SLICE_SECONDS
        if self.waits.reads:
            return self._take(SEARCHED_BYTES, SLICE_STEPS, until)
        return self._take(ALONE_BYTES if self._scheduler.idle else SLICE_BYTES, SLICE_STEPS, until)

    def _take(self, room: int, steps: int, until: float = math.inf) -> bool:
        """Take about so many bytes and at most so many steps, for about so long; return whether there is more."""
        if self.closed or not self.deriver.may_write():
            return False
        self.reader.look()
        more = False
        events: list[Event] = []
        moved = False
        while (step := self.reader.step()) is not None:
            moved = True
            events += step.events
            self.echo.take(step, self.state, self.reader.position)
            self._mark_point(step)
            if self.answers is not None and step.data:
                self.answers.look(step.data, self.state)
                self.bells.feed(step.data, self.state.ts)
            self.waits.take(step)
            room -= len(step.data)
            steps -= 1
            if room <= 0 or not steps or self._clock() >= until:
                more = True
                break
        if not self.deriver.write(events) or not (more or self.deriver.settle()):
            return False
        self.waits.answer()
        if moved:
            self.subscribers.notify()
            self.deriver.save_soon()
            if self._truncation is not None:
                self._truncation.passed()
        return more

    def _mark_point(self, step: Step) -> None:
        entry, state = step.entry, self.state
        for event in step.events:
            if event.type in _POINT_EVENTS:
                self.points.add(state, self.reader.position)
                break
        else:
            # Who asks again and again leaves no silence, but notes of each wait.
            if entry is not None and entry.kind in ("silence", "note"):
                self.points.pause(state, self.reader.position, self.echo.filter)
        if entry is not None and entry.kind in _WITH_NONCE and (nonce := new_nonce(entry)):
            self.mask.add(nonce)
        if state.shell is ShellState.STARTING or self._cleaned_instance == state.instance:
            return
        if self.deriver.active:
            # The shell has read its rc file to the end.
            self._cleaned_instance = state.instance
            remove_private(self.layout.directory, state.instance)

    # Submissions

    def submitted(self, request: str) -> tuple[int, int]:
        """Return number and time of the block that a recorded submission became."""
        state = self.state
        # A flood of background output may lie before it, and its blocks take numbers too.
        while (opened := state.opened_by(request)) is None:
            more = self.pump()
            if not more or (state.submission or {}).get("request") == request:
                break
        if opened is None:
            opened = state.opened_by(request)
        return opened or (state.next_block, int((state.submission or {}).get("ts", state.ts)))

    # Checkpoints and the end

    def begin_at(self, beginning: LogStart) -> bool:
        """Forget what lies before a new start of the log; return whether it may be removed."""
        if self.closed or not self.deriver.active:
            return False
        self.points.begin_at(first_point(beginning))
        self.deriver.rebase(beginning.first_block())
        self.deriver.save()
        return True

    def _checkpoint(self, last: bool) -> dict[str, Any] | None:
        """Return what a checkpoint holds; None while there is nothing that can be vouched for."""
        parts = self.deriver.parts() if not self.closed else None
        if parts is None:
            return None
        points: Iterable[ResumePoint] = [*self.points.sparse, ResumePoint(self.state, self.reader.position.timeline)]
        return {
            "format": checkpoint.FORMAT_VERSION,
            "points": [{"state": point.state.to_dict(), "timeline": point.timeline} for point in points],
            **parts,
            "ends": [*self.reader.position],
            "in_order": {"boot": boot_id(), "forced": self.deriver.syncs} if last else None,
        }

    async def save_ahead(self) -> None:
        """Do beside the loop most of what `close` would do on it."""
        self.pump()
        if not self.closed:
            await self.deriver.save_ahead()

    def close(self) -> None:
        """Write a checkpoint and close the files; waits end as cancelled."""
        if self.closed:
            return
        with contextlib.suppress(SpoolError):
            # Closing cannot repair what is wrong with the files.
            self.pump()
            self.deriver.save(last=True)
        self.closed = True
        self.tasks.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self.waits.cancel()
        self.subscribers.notify()
        self.reader.close()
        self._close_files()

    # Both draw, and much is loaded for that: most conversations end before their screen is looked at.

    @cached_property
    def screens(self) -> Screens:
        """The screens of the record."""
        from blockpty.runtime.screens import Screens

        return Screens(self.layout, self.drawn, lambda: self.mask)

    @cached_property
    def joining(self) -> Joining:
        """Where clients that watch the terminal join."""
        from blockpty.runtime.joining import Joining

        return Joining(self)

    def _close_files(self) -> None:
        for name in ("joining", "screens"):
            if name in self.__dict__:
                getattr(self, name).close()
        self.stream.close()
        self.drawn.close()
        self.deriver.close()
