"""Stored secrets: the command that a person has set up for each, such as one of `pass` or of a keyring."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from blockpty.errors import BadRequest

# How long such a command may take; it may ask a person to unlock a keyring.
SECONDS: Final = 60.0


async def first_line(name: str, command: Sequence[str]) -> bytes:
    """Run the command of a stored secret; return the first line that it prints. Raises BadRequest."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as problem:
        raise BadRequest(f"the command of the secret {name} cannot be started: {problem.strerror}") from None
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    except TimeoutError:
        raise BadRequest(f"the command of the secret {name} took more than {SECONDS:g} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    value = printed.split(b"\n", 1)[0].rstrip(b"\r")
    if process.returncode != 0 or not value:
        raise BadRequest(
            f"the command of the secret {name} ended with status {process.returncode}"
            + ("" if value else " and printed nothing"),
            hint="run it by hand; its first line of output is the secret",
        )
    return value
