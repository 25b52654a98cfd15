"""The fair scheduler: a slice for each reader, in turn, and the loop goes round when the budget is spent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from blockpty.runtime.scheduler import BUDGET_SECONDS, FairScheduler, scheduler_of
from tests.support.async_tests import async_test


class Table:
    """Readers on a clock that only they move; `order`: who read, `|` where the loop went on."""

    def __init__(self, slice_seconds: float) -> None:
        self.now = 0.0
        self.order = ""
        self.turns = FairScheduler(asyncio.get_running_loop(), lambda: self.now)
        self._slice_seconds = slice_seconds

    def reader(self, name: str, slices: int) -> Callable[[], bool]:
        left = slices

        def read() -> bool:
            nonlocal left
            left -= 1
            self.order += name
            self.now += self._slice_seconds
            return left > 0

        return read

    async def rounds(self, count: int) -> str:
        """Return the order when the loop has gone round so many times; marks each."""
        for _ in range(count):
            await asyncio.sleep(0)
            self.order += "|"
        return self.order


@async_test
async def test_one_that_is_alone_has_the_whole_budget_of_every_turn() -> None:
    table = Table(BUDGET_SECONDS / 4)
    table.turns.ask(table.reader("a", 9))
    assert table.order == "a", "at once, once"
    assert await table.rounds(3) == "aaaaa|aaaa||"


@async_test
async def test_when_the_budget_is_spent_others_wait_for_the_next_turn_and_then_go_in_turn() -> None:
    table = Table(BUDGET_SECONDS / 2)
    for name in "abcde":
        table.turns.ask(table.reader(name, 3 if name == "b" else 1))
    assert table.order == "ab"
    # The loop comes round between; no reader is passed over for one that has more.
    assert await table.rounds(4) == "abbc|de|b||"


@async_test
async def test_asking_again_for_one_in_the_queue_changes_nothing() -> None:
    table = Table(BUDGET_SECONDS)
    once = table.reader("b", 1)
    table.turns.ask(table.reader("a", 1))
    for _ in range(3):
        table.turns.ask(once)
    assert await table.rounds(4) == "ab||||", "once, in the next turn"


@async_test
async def test_a_reader_that_fails_does_not_take_the_others_with_it() -> None:
    table = Table(BUDGET_SECONDS)
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context["exception"]))

    def fails() -> bool:
        raise ZeroDivisionError

    table.turns.ask(table.reader("a", 1))
    table.turns.ask(fails)
    table.turns.ask(table.reader("b", 1))
    assert await table.rounds(4) == "a|b|||"
    assert [type(failure) for failure in failures] == [ZeroDivisionError]


@async_test
async def test_tasks_come_after_the_readers_one_in_each_round_and_one_that_has_gone_is_passed_over() -> None:
    table = Table(BUDGET_SECONDS / 4)

    async def comes(name: str, times: int) -> None:
        for _ in range(times):
            await table.turns.turn()
            table.order += name

    table.turns.queue(table.reader("a", 30))
    tasks = [asyncio.create_task(comes(name, 2)) for name in "xyz"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert table.order.replace("a", "") == "xzxz", "in turn"
    between = [len(slices) for slices in table.order.split("x", 1)[1].replace("x", "z").split("z")[:-1]]
    assert all(4 <= slices <= 5 for slices in between), "the readers have their whole budget before each"


@async_test
async def test_all_records_of_a_loop_share_one() -> None:
    assert scheduler_of(asyncio.get_running_loop()) is (kept := scheduler_of(asyncio.get_running_loop()))
    assert kept is not None
