"""The index in PostgreSQL: the contract on one server and on three, other hosts, and shards that go and come back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from blockpty.cluster.partitions import DatabaseCall
from blockpty.model.results import SearchResult
from blockpty.search.executor import find
from blockpty.search.index import Index, IndexUnavailable
from blockpty.search.overview import Asked
from blockpty.search.query import Query
from blockpty.search.records import Records
from blockpty.search.scan import Scan
from blockpty.testing import ManualClock
from tests.support import corpus
from tests.support.index_contract import IndexContract, fill, home, records
from tests.support.postgres_servers import Databases, Servers
from tests.support.shared_indexes import EVERYTHING, Keep, found_in, index_of

__all__ = ["home", "records"]


class TestThreeServers(IndexContract):
    @pytest.fixture
    def index(self, postgres_servers: Servers) -> Iterator[Index]:
        with postgres_servers.databases() as databases:
            made = index_of(databases)
            yield made
            made.close()


class TestOneServer(IndexContract):
    @pytest.fixture
    def index(self, postgres_servers: Servers) -> Iterator[Index]:
        with postgres_servers.databases(sharded=False) as databases:
            made = index_of(databases)
            yield made
            made.close()


# Shards that go and come back, and other hosts


def places(result: SearchResult) -> list[tuple[str, str, tuple[int, int]]]:
    return [(hit.conversation_id, hit.block_id, hit.span) for hit in result.hits]


def test_a_killed_shard_is_named_and_the_rest_is_found(small: Path, databases: Databases, keep: Keep) -> None:
    records, index = keep(Records(small)), keep(index_of(databases))
    fill(index, records)
    whole = found_in(records, index)
    assert not whole.partial and whole.next is None
    seen = index.overview(Asked(1000, 1000))
    shard = databases.servers.shards[0]
    try:
        shard.kill()
        result = find(records, index, EVERYTHING)
        assert index.overview(Asked(1000, 1000)) == seen and len(seen.blocks) == seen.total_blocks
        assert result.partial and result.missing == ["blockpty_shard_0"]
        # Conversations that are not indexed to their end were still looked at to their end.
        assert result.hits and set(places(result)) < set(places(whole))
    finally:
        shard.start()
    assert places(found_in(records, index)) == places(whole)


def test_a_shard_that_hangs_is_named_and_asked_again(
    small: Path, databases: Databases, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_for: list[DatabaseCall[Any]] = []
    abandon = DatabaseCall.abandon
    monkeypatch.setattr(DatabaseCall, "abandon", lambda call: (waited_for.append(call), abandon(call)))
    records, index = keep(Records(small)), keep(index_of(databases))
    fill(index, records)
    whole = found_in(records, index)
    shard = databases.servers.shards[1]
    try:
        shard.pause()
        result = find(records, index, EVERYTHING)
        assert result.partial and result.missing == ["blockpty_shard_1"] and result.hits
        # It is not waited for by each of those who come now: while it is paused, it is not asked.
        index._paused["_1"] = (time.monotonic() + 3600, 1.0)
        waited_for.clear()
        assert find(records, index, EVERYTHING).missing == ["blockpty_shard_1"]
        assert not waited_for
        index._paused["_1"] = (0.0, 1.0)
        assert find(records, index, EVERYTHING).missing == ["blockpty_shard_1"]
        assert waited_for
    finally:
        shard.resume()
    deadline = time.monotonic() + 60
    while (again := found_in(records, index)).missing:
        assert time.monotonic() < deadline
    assert places(again) == places(whole)


def test_without_the_coordinator_this_home_is_scanned(small: Path, databases: Databases, keep: Keep) -> None:
    records, index = keep(Records(small)), keep(index_of(databases))
    fill(index, records)
    whole = found_in(records, index)
    coordinator = databases.servers.coordinator
    try:
        coordinator.kill()
        result = found_in(records, index)
        assert result.partial and len(result.missing) == 1 and "password" not in result.missing[0]
        assert places(result) == places(whole)
        with pytest.raises(IndexUnavailable):
            index.positions()
    finally:
        coordinator.start()
    result = found_in(records, index)
    assert not result.partial and places(result) == places(whole)


def test_without_any_shard_this_home_is_scanned(small: Path, databases: Databases, keep: Keep) -> None:
    records, index = keep(Records(small)), keep(index_of(databases))
    fill(index, records)
    whole = found_in(records, index)
    shards = databases.servers.shards
    try:
        for shard in shards:
            shard.pause()
        # Who has little time left goes on from where it ended; and has not said anything about the shards.
        short = find(records, index, replace(EVERYTHING, timeout_ms=40))
        assert short.partial and (short.missing or short.next is not None) and not index._paused
        result = find(records, index, replace(EVERYTHING, timeout_ms=8_000))
        assert result.partial and result.missing == ["blockpty_shard_0", "blockpty_shard_1"]
        assert places(result) == places(whole)
    finally:
        for shard in shards:
            shard.resume()


def test_a_hit_of_another_host_has_its_address_and_the_same_place(
    tmp_path: Path, databases: Databases, keep: Keep
) -> None:
    # One conversation each, whose blocks have all ended: what is not indexed yet is seen by its own host alone.
    here = keep(Records(corpus.home_of(tmp_path / "here", conversations=1, blocks=24, seed=1)))
    other = corpus.home_of(tmp_path / "there", conversations=1, blocks=24, seed=2)
    (other / "conversations" / "c0").rename(other / "conversations" / "there-c0")
    there = keep(Records(other))
    index = keep(index_of(databases, "home-1", "http://here:7717"))
    others_index = keep(index_of(databases, "home-2", "http://there:7717"))
    fill(index, here)
    fill(others_index, there)
    for text, mode in (("error", "substring"), ("refused", "words"), (r"err\w+", "regex")):
        query = Query(text, mode, limit=1000, per_block=True)
        seen_here, seen_there = found_in(here, index, query), found_in(there, others_index, query)
        assert seen_here.next is None and not seen_here.partial
        assert places(seen_here) == places(seen_there)
        addresses = {hit.conversation_id.startswith("there-"): hit.elsewhere for hit in seen_here.hits}
        assert addresses == {True: "http://there:7717", False: None}
        assert {hit.elsewhere for hit in seen_there.hits} == {None, "http://here:7717"}


def test_chunks_that_were_added_before_their_text_was_kept_are_found(
    small: Path, databases: Databases, keep: Keep
) -> None:
    records, index = keep(Records(small)), keep(index_of(databases))
    fill(index, records)
    exact = Query("Error", ignore_case=False)
    queries = [Query("error"), Query("ERR", ignore_case=True), Query("r "), Query(r"err\w+|warn", "regex"), exact]
    whole = [found_in(records, index, replace(query, limit=1000)) for query in queries]
    assert all(result.hits for result in whole[:-1])
    with index.database.connection() as connection:
        # Of every other one.
        connection.execute("UPDATE chunk SET folded = NULL WHERE number % 2 = 1")
        assert connection.execute("SELECT count(*) FROM chunk WHERE folded IS NULL").fetchone() > (0,)
    for query, result in zip(queries, whole, strict=True):
        assert places(found_in(records, index, replace(query, limit=1000))) == places(result)


def test_a_name_that_another_home_has_is_not_indexed_and_still_found(
    small: Path, tmp_path: Path, databases: Databases, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It began at another time.
    monkeypatch.setattr(corpus, "ManualClock", lambda: ManualClock(ManualClock().now_ms + 77_777))
    second = corpus.home_of(tmp_path / "second", conversations=6, blocks=8, seed=3)
    one, two = keep(Records(small)), keep(Records(second))
    first_index = keep(index_of(databases, "home-1", "http://one:7717"))
    second_index = keep(index_of(databases, "home-2"))
    fill(first_index, one)
    fill(second_index, two)
    assert second_index.positions().of == {}
    query = Query("error", limit=1000, per_block=True)
    mine = [hit for hit in found_in(two, second_index, query).hits if hit.elsewhere is None]
    assert [(hit.conversation_id, hit.span) for hit in mine] == [
        (hit.conversation_id, hit.span) for hit in found_in(two, Scan(), query).hits
    ]
