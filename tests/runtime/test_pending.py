"""Pending waits: what was there answers them the same every time, and a caller that stops waiting changes nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

import blockpty
from blockpty import Engine
from blockpty.engine.machine_state import MachineState
from blockpty.engine.matchers import PatternTimeout
from blockpty.engine.waiter import Waiter
from blockpty.runtime import pending
from blockpty.runtime.background_tasks import BackgroundTasks
from tests.support.async_tests import async_test
from tests.support.profile import LONG

PROMPT = {"token": "PROMPT"}


@async_test
async def test_waits_on_the_past_give_the_same_answer_every_time(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        for number in range(5):
            await conversation.run(f"echo number {number}; echo")
        answers = [await conversation.wait_for({"regex": r"number (\d)"}, from_cursor=0) for _ in range(3)]
        assert {(answer.match_text, answer.span) for answer in answers} == {("number 0", answers[0].span)}
        assert answers[0].groups == {"1": "0"}
        second = await conversation.wait_for({"regex": r"number (?P<n>\d)"}, from_cursor=answers[0].cursor)
        assert second.groups == {"1": "1", "n": "1"}
        assert (await conversation.verify()).waits >= 4


@async_test
async def test_cancelling_a_wait_leaves_the_program_alone(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.exec_block("read x; echo got $x")
        wait = asyncio.create_task(conversation.wait_for("got", timeout_ms=60000))
        await conversation.wait_for({"idle_ms": 50})
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        await conversation.send("it\r")
        assert (await conversation.wait_for("got it")).matched
        await conversation.wait_for(PROMPT)
        assert (await conversation.verify()).clean
        reasons = [
            event.fields["reason"] async for event in conversation.events(follow=False) if event.type == "wait_end"
        ]
        assert "cancelled" in reasons


ROUNDS = 120 if LONG else 30


# Places lie some 4 KiB of the record apart, and each round is some 900 bytes of it.
MOST_STEPS = 60


@async_test
async def test_who_asks_again_and_again_does_not_read_all_of_it_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0

    def counted(waiter: pending.Waiter, step: pending.Step) -> object:
        nonlocal taken
        taken += 1
        return advance(waiter, step)

    advance = pending.advance
    monkeypatch.setattr(pending, "advance", counted)
    most = 0
    async with Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.exec_interactive("cat")
        for number in range(ROUNDS):
            taken = 0
            sent = await conversation.send(f"line {number}\n")
            found = await conversation.wait_for(f"line {number}\n", from_cursor=sent.cursor)
            # The line of the program, not its echo.
            assert found.matched and found.span == (sent.cursor + len(f"line {number}\r\n"), found.cursor)
            most = max(most, taken)
        await conversation.close()
        assert (await conversation.verify()).clean
    assert 0 < most < MOST_STEPS


class SlowWaiter:
    """A waiter whose pattern takes too long for the event loop."""

    reads, budget = True, 0.0

    def begin(self, state: MachineState) -> None:
        raise PatternTimeout


@async_test
async def test_a_slow_pattern_is_a_task_of_the_conversation() -> None:
    tasks = BackgroundTasks()
    wait = pending.PendingWait(cast("Waiter", SlowWaiter()), asyncio.get_running_loop().create_future(), tasks)
    assert wait.begin(MachineState()) is None
    assert len(tasks) == 1
    await tasks.close()
    assert not wait.future.done()
