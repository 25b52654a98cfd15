"""The index in SQLite: the contract, and what happens to its files."""

from __future__ import annotations

import contextlib
import math
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from blockpty.search import sqlite, sqlite_pieces, sqlite_reading
from blockpty.search.executor import SearchRun
from blockpty.search.index import Index, IndexUnavailable
from blockpty.search.query import Query
from blockpty.search.records import Records
from blockpty.search.sqlite import SqliteIndex
from tests.support.index_contract import IndexContract, every_match, fill, home, keys_of, records

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


class TestSqliteInSmallRows(IndexContract):
    @pytest.fixture
    def index(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
        """Have every search go over many rows and looks, and report its progress again and again."""
        monkeypatch.setattr(sqlite_pieces, "ROW", 3)
        monkeypatch.setattr(sqlite_reading, "_TOGETHER", (1, 4))
        monkeypatch.setattr(sqlite_reading, "monotonic", lambda: math.inf)
        index = SqliteIndex(tmp_path / "index")
        yield index
        index.close()


def test_a_second_reader_sees_what_the_writer_adds(tmp_path: Path, records: Records) -> None:
    writer, reader = SqliteIndex(tmp_path / "index"), SqliteIndex(tmp_path / "index")
    try:
        assert reader.positions().of == {}
        fill(writer, records)
        assert reader.positions() == writer.positions()
        assert keys_of(SearchRun(records, reader, QUERY).run()[0]) == every_match(records, QUERY)[:1000]
        writer.drop()
        assert keys_of(SearchRun(records, reader, QUERY).run()[0]) == every_match(records, QUERY)[:1000]
        assert reader.positions() == writer.positions()
    finally:
        writer.close()
        reader.close()


def test_an_index_of_another_version_is_made_anew(tmp_path: Path, records: Records) -> None:
    index = SqliteIndex(tmp_path / "index")
    try:
        fill(index, records)
        index.close()
        with contextlib.closing(sqlite3.connect(tmp_path / "index" / "catalogue.sqlite")) as database, database:
            database.execute("UPDATE about SET version = 2")
        assert index.positions().of == {} and not list((tmp_path / "index").glob("0*.sqlite"))
        fill(index, records)
        assert keys_of(SearchRun(records, index, QUERY).run()[0]) == every_match(records, QUERY)[:1000]
    finally:
        index.close()


def test_removed_and_damaged_files_cost_nothing_but_time(tmp_path: Path, records: Records) -> None:
    directory = tmp_path / "index"
    index, expected = SqliteIndex(directory), every_match(records, QUERY)[:1000]
    try:
        for spoil in (
            _remove, _overwrite, _remove_a_segment, _overwrite_a_segment, _spoil_lists, _empty_lists, _spoil_places,
            _cut_places,
        ):  # fmt: skip
            fill(index, records)
            index.close()
            spoil(directory)
            assert keys_of(SearchRun(records, index, QUERY).run()[0]) == expected, spoil
            fill(index, records)
            assert keys_of(SearchRun(records, index, QUERY).run()[0]) == expected, spoil
        fill(index, records)
        _remove(directory)
        assert index.positions().of == {}
    finally:
        index.close()


def test_a_home_that_has_gone_is_not_made_again(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    index = SqliteIndex(tmp_path / "home" / "index")
    try:
        assert index.positions().of == {}
        (tmp_path / "home").rename(tmp_path / "moved")
        with pytest.raises(IndexUnavailable, match="home"):
            index.positions()
        assert not (tmp_path / "home").exists()
    finally:
        index.close()


def test_what_a_killed_engine_has_taken_away_is_deleted_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / "index.0123abcd.removed"
    left.mkdir()
    (left / "catalogue.sqlite").write_text("a transcript")
    index = SqliteIndex(tmp_path / "index")
    index.positions()
    index.drop()
    assert [*tmp_path.iterdir()] == []
    index.positions()
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
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


def _spoil_lists(directory: Path) -> None:
    for path in _segments(directory):
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE lists SET data = substr(data, 1, length(data) / 2)")


def _overwrite_a_segment(directory: Path) -> None:
    _segments(directory)[0].write_bytes(b"no database" * 1000)


def _spoil_places(directory: Path) -> None:
    for path in _segments(directory):
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE places SET data = substr(data, 2)")


def _cut_places(directory: Path) -> None:
    for path in _segments(directory):
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE places SET data = substr(data, 1, 15)")


def _empty_lists(directory: Path) -> None:
    for path in _segments(directory):
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE lists SET data = x''")


def test_a_directory_that_another_engine_replaces_before_it_is_locked_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, other = SqliteIndex(tmp_path / "index"), SqliteIndex(tmp_path / "index")
    open_directory, replacements = sqlite._open_directory, [2]

    def replaced(path: Path) -> int:
        descriptor = open_directory(path)
        if replacements[0]:
            replacements[0] -= 1
            monkeypatch.setattr(sqlite, "_open_directory", open_directory)
            other.drop()
            other.positions()
            monkeypatch.setattr(sqlite, "_open_directory", replaced)
        return descriptor

    monkeypatch.setattr(sqlite, "_open_directory", replaced)
    try:
        assert index.positions().generation == other.positions().generation
        assert replacements == [0]
        replacements[0] = 1
        index.drop()  # which another engine has just done
        assert replacements == [0] and (tmp_path / "index" / "catalogue.sqlite").exists()
    finally:
        other.close()
        index.close()


def test_while_one_engine_opens_or_closes_a_file_no_other_takes_it_away(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, index, other = sqlite._connect, SqliteIndex(tmp_path / "index"), SqliteIndex(tmp_path / "index")
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0)
    refused: list[str] = []

    def take_away(what: str) -> None:
        with pytest.raises(IndexUnavailable, match="locked"):
            other.drop()
        refused.append(what)

    class Watched(sqlite3.Connection):
        def close(self) -> None:
            take_away("closed")
            super().close()

    def opened(path: Path, schema: str) -> sqlite3.Connection:
        with monkeypatch.context() as patched:
            patched.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Watched))
            database = connect(path, schema)
        take_away("opened")
        return database

    monkeypatch.setattr(sqlite, "_connect", opened)
    fill(index, records)
    assert refused == ["opened", "opened"], "the catalogue and a segment"
    index.close()
    assert refused[2:] == ["closed", "closed"]
    other.drop()
    assert not (tmp_path / "index").exists()


