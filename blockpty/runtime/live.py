"""One conversation's record, followed live: bytes and entries in, files written, waits answered, watchers told.

Rules of this file: nobody hears of anything that is not written. `_take` is the only place where the machine moves: a
bite at a time when the doorbell or a slow timer says so (a lost ring costs some time, never data), in turn with all
other records of the loop; at once, and more, for whoever has just been told by the host that something was recorded. It
never awaits, so it cannot be interrupted half way.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterable, Mapping
from typing import Any, Final

from blockpty.engine.records import new_nonce
from blockpty.engine.snapshot import MachineState
from blockpty.engine.states import ShellState
from blockpty.engine.waiter import Outcome
from blockpty.errors import SpoolCorrupt, SpoolError, StorageFull
from blockpty.host.mending import boot_id
from blockpty.model.block import Block
from blockpty.model.events import Event
from blockpty.runtime.answers import Answers
from blockpty.runtime.covered import Cover
from blockpty.runtime.drawn import DrawnStream
from blockpty.runtime.fold import Fold, Position, Step, resume_points
from blockpty.runtime.keeping import Keeping
from blockpty.runtime.pending import LiveWait, read_existing
from blockpty.runtime.saving import Saving
from blockpty.runtime.screens import Screens
from blockpty.runtime.turns import turns_of
from blockpty.runtime.waits import ResumePoint, ResumePoints, WaitRequest, first_point
from blockpty.spool import checkpoint
from blockpty.spool.beginning import Beginning, load_beginning
from blockpty.spool.journal import Journal
from blockpty.spool.layout import Layout
from blockpty.spool.masking import Mask
from blockpty.spool.place import Place
from blockpty.spool.sink import FileSink
from blockpty.spool.stream import StreamReader

# Bytes and steps taken at most for somebody who has asked: they were recorded before the answer that he has got.
SLICE: Final = 1024 * 1024
SLICE_STEPS: Final = 4096
# What a reader takes in its turn, in bytes and in steps: 0.3 ms.
BITE: Final = 128 * 1024
# The same where a wait looks at the text, which is covered for it first: 1 ms, 8 ms where every word needs a look.
LOOKED_AT: Final = 32 * 1024
# The same where nobody else waits for a turn and no wait looks at the text: below 2 ms.
ALONE: Final = 256 * 1024
BITE_STEPS: Final = 64
RECHECK_SECONDS: Final = 0.25
# A ring is not lost in practice: a bell that is handed to another recorder is rung.
LONGEST_RECHECK_SECONDS: Final = 60.0
# Finished blocks that are known without looking into the file.
RECENT_BLOCKS: Final = 64
# How long a submitted command may take to begin before input is typed, or a signal sent, all the same.
BEGIN_SECONDS: Final = 5.0

# Derived files are forced before a checkpoint speaks of them, and when that many bytes have come.
FORCE_BYTES: Final = 8 * 1024 * 1024

_BORDERS: Final = frozenset({"agent_block_begin", "agent_block_end"})
_POINT_EVENTS: Final = frozenset({"prompt", "agent_block_begin"})


def _left_in_order(saved: Mapping[str, Any] | None) -> bool:
    """Whether an engine wrote this checkpoint at its own end, and no loss of power can have come after it."""
    left = saved.get("in_order") if saved is not None else None
    return isinstance(left, Mapping) and bool(left.get("forced") or left.get("boot") == boot_id() != "")


class LiveRecord:
    """Follows a record; with `owner` it also writes the derived files, and keeps all to about `keep` bytes."""

    def __init__(
        self, conversation_id: str, layout: Layout, *, owner: bool, durability: str = "process", redact: bool = True,
        keep: int | None = None,
    ) -> None:  # fmt: skip
        self._durability = durability
        self._redact = redact
        self._unforced = False
        self._keeping = Keeping(self, keep) if keep is not None else None
        self.layout = layout
        self.stream = StreamReader(layout.stream)
        self.drawn = DrawnStream(layout)
        self.screens = Screens(layout, self.drawn, lambda: self.mask)
        self._loop = asyncio.get_running_loop()
        self._conversation_id = conversation_id
        self._journal: Journal | None = None
        self._sink: FileSink | None = None
        self._settled = False
        self._waits: list[LiveWait] = []
        self._watchers: set[asyncio.Future[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._pause = RECHECK_SECONDS
        self._turns = turns_of(self._loop)
        self._saving = Saving(self._loop, layout, durability != "process", self._checkpoint)
        self.closed = False
        self._cleaned_instance = 0
        self.mask = Mask()
        self.recent: dict[str, Block] = {}
        # Why nothing can be written: for now, or because the record was replaced.
        self.problem: SpoolError | None = None
        self._place = Place(layout)
        # Who answers what programs ask the terminal; None while old bytes are read.
        self.answers: Answers | None = None
        self._answered: list[tuple[LiveWait, Outcome]] = []
        self._unremembered: list[Event] = []
        try:
            self._resume(owner)
        except BaseException:
            self._let_go()
            raise

    def _resume(self, owner: bool) -> None:
        saved = checkpoint.load_checkpoint(self.layout.checkpoint)
        beginning = load_beginning(self.layout.directory)
        self.points = ResumePoints(first_point(beginning))
        (state, timeline), journal, marks = self.points.first, None, None
        if beginning is not None:
            journal, marks = beginning.journal, beginning.marks()
        in_order = _left_in_order(saved)
        points = resume_points(saved, self.layout, self.stream, whole=owner and not in_order)
        if saved is not None and points:
            state, timeline, journal, marks = *points[-1], saved["journal"], saved["files"]
            for point in points:
                self.points.add(point[0], Position(point[0].classified, point[1]))
        self.fold = Fold(self.layout, self.stream, state, timeline)
        if journal is not None:
            self.mask = Mask(journal["nonces"])
        if owner:
            first = None if points and in_order else 1 if beginning is None else beginning.first_block()
            self._sink = FileSink(self.layout, forces=self._durability != "process", marks=marks, first_block=first)
            self._settled = False
            self._journal = Journal(self._conversation_id, self.stream, self._sink, self.mask)
            if journal is not None:
                self._journal.restore(journal)
                self.mask = self._journal.mask
            if self._keeping is not None:
                self._keeping.resume()

    @property
    def state(self) -> MachineState:
        """The machine's state; read it, never change it."""
        return self.fold.machine.state

    @property
    def cover(self) -> Cover:
        """What is covered in all that leaves."""
        return Cover(self.mask, self._redact)

    @property
    def owner(self) -> bool:
        """Whether this engine writes the derived files."""
        return self._journal is not None

    @property
    def waits(self) -> int:
        """How many waits have no answer yet."""
        return len(self._waits)

    async def catch_up(self) -> None:
        """Read everything that is there, in turn with all others, and go on."""
        await self.drain()
        self._recheck()

    def become_owner(self) -> None:
        """Begin to write the derived files, from the last checkpoint on."""
        self.fold.close()
        self._resume(True)

    def reopen(self, *, owner: bool) -> None:
        """Go on after `close`, from the checkpoint."""
        self.closed, self.problem = False, None
        self._place = Place(self.layout)
        # Another record may lie there by now.
        self.recent.clear()
        self._resume(owner)

    def pump(self) -> bool:
        """Take what is new, at most about `SLICE` bytes; return whether there is more, which is then taken in turn."""
        if not self._take(SLICE, SLICE_STEPS):
            return False
        self._turns.queue(self._bite)
        return True

    def rung(self) -> None:
        """Take what is new when it is this record's turn: what the doorbell calls."""
        self._turns.ask(self._bite)

    def check_place(self) -> None:
        """Raise SpoolCorrupt when another record has taken the place of this one."""
        if not self.closed and self.replaced():
            assert self.problem is not None
            raise self.problem

    def replaced(self) -> bool:
        """Whether another record lies where this one was: then nothing of this one may be written there."""
        if self._sink is not None and not isinstance(self.problem, SpoolCorrupt):
            try:
                self._place.check(self._sink.events.descriptor, made_again=self._sink.made_again)
                self._sink.made_again = False
            except SpoolCorrupt as problem:
                self.problem = problem
        return isinstance(self.problem, SpoolCorrupt)

    def derive_again(self) -> None:
        """Derive everything from the record's beginning, from nothing that was saved; the waits end as cancelled."""
        self.close()
        self.layout.checkpoint.unlink(missing_ok=True)
        self.reopen(owner=True)

    def _bite(self) -> bool:
        if any(wait.waiter.reads for wait in self._waits):
            return self._take(LOOKED_AT, BITE_STEPS)
        return self._take(ALONE if self._turns.idle else BITE, BITE_STEPS)

    def _take(self, room: int, steps: int) -> bool:
        """Take about so many bytes and at most so many steps; return whether there is more."""
        if self.closed or self.replaced():
            return False
        self.fold.look()
        more = False
        events: list[Event] = []
        moved = False
        while (step := self.fold.step()) is not None:
            moved = True
            events += step.events
            self._mark_point(step)
            if self.answers is not None and step.data:
                self.answers.look(step.data, self.state)
            for wait in list(self._waits):
                outcome = wait.take(step)
                if outcome is not None:
                    self._answered.append((wait, outcome))
                    self._waits.remove(wait)
            room -= len(step.data)
            steps -= 1
            if room <= 0 or not steps:
                more = True
                break
        if not self._write(events) or not (more or self._settle()):
            return False
        answered, self._answered = self._answered, []
        for wait, outcome in answered:
            if not wait.future.done():
                wait.future.set_result(outcome)
        if moved:
            self._tell()
            if self._keeping is not None:
                self._keeping.passed()
        return more

    def derived(self) -> dict[str, Any] | None:
        """Return how far the derivation has come, for a beginning; None where this engine does not derive, or waits."""
        if self._journal is None or self._sink is None or self._journal.pending:
            return None
        marks = self._sink.marks()
        files = {name: [marks[name][0], marks[name][2]] for name in ("events", "blocks")}
        return {"journal": self._journal.snapshot(), "files": files}

    def begins(self, beginning: Beginning) -> bool:
        """Let go of what lies before a beginning; whether it may be removed."""
        if self.closed or self._sink is None:
            return False
        self.points.begin_at(first_point(beginning))
        first = beginning.first_block()
        self.recent = {name: block for name, block in self.recent.items() if block.seq >= first}
        self._sink.rebase(first)
        self.save()
        return True

    def _write(self, events: list[Event]) -> bool:
        """Write what follows from events; False while there is no space, and then nobody may hear of them yet."""
        if self._journal is None or not (events or self._journal.pending or self._unforced or self._saving.failed):
            return True
        try:
            self._journal.append(events)
            self._force(events)
        except StorageFull as problem:
            self.problem = problem
            self._unremembered += events
            return False
        self.problem = None
        self._remember([*self._unremembered, *events])
        self._unremembered.clear()
        return True

    def _settle(self) -> bool:
        """Everything that was there has been derived: nothing stands behind it. False while there is no space."""
        if self._sink is None or self._settled:
            return True
        try:
            self._sink.settle()
        except StorageFull as problem:
            self.problem = problem
            return False
        self._settled, self.problem = True, None
        return True

    def _force(self, events: Iterable[Event]) -> None:
        """Have on the medium what must be before anybody hears of these events."""
        assert self._sink is not None
        told = self._durability == "always" or (
            self._durability == "block" and any(event.type in _BORDERS for event in events)
        )
        if not (told or self._unforced or self._saving.failed):
            if self._saving.forces and self._sink.unforced >= FORCE_BYTES:
                self._saving.force(self._sink)
            return
        self._unforced, self._saving.failed = True, False
        try:
            if self._durability in ("block", "always"):
                self.fold.force()
            self._sink.force()
        except OSError as problem:
            raise StorageFull(
                f"{self._conversation_id} cannot be forced to the medium: {problem.strerror}",
                hint="look at the disk; what waits for it goes on by itself",
            ) from None
        self._unforced = False

    def _remember(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.type == "agent_block_end":
                self.recent[event.fields["block_id"]] = Block.from_dict(event.fields["block"])
                if len(self.recent) > RECENT_BLOCKS:
                    del self.recent[next(iter(self.recent))]

    def _mark_point(self, step: Step) -> None:
        entry = step.entry
        if entry is not None and (nonce := new_nonce(entry)):
            self.mask.add(nonce)
        if (entry is not None and entry.kind == "input") or (
            step.events and not _POINT_EVENTS.isdisjoint([event.type for event in step.events])
        ):
            self.points.add(self.state, self.fold.position)
        elif entry is not None and entry.kind == "silence":
            self.points.pause(self.state, self.fold.position)
        if self.state.shell is not ShellState.STARTING and self._cleaned_instance != self.state.instance and self.owner:
            # The shell has read its rc file to the end: nobody needs the nonce on disk any more.
            self._cleaned_instance = self.state.instance
            shutil.rmtree(self.layout.directory / "rc" / str(self.state.instance), ignore_errors=True)

    def _tell(self) -> None:
        watchers, self._watchers = self._watchers, set()
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)
        if self._sink is not None and not self.closed:
            self._saving.soon(self._sink)

    def watch(self) -> asyncio.Future[None]:
        """Return what is done when something new has been read from this moment on: ask for it, look, then wait."""
        watcher: asyncio.Future[None] = self._loop.create_future()
        self._watchers.add(watcher)
        watcher.add_done_callback(self._forget)  # also when whoever waited has gone away
        return watcher

    async def changed(self, timeout: float | None = None) -> None:
        """Return when something new has been read, or the time is up; look before you call, it may have happened."""
        watcher = self.watch()
        try:
            await asyncio.wait((watcher,), timeout=timeout)
        finally:
            watcher.cancel()

    def _forget(self, watcher: asyncio.Future[None]) -> None:
        self._watchers.discard(watcher)

    async def begun(self, seconds: float) -> None:
        """Return when nothing that was submitted is still to begin and will say so, or the time is up."""
        deadline = self._loop.time() + seconds
        self.pump()
        while self.state.shell is ShellState.SUBMITTED and self._says_begin() and self._loop.time() < deadline:
            await self.changed(deadline - self._loop.time())

    def _says_begin(self) -> bool:
        # bash writes BEGIN to where its prompt goes.
        lost = self.state.shell_name == "bash" and (self.state.integrity_reason or "").startswith("prompt_lost")
        return self.state.begins and not lost

    async def drain(self) -> None:
        """Read everything that is there, in turn with all others."""
        while self._bite():
            await self._turns.turn()

    def submitted(self, request: str) -> tuple[int, int]:
        """Return number and time of the block that a recorded submission became."""
        # A flood of background output may lie before it, and its blocks take numbers too.
        while True:
            more = self.pump()
            opened = self.state.opened_by(request)
            if opened is not None:
                return opened
            if not more or (self.state.submission or {}).get("request") == request:
                break
        return self.state.next_block, int((self.state.submission or {}).get("ts", self.state.ts))

    def is_under_way(self, request: str) -> bool:
        """Whether a recorded submission runs, or still waits behind somebody else's line."""
        block, submission = self.state.block, self.state.submission or {}
        return submission.get("request") == request or (block is not None and block.request == request)

    def _recheck(self) -> None:
        if not self.closed:
            before = self.fold.position
            self.rung()
            # Thousands of idle conversations must not keep the loop busy with looking.
            idle = self.fold.position == before and self.problem is None
            self._pause = min(self._pause * 2, LONGEST_RECHECK_SECONDS) if idle else RECHECK_SECONDS
            self._timer = self._loop.call_later(self._pause, self._recheck)

    # Waits

    async def begin_wait(self, request: WaitRequest) -> tuple[LiveWait, Position]:
        """Start a wait: existing data first. Returns it with how far the record had been seen when it went live."""
        self.pump()
        if request.looks:
            for _ in self.screens.steps(self.fold.position):
                await asyncio.sleep(0)
        start = self.points.before(request.cursor)
        ahead = request.cursor >= self.fold.position.offset and not self.state.inputs and self._nothing_held()
        place = self.fold.position if ahead else start.position
        eye = self.screens.eye(place, request.redact) if request.looks else None
        waiter = request.waiter(self.stream, eye)
        future: asyncio.Future[Outcome] = self._loop.create_future()
        wait = LiveWait(waiter, future)
        if ahead:
            waiter.attach(self.state)
        else:
            fold = Fold(self.layout, self.stream, start.state, start.timeline)
            outcome = await read_existing(waiter, fold, lambda: self.fold.position, self._turns.turn, 2 * BITE)
            if outcome is not None:
                self._answer(wait, outcome)
                return wait, self.fold.position
        outcome = wait.begin(self.state)
        if outcome is not None:
            self._answer(wait, outcome)
        else:
            self._waits.append(wait)
        return wait, self.fold.position

    def _answer(self, wait: LiveWait, outcome: Outcome) -> None:
        """Answer from what has been read; if that could not be written yet, when it can."""
        if self.problem is None:
            wait.future.set_result(outcome)
        else:
            self._answered.append((wait, outcome))

    def end_wait(self, wait: LiveWait) -> None:
        """Forget a wait, answered or not."""
        wait.cancel()
        with contextlib.suppress(ValueError):
            self._waits.remove(wait)

    def _nothing_held(self) -> bool:
        return self.state.classified == self.fold.position.offset

    # Checkpoints

    def journal_sizes(self) -> tuple[int, int] | None:
        """Return the sizes of events.jsonl and blocks.jsonl; None when another engine writes them."""
        return self._sink.sizes() if self._sink is not None else None

    def save(self, *, last: bool = False) -> None:
        """Write a checkpoint, so that a next engine needs little re-reading; `last`: nothing comes after it."""
        if self._sink is not None:
            self._saving.now(self._sink, last=last)

    def _checkpoint(self, last: bool) -> dict[str, Any] | None:
        """Return what a checkpoint holds; None while there is nothing that can be vouched for."""
        if self._journal is None or self._sink is None or self._journal.pending or not self._settled or self.closed:
            return None
        if self.replaced():
            return None
        points: Iterable[ResumePoint] = [*self.points.sparse, ResumePoint(self.state, self.fold.position.timeline)]
        return {
            "format": checkpoint.FORMAT_VERSION,
            "points": [{"state": point.state.to_dict(), "timeline": point.timeline} for point in points],
            "journal": self._journal.snapshot(),
            "files": self._sink.marks(),
            "ends": [*self.fold.position],
            "in_order": {"boot": boot_id(), "forced": self._durability != "process"} if last else None,
        }

    async def save_ahead(self) -> None:
        """Do beside the loop most of what `close` would do on it."""
        self.pump()
        if self._sink is not None and not self.closed:
            await self._saving.ahead(self._sink)

    def close(self) -> None:
        """Write a checkpoint and close the files; waits end as cancelled."""
        if self.closed:
            return
        with contextlib.suppress(SpoolError):
            # Whoever closes cannot mend what is wrong with the files.
            self.pump()
            self.save(last=True)
        self.closed = True
        if self._keeping is not None:
            self._keeping.stop()
        if self.answers is not None:
            self.answers.close()
        if self._timer is not None:
            self._timer.cancel()
        for wait in self._waits:
            wait.cancel()
            wait.future.cancel()
        self._tell()
        self.fold.close()
        self._let_go()

    def _let_go(self) -> None:
        self.screens.close()
        self.stream.close()
        self.drawn.close()
        if self._sink is not None:
            self._sink.close()
