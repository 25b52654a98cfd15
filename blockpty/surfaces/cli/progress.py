"""Progress of a call on stderr: the operation and the seconds so far.

A carriage return and blanks are all it takes, so that no control sequence of ours stands between those of others.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from typing import Final, TextIO

# What is over sooner shows nothing: it would only flicker.
BEGIN_SECONDS: Final = 0.7
STEP_SECONDS: Final = 1.0


@contextlib.asynccontextmanager
async def shown_progress(err: TextIO, what: str) -> AsyncIterator[None]:
    """Show a line on a terminal until the block is left, and then take it away again."""
    task = asyncio.create_task(_show(err, what))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def _show(err: TextIO, what: str) -> None:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    width = 0
    await asyncio.sleep(BEGIN_SECONDS)
    try:
        while True:
            room = max(0, shutil.get_terminal_size().columns - 1)
            text = f"{what} ... {round(loop.time() - begin)} s"[:room]
            _write(err, f"\r{text}{' ' * (width - len(text))}")
            width = len(text)
            await asyncio.sleep(STEP_SECONDS)
    finally:
        _write(err, f"\r{' ' * width}\r")


def _write(err: TextIO, text: str) -> None:
    # A terminal that has gone is no reason to fail: the command itself may go on.
    with contextlib.suppress(OSError):
        err.write(text)
        err.flush()
