"""What the terminal does, from a look at its modes and the record, which are not of the same moment."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import blockpty
from tests.support.async_tests import async_test


@pytest.mark.needs("bash")
@async_test
async def test_the_modes_of_the_prompt_are_not_those_of_a_command_that_has_begun_since(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        inspect, looked = conversation.host.inspect, asyncio.Event()

        async def slow(*arguments: Any, **more: Any) -> Any:
            """Answer a look at the prompt when the command has begun."""
            seen = await inspect(*arguments, **more)
            assert seen.icanon is False
            looked.set()
            await conversation.wait_for("begun")
            return seen

        conversation.host.inspect = slow  # type: ignore[method-assign]
        asked = asyncio.ensure_future(conversation.status())
        await looked.wait()
        conversation.host.inspect = inspect  # type: ignore[method-assign]
        await conversation.exec_interactive("echo be''gun; sleep 60")
        status = await asked
        assert (status.mode, status.tty) == ("interactive", "running")