def test_a_segment_is_never_one_of_another_catalogue(tmp_path: Path, records: Records) -> None:
    index, other = SqliteIndex(tmp_path / "index"), SqliteIndex(tmp_path / "index")
    try:
        index.positions()
        index._open()  # by now it is known that the file is still the one at its place
        other.drop()
        fill(other, records)
        with pytest.raises(IndexUnavailable):
            index._segment(0)
        assert index.positions() == other.positions()
    finally:
        other.close()
        index.close()


def test_two_processes_that_make_an_index_at_once_have_the_same_one(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from blockpty.search.index import IndexUnavailable\nfrom blockpty.search.sqlite import SqliteIndex\n"
        "for line in sys.stdin:\n"
        "    index = SqliteIndex(Path(sys.argv[1]))\n"
        "    index.drop()\n"
        "    try:\n"
        "        print(index.positions().generation, flush=True)\n"
        "    except IndexUnavailable:  # as in the other process\n"
        "        print('unavailable', flush=True)\n"
        "    index.close()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "index")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(100):
            index = SqliteIndex(tmp_path / "index")
            process.stdin.write("\n")
            process.stdin.flush()
            with contextlib.suppress(IndexUnavailable):  # it was replaced at a bad moment; the next call sees
                index.positions()
            process.stdout.readline()
            later = SqliteIndex(tmp_path / "index")
            assert index.positions().generation == later.positions().generation
            index.close()
            later.close()
        process.stdin.close()
    assert process.returncode == 0
