"""Blocks that are like others: filters, and what has changed since a command ran the last time."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.errors import BadRequest, NotFound
from blockpty.ops.engine import Engine
from tests.support.async_tests import async_test


@async_test
async def test_a_run_is_compared_with_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("one\ntwo\nthree\n")
    async with Engine(tmp_path / "home") as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(tmp_path))
        await conversation.run("cat list")
        await conversation.run("echo between")
        (tmp_path / "list").write_text("one\n2\nthree")
        await conversation.run("cat list")
        found = await conversation.diff("b3")
        assert (found.block.block_id, found.against.block_id, found.same) == ("b3", "b1", False)
        assert found.diff == (
            "--- b1\n+++ b3\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+three\n\\ no line end\n"
        )  # fmt: skip
        assert (await conversation.diff("b3", context=0, max_bytes=20)).truncated
        assert (await conversation.diff("b3", "b3")).same
        with pytest.raises(NotFound, match="before"):
            await conversation.diff("b2")
        with pytest.raises(NotFound):
            await conversation.diff("b9")
        with pytest.raises(BadRequest, match="context"):
            await conversation.diff("b3", context=-1)


@async_test
async def test_long_outputs_are_compared_as_far_as_it_goes(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        for _ in range(2):
            await conversation.run("seq 30000")
        found = await conversation.diff("b2")
        assert found.part and not found.same and not found.diff


@async_test
async def test_blocks_are_filtered_by_what_became_of_them(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash", cwd="/")
        for command in ("true", "false", "cd /usr/bin", "sleep 0.2; false", "cd /usr; true"):
            await conversation.run(command)

        async def numbers(**filters: object) -> list[int]:
            return [block.seq for block in (await conversation.blocks(**filters)).blocks]  # type: ignore[arg-type]

        assert await numbers(failed=True) == [2, 4]
        assert await numbers(failed=False) == [1, 3, 5]
        assert await numbers(min_duration_ms=200) == [4]
        assert await numbers(cwd="/usr") == [4, 5]
        assert await numbers(cwd="/", failed=True, filter="sleep") == [4]
