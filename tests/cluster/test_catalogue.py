"""Engines of several hosts share one catalogue: each knows what the others have."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.errors import BadRequest, Busy, NotFound
from blockpty.ops.engine import Engine
from tests.support.async_tests import async_test
from tests.support.postgres_servers import Databases


@async_test(timeout_seconds=100)
async def test_two_hosts_share_a_catalogue(
    tmp_path: Path, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOCKPTY_DATABASE_URL", databases.url)
    monkeypatch.setenv("BLOCKPTY_DATABASE_SHARDS", ",".join(databases.shards))
    # The address is read when a home is first opened; these two live in one process.
    monkeypatch.setenv("BLOCKPTY_ADDRESS", "http://one:7717")
    async with Engine(tmp_path / "one") as one:
        conversation = await one.open("builds", shell="bash")
        await conversation.run("echo the needle of one")
        # Found here at once; by others when it is indexed.
        assert (await one.search("needle of one", part="output", timeout_ms=30_000)).hits[0].elsewhere is None
        monkeypatch.setenv("BLOCKPTY_ADDRESS", "http://two:7717")
        async with Engine(tmp_path / "two") as two:
            while not (found := (await two.search("needle of one", part="output", timeout_ms=30_000)).hits):
                pass
            hit = found[0]
            assert (hit.conversation_id, hit.elsewhere) == ("builds", "http://one:7717")
            while not (seen := await two.overview()).blocks:
                pass
            (activity,), (block,) = seen.conversations, seen.blocks
            assert (activity.conversation_id, activity.elsewhere, activity.live) == ("builds", "http://one:7717", False)
            assert (block.block.cmd, block.elsewhere) == ("echo the needle of one", "http://one:7717")
            assert (await one.overview()).conversations[0].elsewhere is None
            read = await conversation.read(hit.cursor, max_bytes=len("needle of one"))
            assert read.data == "needle of one"
            with pytest.raises(NotFound, match="http://one:7717") as wrong:
                await two.conversation("builds")
            assert wrong.value.details["address"] == "http://one:7717"
            with pytest.raises(NotFound, match="no conversation"):
                await two.conversation("missing")
            with pytest.raises(Busy, match="http://one:7717"):
                await two.open("builds", shell="bash")
            # Its own work goes on when the database does not.
            databases.servers.coordinator.kill()
            try:
                other = await two.open("without", shell="bash")
                await other.run("echo found without a database")
                result = await two.search("found without", part="output", timeout_ms=30_000)
                assert result.hits and result.partial and result.missing
            finally:
                databases.servers.coordinator.start()


@async_test
async def test_an_invalid_url_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKPTY_DATABASE_URL", "a database")
    async with Engine(tmp_path) as engine:
        with pytest.raises(BadRequest, match="URL"):
            await engine.search("anything")
