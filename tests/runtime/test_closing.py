"""A conversation that is closed at its prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test

SHELLS = [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh", "fish", "dash")]


@pytest.mark.parametrize("shell", SHELLS)
@async_test
async def test_a_shell_that_leaves_is_no_block(home: Path, shell: str) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell, cwd="/")
        await conversation.run("echo one")
        # The prompt has been silent: from here on what comes is output.
        await conversation.wait_for({"idle_ms": 200})
        await conversation.close()
        blocks = (await conversation.blocks()).blocks
        assert [block.kind for block in blocks] == ["command"], blocks
        assert (await conversation.verify()).clean
