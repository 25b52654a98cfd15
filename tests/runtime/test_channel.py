"""The way into a terminal: one engine has it, and another takes it up when that one is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test

PROMPT = {"token": "PROMPT"}


@async_test
async def test_only_one_engine_writes_and_the_other_follows(home: Path) -> None:
    async with blockpty.Engine(home) as owner, blockpty.Engine(home) as other:
        conversation = await owner.open("c1")
        await conversation.run("echo one")
        guest = await other.conversation("c1")
        assert not (await guest.status()).owner
        with pytest.raises(blockpty.Busy):
            await guest.exec_block("echo two")
        block = await conversation.exec_block("echo two")
        assert (await guest.wait_for("two", from_cursor=block.cursor)).matched
        assert (await guest.wait_for(PROMPT, from_cursor=block.cursor)).matched
        await conversation.wait_for(PROMPT)
        assert (await guest.block(block.block_id)).block.out_bytes == 4
        assert (await conversation.verify()).clean
