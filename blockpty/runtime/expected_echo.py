"""Expected echo: what of the inputs since the last silence has not come back yet, where the live reader is.

The machine's state names the inputs, not how much of their echo has passed. A wait that begins between an input and
the next silence would have to read on from the silence before; a program that asks again and again leaves none.
"""

from __future__ import annotations

from typing import Final

from blockpty.engine.echo import EchoFilter
from blockpty.engine.machine_state import MachineState
from blockpty.engine.waiter import Waiter
from blockpty.runtime.record_reader import Position, Step

_NOWHERE: Final = 1 << 62


class ExpectedEcho:
    """Follows the steps of a reader; it is known from an input on that was typed where no other echo was expected."""

    def __init__(self) -> None:
        # Takes echo out exactly as every wait does, and looks for nothing.
        self._waiter: Waiter | None = None

    def take(self, step: Step, state: MachineState, position: Position) -> None:
        """Take a step; `state` and `position` are the machine's and the reader's behind it."""
        if not state.inputs:
            self._waiter = None
        elif self._waiter is not None:
            self._waiter.advance(step.data, step.signals, step.classified)
        elif state.classified == position.offset and all(item[0] == position.offset for item in state.inputs):
            self._waiter = Waiter((), cursor=_NOWHERE)
            self._waiter.attach(state)

    @property
    def filter(self) -> EchoFilter | None:
        """A filter with what is still expected; None where that is not known, or bytes may be echo or not."""
        if self._waiter is None or self._waiter.echo.held_at is not None:
            return None
        return self._waiter.echo.copy()
