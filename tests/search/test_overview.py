"""What a home has done: the kept counts say what a look at every block says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blockpty.api.progress import Progress
from blockpty.ops.engine import Engine
from blockpty.search.sqlite import SqliteIndex
from tests.support.async_tests import async_test
from tests.support.index_contract import home, records
from tests.support.overview_contract import OverviewContract

__all__ = ["home", "records"]


class TestSqlite(OverviewContract):
    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[SqliteIndex]:
        index = SqliteIndex(tmp_path / "index")
        yield index
        index.close()


@async_test
async def test_of_a_real_home(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("true")
        await conversation.run("(exit 3)")
        seen = await engine.overview()
        assert seen.statuses == {"0": 1, "3": 1} and seen.total_blocks == 2 and not seen.partial
        (one,) = seen.conversations
        assert (one.conversation_id, one.live, one.blocks, one.failed, one.last_block.cmd) == (
            "c1", True, 2, 1, "(exit 3)",
        )  # fmt: skip
        assert [found.block.block_id for found in seen.blocks] == ["b2", "b1"]
        assert [found.block.block_id for found in (await engine.overview(failed=True)).blocks] == ["b2"]


@async_test
async def test_it_waits_for_the_index_and_says_how_far_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Engine(tmp_path) as engine:
        await (await engine.open("c1", shell="bash")).run("seq 1 50000")
    let, add = threading.Event(), SqliteIndex.add

    def add_slowly(index: SqliteIndex, entries: Any, positions: Any) -> None:
        add(index, entries, positions)
        let.wait()

    monkeypatch.setattr(SqliteIndex, "add", add_slowly)
    monkeypatch.setattr(SqliteIndex, "batch_bytes", 100_000)
    async with Engine(tmp_path) as engine:
        try:
            assert (await engine.overview(timeout_ms=0)).partial
            with Progress() as progress:
                waiting = asyncio.ensure_future(engine.overview(timeout_ms=60_000))
                while progress.what != "index":  # noqa: ASYNC110  (nothing tells)
                    await asyncio.sleep(0.01)
                assert progress.done == 0 and progress.total is not None and progress.total > 300_000
                assert not waiting.done()
                let.set()
                seen = await waiting
            assert not seen.partial and seen.total_blocks == 1
            assert 200_000 < progress.done <= progress.total
        finally:
            let.set()
