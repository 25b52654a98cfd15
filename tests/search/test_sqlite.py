"""The index in SQLite: the contract, and what happens to its files."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from blockpty.search.finding import Finding
from blockpty.search.index import Index
from blockpty.search.plan import plan
from blockpty.search.query import Query
from blockpty.search.records import Records
from blockpty.search.sqlite import SqliteIndex
from tests.search.contract import IndexContract, every_match, fill, home, keys_of, records

__all__ = ["home", "records"]

QUERY = Query("error", limit=1000, timeout_ms=60_000)


class TestSqlite(IndexContract):
    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[Index]:
        # Small segments, so that every search goes over several.
        index = SqliteIndex(tmp_path / "index", segment_bytes=200_000)
        yield index
        index.close()
        assert len(list((tmp_path / "index").glob("0*.sqlite"))) != 1


def test_a_second_reader_sees_what_the_writer_adds(tmp_path: Path, records: Records) -> None:
    writer, reader = SqliteIndex(tmp_path / "index"), SqliteIndex(tmp_path / "index")
    try:
        assert reader.positions().of == {}
        fill(writer, records)
        assert reader.positions() == writer.positions()
        assert keys_of(Finding(records, reader, QUERY).run()[0]) == every_match(records, QUERY)[:1000]
        writer.drop()
        assert keys_of(Finding(records, reader, QUERY).run()[0]) == every_match(records, QUERY)[:1000]
        assert reader.positions() == writer.positions()
    finally:
        writer.close()
        reader.close()


def test_a_word_too_short_for_the_index_is_narrowed_down_by_what_is_around_it(tmp_path: Path, records: Records) -> None:
    index = SqliteIndex(tmp_path / "index")
    try:
        fill(index, records)
        for text in ("ls", "ls error"):
            query = Query(text, "words", limit=1000, timeout_ms=60_000)
            assert keys_of(Finding(records, index, query).run()[0]) == every_match(records, query)[:1000]
        named = index.candidates(plan(Query("ls", "words")), None, 100_000, 30.0).candidates
        every = index.candidates(plan(Query("l")), None, 100_000, 30.0).candidates
        assert 0 < len(named) < len(every) / 2
    finally:
        index.close()


def test_an_index_of_another_version_is_made_anew(tmp_path: Path, records: Records) -> None:
    index = SqliteIndex(tmp_path / "index")
    try:
        fill(index, records)
        index.close()
        with contextlib.closing(sqlite3.connect(tmp_path / "index" / "catalogue.sqlite")) as database, database:
            database.execute("UPDATE about SET version = 2")
        assert index.positions().of == {} and not list((tmp_path / "index").glob("0*.sqlite"))
        fill(index, records)
        assert keys_of(Finding(records, index, QUERY).run()[0]) == every_match(records, QUERY)[:1000]
    finally:
        index.close()


def test_removed_and_damaged_files_cost_nothing_but_time(tmp_path: Path, records: Records) -> None:
    directory = tmp_path / "index"
    index = SqliteIndex(directory)
    try:
        for spoil in (_remove, _overwrite, _remove_a_segment, _overwrite_a_segment):
            fill(index, records)
            index.close()
            spoil(directory)
            assert keys_of(Finding(records, index, QUERY).run()[0]) == every_match(records, QUERY)[:1000], spoil
            fill(index, records)
            assert keys_of(Finding(records, index, QUERY).run()[0]) == every_match(records, QUERY)[:1000], spoil
        fill(index, records)
        _remove(directory)
        assert index.positions().of == {}
    finally:
        index.close()


def test_only_its_owner_can_read_it(tmp_path: Path, records: Records) -> None:
    index = SqliteIndex(tmp_path / "index")
    fill(index, records)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "index").iterdir()}
    index.close()
    assert modes == {0o600} and stat.S_IMODE((tmp_path / "index").stat().st_mode) == 0o700


def _remove(directory: Path) -> None:
    shutil.rmtree(directory)


def _overwrite(directory: Path) -> None:
    (directory / "catalogue.sqlite").write_bytes(b"no database" * 1000)


def _segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("0*.sqlite"))


def _remove_a_segment(directory: Path) -> None:
    _segments(directory)[0].unlink()


def _overwrite_a_segment(directory: Path) -> None:
    _segments(directory)[0].write_bytes(b"no database" * 1000)
