"""Keep-alive of ssh: ours, where the user's own configuration has none for this host."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from blockpty.host.shells import ShellPlan

ALIVE: Final = ("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
"""A connection that says nothing for a minute is given up."""
ASKED_SECONDS: Final = 5.0


async def kept_alive(plan: ShellPlan) -> ShellPlan:
    """Return the plan of an ssh with our keep-alive, unless the configuration that ssh itself reports has one."""
    program, *rest = plan.argv
    if _interval(await _reported([program, "-G", *rest], plan)) != "0":
        return plan
    return replace(plan, argv=(program, *ALIVE, *rest))


async def _reported(argv: Sequence[str], plan: ShellPlan) -> str:
    with contextlib.suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            *argv, env=plan.env, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            async with asyncio.timeout(ASKED_SECONDS):
                return (await process.communicate())[0].decode("utf-8", "replace")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return ""


def _interval(report: str) -> str | None:
    for line in report.splitlines():
        name, _, value = line.partition(" ")
        if name == "serveraliveinterval":
            return value.strip()
    return None
