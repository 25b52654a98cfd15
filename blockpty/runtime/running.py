"""A command run to its end: its own block, and its output within bounds.

Rules of this file: what is returned is the block of this very command. Another line may have been read before it, and
the prompt after that is not the one that is waited for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from blockpty.engine.waiter import Outcome
from blockpty.errors import NoPrompt, NotFound
from blockpty.model.block import Block
from blockpty.model.results import RunResult
from blockpty.runtime import reading
from blockpty.runtime.submission import Submitted
from blockpty.runtime.wait_registry import answered

if TYPE_CHECKING:
    from blockpty.runtime.completion import Completion
    from blockpty.runtime.follower import RecordFollower
    from blockpty.runtime.redactor import Redactor
    from blockpty.spool.stream import StreamReader


Bounded = tuple[str, int, bool]
OverBytes = Callable[
    [int, bool, Callable[["StreamReader", "Redactor", Callable[[], None]], Bounded]], Coroutine[Any, Any, Bounded]
]


async def until_done(live: RecordFollower, completion: Completion, timeout_ms: int) -> Outcome:
    """Return how a command ended, or that the time is up."""
    try:
        outcome = await answered(completion.future, timeout_ms / 1000, live.pump)
        return outcome or Outcome(False, "timeout", live.state.classified, live.state.classified)
    finally:
        live.waits.end(completion)


def own_block(conversation_id: str, live: RecordFollower, typed: Submitted, find: Callable[[str], Block]) -> Block:
    """Return the block of a command that was typed; raises NoPrompt when other lines were read instead."""
    opened = live.state.opened_by(typed.request)
    if opened is not None:
        return find(f"b{opened[0]}")
    with contextlib.suppress(NotFound):
        block = find(f"b{typed.seq}")
        if block.author == typed.author:
            return block
    raise NoPrompt(
        f"{conversation_id}: the command was typed and has not begun: other input came before it",
        hint="`blocks` lists what ran; did a person type, or a program into its own terminal?",
    )


async def run_result(
    live: RecordFollower, block: Block, result: Outcome, max_bytes: int, view: str, over_bytes: OverBytes
) -> RunResult:
    """Return what a run tells: the block, and head and tail of its output, which are read by `over_bytes`."""
    begin, end = block.span
    if end is None:
        # A CR at the end may become a line end with the LF that comes next.
        end = live.state.classified
        end -= end > begin and live.stream.read(end - 1, 1) == b"\r"
    known, classified, size = block.out_bytes, live.state.classified, live.state.size
    text, whole, truncated = await over_bytes(
        end - begin, False,
        lambda stream, redactor, pace: reading.bounded_text(
            stream, redactor, (begin, end), max_bytes, known, pace, view=view, size=size
        ),
    )  # fmt: skip
    return RunResult(
        block, text, whole, truncated, not result.matched and result.reason == "timeout", result.reason,
        result.cursor if block.span[1] is not None else classified,
    )  # fmt: skip
