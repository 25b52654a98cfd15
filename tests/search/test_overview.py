"""What a home has done: the kept counts say what a look at every block says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blockpty.api.progress import Progress
from blockpty.cluster.database import Database
from blockpty.cluster.hosts import Hosts
from blockpty.cluster.postgres_index import PostgresIndex
from blockpty.ops.engine import Engine
from blockpty.search.index import IndexEntry
from blockpty.search.ingest import batches
from blockpty.search.overview import Asked, Overview, scanned
from blockpty.search.records import Records
from blockpty.search.sqlite import SqliteIndex
from tests.support.async_tests import async_test
from tests.support.index_contract import everything, fill, home, records

__all__ = ["home", "records"]


@pytest.fixture(params=["sqlite", "postgres"])
def index(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SqliteIndex | PostgresIndex]:
    if request.param == "sqlite":
        index = SqliteIndex(tmp_path / "index")
        yield index
        index.close()
        return
    with request.getfixturevalue("postgres_servers").databases() as databases:
        shared = PostgresIndex(
            Database(databases.url), Hosts("home", "host"), [Database(url) for url in databases.shards]
        )
        yield shared
        shared.close()


def alike(one: Overview, other: Overview) -> bool:
    """Whether both say the same; blocks of the same millisecond are in no particular order."""
    return (
        sorted(one.conversations) == sorted(other.conversations)
        and [block.ts_begin for _, block in one.blocks] == [block.ts_begin for _, block in other.blocks]
        and {(name, block.seq) for name, block in one.blocks} == {(name, block.seq) for name, block in other.blocks}
        and one.statuses == other.statuses
        and (one.total_conversations, one.total_blocks) == (other.total_conversations, other.total_blocks)
    )


def test_the_counts_are_those_of_the_records(index: SqliteIndex | PostgresIndex, records: Records) -> None:
    fill(index, records)
    middle = sorted(block.ts_begin for _, block, _ in everything(records))[20]
    for asked in (
        Asked(1000, 1000),
        Asked(1000, 1000, conversation_id="c2"),
        Asked(1000, 1000, failed=True),
        Asked(1000, 1000, failed=False, before=middle),
        Asked(1000, 1000, conversation_id="none"),
    ):
        assert alike(index.overview(asked), scanned(records, asked)), asked
    newest = index.overview(Asked(2, 3))
    assert len(newest.conversations) == 2 and len(newest.blocks) == 3
    assert newest.blocks[0][1].ts_begin == max(
        block.ts_begin for _, block, _ in everything(records) if block.span[1] is not None
    )


def test_a_block_that_comes_again_counts_once_and_one_that_is_forgotten_not_at_all(
    index: SqliteIndex | PostgresIndex, records: Records
) -> None:
    for batch in batches(records, {}, index.batch_bytes):
        running = []
        for entry in batch.entries:
            block = replace(entry.block, span=(entry.block.span[0], None), exit_status=None)
            running.append(IndexEntry(entry.conversation_id, block, ()))
        index.add(running, {})
        index.add(batch.entries, batch.positions)
        index.add(batch.entries, batch.positions)
    asked = Asked(1000, 1000)
    assert alike(index.overview(asked), scanned(records, asked))
    before = index.overview(asked).total_blocks
    of_one = index.overview(Asked(conversation_id="c3")).total_blocks
    index.forget("c3")
    assert index.overview(asked).total_blocks == before - of_one > 0
    assert "c3" not in {name for name, *_ in index.overview(asked).conversations}
    index.drop()
    empty = index.overview(asked)
    assert (empty.conversations, empty.blocks, dict(empty.statuses), empty.total_blocks) == ([], [], {}, 0)


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
