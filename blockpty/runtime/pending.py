"""Pending wait, not answered yet: asked at each step of the record, beside the event loop when that is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

from blockpty.engine.machine_state import MachineState
from blockpty.engine.matchers import PatternTimeout
from blockpty.engine.waiter import Outcome, Waiter
from blockpty.errors import BadCondition
from blockpty.runtime.background_tasks import BackgroundTasks
from blockpty.runtime.follower import SLICE_BYTES, RecordFollower
from blockpty.runtime.record_reader import Position, RecordReader, Step
from blockpty.runtime.wait_registry import Answer
from blockpty.runtime.waits import INLINE_BUDGET, PATIENCE, WaitRequest, advance
from blockpty.runtime.worker_threads import SLICE_SECONDS

# How a wait's turns grow that has much to read, and how far.
_GROWTH: Final = 1.01
_LONGEST_SLICE_SECONDS: Final = 0.004
# A step of the record is no longer, so that one does not take a turn of its own: 1 ms where every word needs a look.
_STEP_BYTES: Final = 16 * 1024
# What others need takes several turns of the loop, and each would come behind another of these.
_REST_SECONDS: Final = 0.002


async def begin_wait(
    live: RecordFollower, request: WaitRequest, since: Position | None = None
) -> tuple[PendingWait, Position]:
    """Start a wait: existing data first. Returns it with how far the record had been read when it went live.

    `since`: it went live there already, at a place of the record, such as that of an input; what has come since is new.
    """
    live.pump()
    looks = request.looks
    if looks:
        for _ in live.screens.steps(live.reader.position):
            await asyncio.sleep(0)
    position = live.reader.position
    start = live.points.before(request.cursor, None if since is None else since.timeline)
    nothing_held = live.state.classified == position.offset
    echo = live.echo.filter
    known = nothing_held and (not live.state.inputs or echo is not None)
    ahead = since is None and request.cursor >= position.offset and known
    source = live.screens.source(position if ahead else start.position, request.redact) if looks else None
    waiter = request.waiter(live.stream, source)
    wait = PendingWait(waiter, asyncio.get_running_loop().create_future(), live.tasks)
    outcome: Outcome | None = None
    if ahead:
        waiter.attach(live.state, echo)
    else:
        reader = RecordReader(live.layout, live.stream, start.state, start.timeline)
        waiter.attach(reader.machine.state, start.echo)
        outcome = await read_existing(
            waiter, reader, lambda: live.reader.position, live.turn, 2 * SLICE_BYTES, live_from=since
        )
    wait.existing = outcome is not None and since is None
    if outcome is None and since is None:
        outcome = wait.begin(live.state)
        wait.existing = outcome is not None
    if outcome is None:
        live.waits.add(wait)
    elif live.deriver.problem is None:
        wait.future.set_result(outcome)
    else:
        # What it follows from could not be written yet.
        live.waits.decided(wait, outcome)
    return wait, live.reader.position if since is None else since


class PendingWait:
    """A wait that has not been answered yet; slow patterns move it off the event loop.

    Attributes:
        existing: whether what was there already, before it went live, has answered it.
    """

    def __init__(self, waiter: Waiter, future: Answer, tasks: BackgroundTasks) -> None:
        self._tasks = tasks
        self.waiter = waiter
        self.future = future
        self.existing = False
        self._backlog: list[Step] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def reads(self) -> bool:
        """Whether the text decides, and not signals alone."""
        return self.waiter.reads

    def take(self, step: Step) -> Outcome | None:
        """Look at one step; an answer that takes long comes through the future instead."""
        if self._backlog is not None:
            self._backlog.append(step)
            return None
        return self._at_once(lambda: advance(self.waiter, step), self.waiter.resume)

    def begin(self, state: MachineState) -> Outcome | None:
        """Existing data is through, `state` is the machine's now; an answer that takes long comes by the future."""
        then = state.copy()
        return self._at_once(lambda: self.waiter.begin(then), lambda: self.waiter.begin(then))

    def _at_once(self, ask: Callable[[], Outcome | None], again: Callable[[], Outcome | None]) -> Outcome | None:
        try:
            return ask()
        except PatternTimeout:
            self._backlog = []
            self._task = self._tasks.start(self._slowly(again))
            return None

    def cancel(self) -> None:
        """Stop looking."""
        if self.waiter.screen_source is not None:
            self.waiter.screen_source.close()
        if self._task is not None:
            self._task.cancel()

    async def _slowly(self, again: Callable[[], Outcome | None]) -> None:
        self.waiter.budget = PATIENCE
        try:
            outcome = await asyncio.to_thread(again)
            while outcome is None and self._backlog:
                step = self._backlog.pop(0)
                outcome = await asyncio.to_thread(advance, self.waiter, step)
        except PatternTimeout:
            if not self.future.done():
                self.future.set_exception(runaway())
            return
        self.waiter.budget = INLINE_BUDGET
        self._backlog, self._task = None, None
        if outcome is not None and not self.future.done():
            self.future.set_result(outcome)


def runaway() -> BadCondition:
    """Return the error for a pattern that does not come to an end."""
    return BadCondition(
        f"the regular expression took over {PATIENCE:g} s on one piece of text",
        hint="avoid nested repetition such as (a+)+, or wait for a plain text",
    )


async def read_existing(
    waiter: Waiter, reader: RecordReader, here: Callable[[], Position], turn: Callable[[], Awaitable[None]], room: int,
    *, live_from: Position | None = None,
) -> Outcome | None:  # fmt: skip
    """Bring an attached waiter, with a reader that reads for it and is closed, to where the live machine is by then.

    `live_from`: on the way there it goes live, at this place. `room` bytes are taken in a turn: more than the live
    reader takes, or it would never be reached. A turn that takes long has fewer of them; the longer it goes on, the
    longer a turn may be, for the same reason.
    """
    try:
        left, slice_seconds = room, SLICE_SECONDS
        ends_by = perf_counter() + slice_seconds
        while True:
            reader.look()
            until = live_from or here()
            while (step := reader.step(_within_step(reader.position, until))) is not None:
                try:
                    outcome = advance(waiter, step)
                except PatternTimeout:
                    outcome = await _patiently(waiter, waiter.resume)
                if outcome is not None:
                    return outcome
                left -= len(step.data)
                late = perf_counter() >= ends_by
                if left <= 0 or late:
                    await turn()
                    if late:
                        await asyncio.sleep(_REST_SECONDS)
                    left, slice_seconds = room, min(slice_seconds * _GROWTH, _LONGEST_SLICE_SECONDS)
                    ends_by = perf_counter() + slice_seconds
            if live_from is not None:
                if reader.position.offset < live_from.offset:
                    continue
                live_from = None
                outcome = await _begun(waiter, reader.machine.state.copy())
                if outcome is not None:
                    return outcome
            elif reader.position == here():
                return None
    finally:
        reader.close()


def _within_step(position: Position, until: Position) -> Position:
    # Redaction looks at multiples of its own step, and once more where a step ends anywhere else.
    return until._replace(offset=min(until.offset, (position.offset // _STEP_BYTES + 1) * _STEP_BYTES))


async def _begun(waiter: Waiter, state: MachineState) -> Outcome | None:
    try:
        return waiter.begin(state)
    except PatternTimeout:
        return await _patiently(waiter, lambda: waiter.begin(state))


async def _patiently(waiter: Waiter, ask: Callable[[], Outcome | None]) -> Outcome | None:
    waiter.budget = PATIENCE
    try:
        return await asyncio.to_thread(ask)
    except PatternTimeout:
        raise runaway() from None
    finally:
        waiter.budget = INLINE_BUDGET
