"""Running a command to its end: typed, waited for, and its output bounded.

Rules of this file: what is returned is the block of this very command. Another line may have been read before it, and
the prompt after that is not the one that is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from blockpty.errors import NoPrompt, NotFound
from blockpty.model.block import Block
from blockpty.model.conditions import Prompt
from blockpty.model.results import RunResult, WaitResult
from blockpty.runtime import reading
from blockpty.runtime.submission import Submitted

if TYPE_CHECKING:
    from blockpty.runtime.covered import Cover
    from blockpty.runtime.live import LiveRecord
    from blockpty.runtime.waiting import Waiting
    from blockpty.spool.stream import StreamReader


Bounded = tuple[str, int, bool]
OverBytes = Callable[
    [int, bool, Callable[["StreamReader", "Cover", Callable[[], None]], Bounded]], Coroutine[Any, Any, Bounded]
]


async def until_done(live: LiveRecord, waiting: Waiting, typed: Submitted, timeout_ms: int) -> WaitResult:
    """Wait for the prompt behind a command that was typed, or until the time is up."""
    loop = asyncio.get_running_loop()
    ends_by = loop.time() + timeout_ms / 1000
    result = await waiting.wait(waiting.request([Prompt()], cursor=typed.cursor), timeout_ms)
    while result.matched and live.is_under_way(typed.request):
        # The prompt of a line that came before ours.
        left_ms = max(0, int((ends_by - loop.time()) * 1000))
        result = await waiting.wait(waiting.request([Prompt()], cursor=result.cursor), left_ms)
    return result


def own_block(conversation_id: str, live: LiveRecord, typed: Submitted, find: Callable[[str], Block]) -> Block:
    """Return the block of a command that was typed; raises NoPrompt when other lines were read instead."""
    opened = live.state.opened_by(typed.request)
    if opened is not None:
        return find(f"b{opened[0]}")
    with contextlib.suppress(NotFound):
        block = find(f"b{typed.seq}")
        if block.author == "agent":
            return block
    raise NoPrompt(
        f"{conversation_id}: the command was typed and has not begun: other input came before it",
        hint="blocks tells what ran; was somebody typing, or a program into its own terminal?",
    )


async def run_result(
    live: LiveRecord, block: Block, result: WaitResult, max_bytes: int, over_bytes: OverBytes
) -> RunResult:
    """Return what a run tells: the block, and head and tail of its output, which are read by `over_bytes`."""
    begin, end = block.span
    if end is None:
        # A CR at the end may become a line end with the LF that comes next.
        end = live.state.classified
        end -= end > begin and live.stream.read(end - 1, 1) == b"\r"
    known, classified = block.out_bytes, live.state.classified
    text, whole, truncated = await over_bytes(
        end - begin, False,
        lambda stream, cover, pace: reading.bounded_text(stream, cover, (begin, end), max_bytes, known, pace),
    )  # fmt: skip
    return RunResult(
        block, text, whole, truncated, not result.matched and result.reason == "timeout", result.reason,
        result.cursor if block.span[1] is not None else classified,
    )  # fmt: skip
