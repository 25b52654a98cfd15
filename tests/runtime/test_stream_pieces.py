"""The stream's bytes for those who follow it: as they come, and never the beginning of a secret."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import blockpty
from tests.support.async_tests import async_test

pytestmark = pytest.mark.needs("bash")

TOKEN = "ghp_" + "4fK9" * 9


@async_test
async def test_who_follows_gets_none_of_it_however_slowly_it_is_printed(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        slowly = 'for ((i = 0; i < ${#t}; i++)); do printf %s "${t:i:1}"; sleep 0.02; done; echo'
        begin = conversation.cursor
        got: list[Any] = []

        async def follow() -> None:
            async with aclosing(conversation.follow(begin)) as stream:  # type: ignore[type-var]
                async for piece in stream:
                    got.append(piece)

        task = asyncio.ensure_future(follow())
        result = await conversation.run(f"t={TOKEN[:20]} t+={TOKEN[20:]}; {slowly}")
        end = result.block.span[1]
        assert end is not None
        while not got or got[-1].cursor + len(got[-1].data) < end:  # noqa: ASYNC110  (it comes, or the test times out)
            await asyncio.sleep(0.01)
        task.cancel()
        data = b"".join(piece.data for piece in got)
        cursor = begin
        for piece in got:
            assert piece.cursor == cursor
            cursor += len(piece.data)
        output = data[result.block.span[0] - begin : end - begin]
        assert output == b"ghp_" + b"*" * 36 + b"\r\n"
        assert result.output == "ghp_" + "*" * 36 + "\n"


@async_test
async def test_what_may_become_a_secret_and_does_not_is_not_held_for_ever(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.exec_block("printf 'token=ab'; read -r line; echo done")
        async with aclosing(conversation.follow(0)) as stream:  # type: ignore[type-var]
            data = b""
            async for piece in stream:
                data += piece.data
                if b"token=**" in data.split(b"echo done")[-1]:
                    break
        await conversation.enter()
        await conversation.wait_for({"token": "PROMPT"})
        assert "token=ab" in (await conversation.read(0)).data
