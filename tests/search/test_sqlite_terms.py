"""Plans and filters in the terms of the SQLite index."""

from __future__ import annotations

import sqlite3

import pytest

from blockpty.search.query import Filters
from blockpty.search.sqlite_terms import _grams, _range, conditions, indexed


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b"\n\n"),
        ("a b", b"\na b\n"),
        ("a\t\n", b"\na\t\n\n"),
        ("a\x1b\x7f", b"\na\1\1\n"),
        ("é\x00→", "\né\1\1\n".encode()),
    ],
)
def test_a_text_is_indexed_between_line_ends_and_without_signs(text: str, data: bytes) -> None:
    assert indexed(text) == data


@pytest.mark.parametrize("data", [b"a", b"abc", b"abcd", b"\xff\xff\xff", b"abcdef"])
def test_a_range_holds_all_that_begins_with_these_bytes_and_nothing_else(data: bytes) -> None:
    low, high = _range(data)
    begin = data[:4]
    assert low.to_bytes(4, "big") == begin.ljust(4, b"\0")
    assert high.to_bytes(4, "big") == begin.ljust(4, b"\xff")


@pytest.mark.parametrize("text", ["abc", "abcd", "abcdefghij", "a→bcdé"])
def test_a_text_holds_all_of_its_grams(text: str) -> None:
    data = indexed(text)
    held = [int.from_bytes(data[at : at + 4], "big") for at in range(len(data) - 3)]
    grams = _grams([text])
    assert grams
    assert all(any(low <= one <= high for one in held) for low, high in grams)


def test_a_text_that_is_too_short_asks_for_nothing() -> None:
    assert _grams(["", "a", "ab"]) == []


@pytest.mark.parametrize("cwd", ["/src", "/src/"])
def test_a_directory_means_those_below_it_and_none_whose_name_it_begins(cwd: str) -> None:
    where, values = conditions(Filters(cwd=cwd))
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE blocks (cwd TEXT)")
    for path in ("/src", "/src/", "/src/a", "/src/é", "/src0", "/src-a", "/srcs", "/", "/a/src"):
        database.execute("INSERT INTO blocks VALUES (?)", [path])
    rows = database.execute(f"SELECT cwd FROM blocks b WHERE {' AND '.join(where)}", values).fetchall()
    database.close()
    assert [path for (path,) in rows] == ["/src", "/src/", "/src/a", "/src/é"]


def test_a_filter_that_is_zero_or_false_is_still_one() -> None:
    assert conditions(Filters()) == ([], [])
    assert conditions(Filters(exit_status=0))[1] == [0]
    assert conditions(Filters(failed=False))[1] == [False]
