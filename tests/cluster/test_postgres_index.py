"""The index in PostgreSQL: the contract on one server and on three, other hosts, and shards that go and come back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from blockpty.cluster import statements
from blockpty.cluster.database import Database
from blockpty.cluster.hosts import Hosts
from blockpty.cluster.partitions import DatabaseCall
from blockpty.cluster.postgres_index import PostgresIndex
from blockpty.errors import BadRequest, Busy, NotFound
from blockpty.model.results import SearchResult
from blockpty.ops.engine import Engine
from blockpty.search.executor import find
from blockpty.search.index import ChunkKey, Index, IndexUnavailable, IndexWatermark
from blockpty.search.ingest import batches
from blockpty.search.overview import Asked
from blockpty.search.planner import plan
from blockpty.search.query import Filters, Query
from blockpty.search.records import Records
from blockpty.search.scan import Scan
from blockpty.testing import ManualClock
from tests.support import corpus
from tests.support.async_tests import async_test
from tests.support.index_contract import IndexContract, fill, home, records
from tests.support.postgres_servers import Databases, Servers

__all__ = ["home", "records"]


def index_of(databases: Databases, home: str = "home-1", address: str = "", *, seconds: float = 60.0) -> PostgresIndex:
    shards = [Database(url) for url in databases.shards]
    return PostgresIndex(Database(databases.url), Hosts(home, "host", address, seconds=seconds), shards)


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


class Closed(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closed)


class Keep:
    """What is handed to it is closed at the end."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def __call__(self, made: C) -> C:
        self._stack.callback(made.close)
        return made


@pytest.fixture
def keep(databases: Databases) -> Iterator[Keep]:
    with ExitStack() as stack:
        yield Keep(stack)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return corpus.home_of(tmp_path / "here", conversations=6, blocks=8, seed=1)


@pytest.fixture
def databases(postgres_servers: Servers) -> Iterator[Databases]:
    with postgres_servers.databases() as made:
        yield made


EVERYTHING = Query("r", limit=1000, per_block=True)


def found_in(records: Records, index: Index, query: Query = EVERYTHING) -> SearchResult:
    return find(records, index, replace(query, timeout_ms=30_000))


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


@pytest.mark.parametrize("text", [": ", "err", "a|error", "nothing of this kind"])
def test_a_shard_finds_orders_and_checks_by_itself(databases: Databases, keep: Keep, text: str) -> None:
    """Else the coordinator asks it for each row once more, which takes seconds."""
    index = keep(index_of(databases))
    index.positions()
    asked = plan(Query(text, "regex" if "|" in text else "substring", filters=Filters(failed=True, cwd="/x", since=5)))
    below, ways = ChunkKey(1 << 41, "c1", 3, 1), statements.ways(asked)
    made = [statements.walk(asked, key, limit, "_0") for key in (None, below) for limit in (64, 2048)]
    if ways:
        spans = (statements.Span(), statements.Span(1 << 40, 1 << 41), statements.Span(None, 1 << 41))
        made += [statements.look_up(asked, ways, key, span, 64, "_0") for key in (None, below) for span in spans]
    with index._reading.connection() as connection:
        for statement, words in made:
            rows = connection.execute(f"EXPLAIN (VERBOSE, COSTS OFF) {statement}".encode(), words).fetchall()
            lines = [row[0].strip() for row in rows]
            (remote,) = [line for line in lines if line.startswith("Remote SQL")]
            assert [line.partition(" ")[0] for line in lines if "Scan" in line or "Join" in line or "Sort" in line] in (
                ["Foreign"], ["->"],
            )  # fmt: skip
            assert "ORDER BY" in remote and "Filter" not in " ".join(lines)
            assert remote.count("strpos(") == sum(len(way) for way in asked.literals)


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


def test_an_owner_of_before_writes_nothing(small: Path, databases: Databases, keep: Keep) -> None:
    """The disk of a home moves to another machine; the first one wakes up and goes on as if nothing had happened."""
    records = keep(Records(small))
    index = keep(index_of(databases, seconds=0.2))
    made = list(batches(records, {}, index.batch_bytes))
    index.add(made[0].entries, made[0].positions)
    taken = {lease.conversation for lease in index.hosts.held()}
    assert taken == set(made[0].positions)
    before = index.positions()
    moved = keep(PostgresIndex(Database(databases.url), Hosts("home-1", "another host", seconds=60)))
    deadline = time.monotonic() + 30
    while len(moved.hosts.held()) < len(taken):
        assert time.monotonic() < deadline
        moved.hosts._refused.clear()
        moved.add([], dict.fromkeys(taken, IndexWatermark(1, 1)))
    index.add(made[0].entries, made[0].positions)
    assert not index.hosts.held()
    fresh = keep(index_of(databases))
    assert set(fresh.positions().of.values()) == {IndexWatermark(1, 1)}
    assert fresh.positions().generation == before.generation


# Engines of several hosts


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
                await two.conversation("nobodys")
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
async def test_a_url_that_is_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKPTY_DATABASE_URL", "a database")
    async with Engine(tmp_path) as engine:
        with pytest.raises(BadRequest, match="URL"):
            await engine.search("anything")
