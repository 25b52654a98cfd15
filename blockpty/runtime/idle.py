"""Idle conversations: closed after a time without use, where the engine was asked to.

What counts as use is what the record shows: bytes from the terminal, input, waits (each is a note in the timeline). The
host says how long stream and timeline of every live conversation are, so that those that this engine has never touched
count too. Reading leaves no trace and keeps nothing alive.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from blockpty.control.principals import ENGINE, acting
from blockpty.engine.states import ShellState
from blockpty.errors import BlockptyError

if TYPE_CHECKING:
    from blockpty.runtime.home import Home

# How often it is looked, as a part of the time; at most every so many seconds.
LOOKS: Final = 8
LONGEST_PAUSE_SECONDS: Final = 60.0


async def close_idle(engine: Home, seconds: float) -> None:
    """Close what has been idle for so many seconds, until cancelled."""
    loop = asyncio.get_running_loop()
    seen: dict[str, tuple[tuple[int, int], float]] = {}
    while True:
        await asyncio.sleep(min(seconds / LOOKS, LONGEST_PAUSE_SECONDS))
        with contextlib.suppress(BlockptyError):
            sizes = await engine.sizes()
            now = loop.time()
            seen = {
                name: seen[name] if name in seen and seen[name][0] == size else (size, now)
                for name, size in sizes.items()
            }
            for name, (size, since) in seen.items():
                if now - since >= seconds:
                    await _close(engine, name, size)


async def _close(engine: Home, name: str, size: tuple[int, int]) -> None:
    with contextlib.suppress(BlockptyError):
        conversation = await engine.conversation(name)
        live = conversation.live
        live.pump()
        # Taking it up is entered in the timeline, so only what it printed says that it was used meanwhile.
        used = live.waits or live.reader.position.offset > size[0]
        runs = live.state.block is not None and live.state.block.kind == "command"
        if not used and not runs and live.state.shell is not ShellState.EXITED:
            with acting(ENGINE):
                await conversation.close()
