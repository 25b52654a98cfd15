"""Background tasks of one engine or one conversation, which ends them when it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from blockpty.errors import BlockptyError

_T = TypeVar("_T")


class BackgroundTasks:
    """Starts tasks, keeps them alive while they run, and ends them.

    A task that fails with a `BlockptyError` has failed because the host or the record is gone, which its owner learns
    elsewhere. Any other exception is a defect and goes to the event loop's exception handler.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        """How many run."""
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Run this from now on; the caller may cancel it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (problem := task.exception()) is None or isinstance(problem, BlockptyError):
            return
        task.get_loop().call_exception_handler(
            {"message": f"a background task failed: {problem!r}", "exception": problem, "task": task}
        )

    def cancel(self) -> None:
        """Cancel all that run."""
        for task in [*self._tasks]:
            task.cancel()

    async def close(self) -> None:
        """Cancel all that run, and return when they have ended."""
        self.cancel()
        if self._tasks:
            await asyncio.wait([*self._tasks])
