"""Deleting conversations: one that was named, or the oldest of those that are over a budget."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import blockpty
from blockpty.files.segments import segment_name
from blockpty.runtime import retention
from tests.support.async_tests import async_test

DAY = 86_400


@async_test
async def test_an_ended_conversation_is_deleted_whole(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.run("echo secret")
        with pytest.raises(blockpty.Busy):
            await conversation.delete()
        assert (await conversation.run("echo still here")).output == "still here\n"
        await conversation.close()
        deleted = await conversation.delete()
        assert deleted.freed_bytes > 0 and deleted.cursor > 0
        assert not conversation.directory.exists()
        assert [*conversation.directory.parent.iterdir()] == []
        assert (await engine.list()).conversations == []
        with pytest.raises(blockpty.NotFound):
            await engine.conversation("c1")
        # The name is free again, and nothing of the old one comes back.
        again = await engine.open("c1")
        assert [block.seq for block in (await again.blocks()).blocks] == []
        assert (await again.run("echo new")).output == "new\n"
        assert (await again.verify()).clean


@async_test
async def test_what_another_engine_has_stays(home: Path) -> None:
    async with blockpty.Engine(home) as engine, blockpty.Engine(home) as other:
        conversation = await engine.open("c1")
        await conversation.close()
        with pytest.raises(blockpty.Busy):
            await (await other.conversation("c1")).delete()
        assert (await other.prune(keep_total_mb=0)).deleted == []
        assert conversation.directory.is_dir()


async def ended(engine: blockpty.Engine, name: str, days: float) -> Path:
    """A conversation that was last used so many days ago."""
    conversation = await engine.open(name)
    await conversation.close()
    then = time.time() - days * DAY
    os.utime(conversation.layout.timeline, (then, then))
    return conversation.directory


@async_test
async def test_the_oldest_go_first(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        old, middle, young = [await ended(engine, name, days) for name, days in (("o", 30), ("m", 20), ("y", 1))]
        live = await engine.open("live")
        (middle / "exports").write_bytes(b"x" * 3 * retention.MIB)
        (young / "exports").write_bytes(b"x" * 3 * retention.MIB)
        nothing = await engine.prune()
        assert (nothing.deleted, nothing.freed_bytes) == ([], 0) and nothing.kept_bytes > 6 * retention.MIB
        assert (await engine.prune(keep_days=25)).deleted == ["o"]
        pruned = await engine.prune(keep_total_mb=4)
        assert pruned.deleted == ["m"]
        assert pruned.kept_bytes < 4 * retention.MIB < 3 * retention.MIB + pruned.freed_bytes
        assert (old.exists(), middle.exists(), young.exists()) == (False, False, True)
        # Whatever the budget, a shell that runs keeps its conversation.
        assert (await engine.prune(keep_days=0, keep_total_mb=0)).deleted == ["y"]
        assert (await live.run("echo here")).output == "here\n"
        assert [info.conversation_id for info in (await engine.list()).conversations] == ["live"]


@async_test
async def test_an_engine_keeps_to_its_budget(home: Path) -> None:
    """By itself, also what a killed engine had begun to delete."""
    async with blockpty.Engine(home) as engine:
        old = await ended(engine, "old", 30)
        young = await ended(engine, "young", 1)
    begun = old.with_name(".deleted-0123456789abcdef")
    (begun / "stream").mkdir(parents=True)
    async with blockpty.Engine(home, keep_days=20) as engine:
        await engine.open("c1")
        await engine.prune()
        while old.exists() or begun.exists():
            await (await engine.conversation("c1")).status()
        assert young.exists()


@pytest.mark.parametrize("wrong", [{"keep_days": -1}, {"keep_total_mb": -1}])
def test_budgets_that_are_none(home: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(blockpty.BadRequest):
        blockpty.Engine(home, **wrong)  # type: ignore[arg-type]


@async_test
async def test_a_reader_learns_what_is_not_kept(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.run("seq 1 20000")
        last = await conversation.run("echo last")
        await conversation.close()
        whole = await conversation.read(from_cursor=0, view="raw", max_bytes=10_000_000)
    stream = conversation.layout.stream / segment_name(0)
    data, cut = stream.read_bytes(), 50_000
    (conversation.layout.stream / segment_name(cut)).write_bytes(data[cut:])
    os.chmod(conversation.layout.stream / segment_name(cut), 0o600)
    stream.unlink()
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        read = await conversation.read(from_cursor=100, view="raw", max_bytes=10_000_000)
        assert read.truncated_before == cut and read.data == whole.data[cut:]
        kept = await conversation.read(from_cursor=cut + 5, view="raw", max_bytes=10_000_000)
        assert kept.truncated_before is None and kept.data == whole.data[cut + 5 :]
        gone = await conversation.read(block_id="b1", max_bytes=100)
        assert gone.truncated_before == cut and len(gone.data) == 100
        assert (await conversation.read(block_id=last.block.block_id)).data == "last\n"
