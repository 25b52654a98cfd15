"""Candidates of a segment: in their order, however crowded their places are, and few for a word too short for it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from blockpty.model.block import Block
from blockpty.search import sqlite_segment
from blockpty.search.executor import SearchRun
from blockpty.search.index import ChunkKey, IndexEntry, IndexWatermark
from blockpty.search.planner import plan
from blockpty.search.query import Filters, Query
from blockpty.search.records import Records
from blockpty.search.sqlite import SqliteIndex
from blockpty.search.text import Window
from tests.support.index_contract import every_match, fill, home, keys_of, records

__all__ = ["home", "records"]


@pytest.mark.parametrize("joined", [2, 4, 100])
def test_chunks_come_newest_first_however_they_were_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joined: int
) -> None:
    monkeypatch.setattr(sqlite_segment, "_JOINED", joined)
    chance, keys = random.Random(3), []
    index = SqliteIndex(tmp_path / "index", segment_bytes=20_000)
    try:
        for round_ in range(6):
            entries = []
            for number in range(20):
                ts = chance.choice((1000, 1001, chance.randrange(2000), chance.randrange(100_000)))
                name, seq = f"c{number % 5}", round_ * 20 + number
                block = Block(
                    f"b{seq}", seq, "command", "x", "/", None, ts, ts, 0, "ended", 0, None, (0, 9), None, 9, 1, "agent"
                )
                chunks = [Window(part, 0, b"needle %d" % part, 8) for part in range(1, chance.choice((2, 3, 40)))]
                entries.append(IndexEntry(name, block, chunks))
                keys += [ChunkKey(ts, name, seq, chunk.number) for chunk in chunks]
            index.add(entries, {"c0": IndexWatermark()})
        index.positions()
        for since, until in ((None, None), (1001, None), (None, 1500), (1001, 50_000)):
            asked = plan(Query("needle", filters=Filters(since=since, until=until)))
            expected = sorted(
                (key for key in keys if (since or 0) <= key.ts < (until or 1_000_000)), reverse=True
            )  # fmt: skip
            named: list[ChunkKey] = []
            more = True
            while more:
                page = index.candidates(asked, named[-1] if named else None, 50, 30.0)
                named += [candidate.key for candidate in page.candidates]
                more = page.more
            assert named == expected
    finally:
        index.close()


def test_a_word_too_short_for_the_index_is_narrowed_down_by_what_is_around_it(tmp_path: Path, records: Records) -> None:
    index = SqliteIndex(tmp_path / "index")
    try:
        fill(index, records)
        for text in ("ls", "ls error"):
            query = Query(text, "words", limit=1000, timeout_ms=60_000)
            assert keys_of(SearchRun(records, index, query).run()[0]) == every_match(records, query)[:1000]
        named = index.candidates(plan(Query("ls", "words")), None, 100_000, 30.0).candidates
        every = index.candidates(plan(Query("l")), None, 100_000, 30.0).candidates
        assert 0 < len(named) < len(every) / 2
    finally:
        index.close()
