"""Pending waits of one record: each sees every step, and is answered once what it saw has been written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from blockpty.engine.waiter import Outcome
from blockpty.runtime.record_reader import Step

# None: the time is up.
Answer = asyncio.Future[Outcome | None]


class RegisteredWait(Protocol):
    """Protocol of a wait for the registry."""

    future: Answer

    @property
    def reads(self) -> bool:
        """Whether the text decides, and not signals alone."""

    def take(self, step: Step) -> Outcome | None:
        """Return the outcome if this step of the record decides it."""

    def cancel(self) -> None:
        """End work of its own that is under way."""


class WaitRegistry:
    """The waits that have no answer yet; its length is their number."""

    def __init__(self) -> None:
        self._waits: list[RegisteredWait] = []
        self._decided: list[tuple[RegisteredWait, Outcome]] = []

    def __len__(self) -> int:
        return len(self._waits)

    @property
    def reads(self) -> bool:
        """Whether a wait looks at the text, which takes longer than signals alone."""
        # Asked before each slice; `any` costs a call for each wait.
        for wait in self._waits:  # noqa: SIM110
            if wait.reads:
                return True
        return False

    def add(self, wait: RegisteredWait) -> None:
        """Have a wait see every step from now on."""
        self._waits.append(wait)

    def take(self, step: Step) -> None:
        """Show one step of the record to all waits."""
        for wait in list(self._waits):
            outcome = wait.take(step)
            if outcome is not None:
                self.decided(wait, outcome)
                self._waits.remove(wait)

    def decided(self, wait: RegisteredWait, outcome: Outcome) -> None:
        """Keep an outcome until `answer`."""
        self._decided.append((wait, outcome))

    def answer(self) -> None:
        """Answer the waits that are decided: what decided them has been written."""
        if not self._decided:
            return
        decided, self._decided = self._decided, []
        for wait, outcome in decided:
            if not wait.future.done():
                wait.future.set_result(outcome)

    def end(self, wait: RegisteredWait) -> None:
        """Forget a wait, answered or not."""
        wait.cancel()
        if wait in self._waits:
            self._waits.remove(wait)

    def cancel(self) -> None:
        """Cancel all of them: the record is being closed."""
        for wait in self._waits:
            wait.cancel()
            wait.future.cancel()


async def answered(future: Answer, seconds: float, look: Callable[[], object]) -> Outcome | None:
    """Return how a wait ended, None when it has not when the time is up; `look` reads what has been recorded by then.

    Cancelling cancels the future.
    """
    if not future.done() and seconds <= 0:
        _time_is_up(future, look)
    if future.done():
        return future.result()
    # Awaited as it is: with `asyncio.wait` the answer would come a turn of the loop later.
    timer = asyncio.get_running_loop().call_later(seconds, _time_is_up, future, look)
    try:
        return await future
    finally:
        timer.cancel()


def _time_is_up(future: Answer, look: Callable[[], object]) -> None:
    """End a wait, unless what has been recorded by now answers it: a finish at the deadline is a finish."""
    try:
        look()
    except Exception as problem:  # noqa: BLE001  the caller that waits gets it
        if not future.done():
            future.set_exception(problem)
    if not future.done():
        future.set_result(None)
