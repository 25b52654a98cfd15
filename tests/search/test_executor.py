"""A search that runs out of time or of descriptors, or into a damaged record: nothing twice, nothing left out."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from blockpty.api.progress import Progress
from blockpty.search.executor import Match, SearchRun
from blockpty.search.index import Index, Positions
from blockpty.search.planner import plan
from blockpty.search.query import Query
from blockpty.search.records import Records
from blockpty.search.scan import Scan
from blockpty.search.sqlite import SqliteIndex
from blockpty.testing import FakePty, ManualClock
from tests.support import corpus
from tests.support.index_contract import fill

LINES = 3000


class Ending:
    """A clock by which the time is up when it has been asked so often."""

    def __init__(self, asked: int) -> None:
        self.left = asked

    def __call__(self) -> float:
        self.left -= 1
        return 0.0 if self.left > 0 else 9.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    pty = FakePty(ManualClock())
    pty.spawn()
    pty.prompt()
    pty.silence(icanon=False, echo=False, foreground="shell")
    pty.run("ls y", b"old error\r\n" * 3, 0)
    pty.run("ls x", b"hello error world\r\n" * LINES, 0)
    corpus.save(tmp_path / "home", "c0", pty)
    return tmp_path / "home"


@pytest.fixture(params=["sqlite", "scan"])
def asked(request: pytest.FixtureRequest, home: Path) -> Iterator[tuple[Records, Index]]:
    records = Records(home)
    index: Index = Scan()
    if request.param == "sqlite":
        index = SqliteIndex(home / "index")
        fill(index, records)
    yield records, index
    index.close()
    records.close()


def found(records: Records, index: Index, query: Query, asked: int) -> list[Match]:
    """Go on until the end; the first page ends when the clock was asked so often."""
    matches: list[Match] = []
    clock: Ending | None = Ending(asked)
    while True:
        one = SearchRun(records, index, query, clock) if clock is not None else SearchRun(records, index, query)
        page, before, _, _ = one.run()
        matches, clock, query = matches + page, None, replace(query, before=before)
        if before is None:
            return matches


def test_a_search_that_is_continued_finds_each_match_once(asked: tuple[Records, Index]) -> None:
    for calls in (*range(2, 40), 300, 700):
        named = [match.key[:3] for match in found(*asked, Query("error", per_block=True, timeout_ms=9000), calls)]
        assert len(named) == len(set(named)) == 2, calls
    # Within a chunk of which something was found; one that alone takes longer than there is time is passed, as is said.
    for calls in (1200, 1500):
        query = Query("err", "regex", limit=1000, timeout_ms=9000)
        keys = [match.key for match in found(*asked, query, calls)]
        assert len(keys) == len(set(keys)) == LINES + 3, calls


def test_an_index_that_has_no_time_says_how_far_it_looked(tmp_path: Path) -> None:
    pty = FakePty(ManualClock())
    pty.spawn()
    pty.prompt()
    for _ in range(40):
        # All that a list can tell is in each of them, but not the text.
        pty.run("ls", b"\x1b(Babcd bcde cdef defg\r\n" * 300, 0)
    corpus.save(tmp_path / "home", "c0", pty)
    records, index = Records(tmp_path / "home"), SqliteIndex(tmp_path / "index")
    try:
        fill(index, records)
        asked = replace(plan(Query("abcdefg", ignore_case=True)), seems=lambda conversations, kinds: ())
        looks, below, more = 0, None, True
        index.positions()
        while more:
            page = index.candidates(asked, below, 100, 0.0)
            assert len(page.candidates) == 1 or not page.more
            assert all(candidate.pieces == [] for candidate in page.candidates)
            if page.candidates:
                below = page.candidates[-1].key
            looks, more = looks + 1, page.more
        assert 3 < looks < 100
        assert not index.candidates(asked, None, 100, 60.0).candidates
    finally:
        index.close()
        records.close()


def test_what_is_indexed_meanwhile_is_not_done_twice(home: Path) -> None:
    records, index = Records(home), SqliteIndex(home / "index")

    class Filled:
        """Is filled just after it was asked how far it is."""

        page = index.page
        candidates = index.candidates

        def positions(self) -> Positions:
            found = index.positions()
            if not found.of:
                fill(index, records)
            return found

    try:
        with Progress() as progress:
            assert SearchRun(records, Filled(), Query("zq+x", "regex", timeout_ms=60_000)).run()[0] == []  # type: ignore[arg-type]
        assert progress.total is not None and progress.total * 0.9 < progress.done <= progress.total
    finally:
        index.close()
        records.close()


@pytest.mark.linux
def test_too_few_descriptors_are_no_lack_of_matches(tmp_path: Path) -> None:
    for number in range(40):
        pty = FakePty(ManualClock())
        pty.spawn()
        pty.prompt()
        pty.run("ls", b"needle\r\n", 0)
        corpus.save(tmp_path / "home", f"c{number}", pty)
    records, index = Records(tmp_path / "home"), SqliteIndex(tmp_path / "index")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        fill(index, records)
        records.close()
        index.positions()
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 12, limits[1]))
        matches, _, partial, missing = SearchRun(records, index, Query("needle", timeout_ms=60_000)).run()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        index.close()
        records.close()
    assert len(matches) == 40 and not partial and not missing


def test_a_damaged_record_does_not_end_the_search_of_others(home: Path) -> None:
    pty = FakePty(ManualClock())
    pty.spawn()
    pty.prompt()
    pty.run("ls", b"error here\r\n" * 2000, 0)
    corpus.save(home, "c1", pty)
    records, index = Records(home), SqliteIndex(home / "index")
    try:
        fill(index, records)
        records.close()
        damaged = home / "conversations" / "c1"
        (damaged / "begin.json").write_text("{nonsense")
        os.truncate(next((damaged / "stream").iterdir()), 100)
        matches = SearchRun(records, index, Query("old error", timeout_ms=60_000)).run()[0]
        assert len(matches) == 3
    finally:
        index.close()
        records.close()
