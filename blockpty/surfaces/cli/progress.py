"""Progress of a call on stderr: the operation, and percent, bytes and rate where it says them, else the seconds so far.

A carriage return and blanks are all it takes, so that no control sequence of ours stands between those of others. In a
file or a pipe, where it is only written when it was asked for, each step is a line.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from typing import Final, TextIO

from blockpty.api.progress import Progress
from blockpty.surfaces.progress_text import amount, in_words

# What is over sooner shows nothing: it would only flicker.
BEGIN_SECONDS: Final = 0.5
STEP_SECONDS: Final = 0.5
LINE_SECONDS: Final = 2.0

# What a call that was interrupted has left behind, and what runs on.
_LEFT: Final = {
    "search": "nothing was changed",
    "verify": "nothing was changed",
    "export": "no file is left of it",
    "import_recording": "no conversation is left of it",
    "put_file": "the same call again goes on from there",
    "get_file": "no file was written",
    "repair": "the server goes on with it; verify says when the files are right",
}


@contextlib.asynccontextmanager
async def shown_progress(
    err: TextIO, what: str, progress: Progress | None = None, *, passed_seconds: float = 0.0
) -> AsyncIterator[None]:
    """Show a line on a terminal until the block is left, and then take it away again.

    Args:
        err: where it is shown.
        what: the operation.
        progress: what it says of itself.
        passed_seconds: for how long it has been at work before.
    """
    task = asyncio.create_task(_show(err, what, progress, passed_seconds))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


def stopped(operation: str, progress: Progress | None) -> str:
    """Return what an interrupted call has done; "" for an operation of which there is nothing to say."""
    if operation not in _LEFT:
        return ""
    done = amount(progress) if progress is not None else ""
    return f"{_name(operation)} was interrupted{f' at {done}' if done else ''}; {_LEFT[operation]}"


def _name(operation: str) -> str:
    return "import" if operation == "import_recording" else operation.replace("_", "-")


async def _show(err: TextIO, what: str, progress: Progress | None, passed_seconds: float) -> None:
    loop = asyncio.get_running_loop()
    begin = loop.time() - passed_seconds
    terminal, width = err.isatty(), 0
    await asyncio.sleep(BEGIN_SECONDS - passed_seconds)
    try:
        while True:
            seconds = loop.time() - begin
            figures = in_words(progress, seconds) if progress is not None else ""
            text = f"{_name(what)} ... {figures or f'{round(seconds)} s'}"
            if terminal:
                text = text[: max(0, shutil.get_terminal_size().columns - 1)]
                _write(err, f"\r{text}{' ' * (width - len(text))}")
                width = len(text)
            else:
                _write(err, f"{text}\n")
            await asyncio.sleep(STEP_SECONDS if terminal else LINE_SECONDS)
    finally:
        if terminal:
            _write(err, f"\r{' ' * width}\r")


def _write(err: TextIO, text: str) -> None:
    # A terminal that has gone is no reason to fail: the command itself may go on.
    with contextlib.suppress(OSError):
        err.write(text)
        err.flush()
