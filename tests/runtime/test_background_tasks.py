"""Background tasks end with their owner, and a defect in one is reported."""

from __future__ import annotations

import asyncio
from typing import Any

from blockpty.errors import InternalError
from blockpty.runtime.background_tasks import BackgroundTasks
from tests.support.async_tests import async_test


@async_test
async def test_closing_waits_for_what_was_cancelled() -> None:
    tasks, ended = BackgroundTasks(), []

    async def work(number: int) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            ended.append(number)

    for number in range(3):
        tasks.start(work(number))
    await asyncio.sleep(0)
    assert len(tasks) == 3
    await tasks.close()
    assert sorted(ended) == [0, 1, 2] and len(tasks) == 0


@async_test
async def test_only_a_defect_is_reported() -> None:
    loop, tasks = asyncio.get_running_loop(), BackgroundTasks()
    reported: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: reported.append(context))

    async def fail(problem: Exception) -> None:
        raise problem

    try:
        await asyncio.wait([tasks.start(fail(InternalError("the host is gone"))), tasks.start(fail(KeyError("x")))])
        await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(None)
    assert [type(context["exception"]) for context in reported] == [KeyError]
    assert len(tasks) == 0


@async_test
async def test_a_task_that_was_cancelled_by_its_starter_is_forgotten() -> None:
    tasks = BackgroundTasks()
    task = tasks.start(asyncio.sleep(3600))
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert len(tasks) == 0
    await tasks.close()
