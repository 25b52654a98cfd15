"""Pending waits: each sees every step, and none is answered before what decided it has been written."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from blockpty.engine.waiter import Outcome
from blockpty.runtime.record_reader import Step
from blockpty.runtime.wait_registry import Answer, WaitRegistry, answered
from tests.support.async_tests import async_test

OUTCOME = cast("Outcome", object())


class Wait:
    """A wait that one step, or none, decides."""

    def __init__(self, decider: object = None, *, reads: bool = False) -> None:
        self.future: Answer = asyncio.get_running_loop().create_future()
        self.reads = reads
        self.seen: list[object] = []
        self.cancelled = 0
        self._decider = decider

    def take(self, step: Step) -> Outcome | None:
        self.seen.append(step)
        return OUTCOME if step is self._decider else None

    def cancel(self) -> None:
        self.cancelled += 1


def steps(count: int) -> list[Any]:
    return [cast("Step", object()) for _ in range(count)]


@async_test
async def test_a_wait_is_answered_once_what_decided_it_is_written() -> None:
    registry, (one, two, three) = WaitRegistry(), steps(3)
    early, late = Wait(one), Wait(three)
    registry.add(early)
    registry.add(late)
    registry.take(one)
    assert len(registry) == 1 and not early.future.done(), "decided, and not written"
    registry.take(two)
    registry.answer()
    assert early.future.result() is OUTCOME and not late.future.done()
    registry.take(three)
    registry.answer()
    assert late.future.result() is OUTCOME and len(registry) == 0
    assert (early.seen, late.seen) == ([one], [one, two, three])


@async_test
async def test_waits_that_read_the_text_are_known() -> None:
    registry, reading = WaitRegistry(), Wait(reads=True)
    registry.add(Wait())
    assert not registry.reads
    registry.add(reading)
    assert registry.reads
    registry.end(reading)
    assert not registry.reads and reading.cancelled == 1
    registry.end(reading)
    assert len(registry) == 1, "one that is not there any more may be ended"


@async_test
async def test_an_answer_that_nothing_waits_for_is_dropped() -> None:
    registry, (step,) = WaitRegistry(), steps(1)
    wait = Wait(step)
    registry.add(wait)
    registry.take(step)
    wait.future.cancel()
    registry.answer()
    assert wait.future.cancelled()


@async_test
async def test_closing_the_record_cancels_all() -> None:
    registry, waits = WaitRegistry(), [Wait(), Wait()]
    for wait in waits:
        registry.add(wait)
    registry.cancel()
    assert all(wait.future.cancelled() and wait.cancelled == 1 for wait in waits)


def pending() -> Answer:
    return asyncio.get_running_loop().create_future()


@async_test
async def test_an_answer_before_the_time_is_up() -> None:
    future, looks = pending(), []
    waiting = asyncio.create_task(answered(future, 3600, lambda: looks.append(1)))
    await asyncio.sleep(0)
    future.set_result(OUTCOME)
    assert await waiting is OUTCOME
    assert await answered(future, 0, lambda: looks.append(1)) is OUTCOME, "answered already"
    assert not looks, "nothing was asked again"


@async_test
async def test_what_was_recorded_by_the_deadline_counts() -> None:
    for seconds in (0, 0.001):
        late, never = pending(), pending()
        assert await answered(late, seconds, lambda late=late: late.set_result(OUTCOME)) is OUTCOME  # type: ignore[misc]
        assert await answered(never, seconds, lambda: None) is None


@async_test
async def test_what_goes_wrong_at_the_deadline_goes_to_the_caller() -> None:
    for seconds in (0, 0.001):
        with pytest.raises(ZeroDivisionError):
            await answered(pending(), seconds, lambda: 1 / 0)


@async_test
async def test_a_cancelled_wait_leaves_no_timer() -> None:
    future = pending()
    waiting = asyncio.create_task(answered(future, 3600, lambda: None))
    await asyncio.sleep(0)
    scheduled = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    timer = next(handle for handle in scheduled if handle._args[:1] == (future,))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert future.cancelled() and timer.cancelled()
