"""Searching without an index: what every index has to find as well."""

from __future__ import annotations

import random

import pytest

from blockpty.search.executor import SearchRun
from blockpty.search.query import Query
from blockpty.search.records import Records
from blockpty.search.scan import Scan
from tests.support.index_contract import QUERIES, every_match, home, keys_of, pages_of, random_query, records

__all__ = ["home", "records"]


@pytest.mark.timeout(600)
def test_a_scan_finds_what_a_look_at_every_byte_finds(records: Records) -> None:
    names = sorted(records.names())
    for number in range(QUERIES // 5):
        query = random_query(random.Random(1000 + number), names)
        expected = every_match(records, query)
        if len(expected) > 3 * query.limit:
            assert keys_of(SearchRun(records, Scan(), query).run()[0]) == expected[: query.limit], query
        else:
            assert keys_of(pages_of(records, Scan(), query)) == expected, query


def test_a_search_that_runs_out_of_time_goes_on_where_it_stopped(records: Records) -> None:
    expected = every_match(records, Query("error"))
    found, before, rounds = [], None, 0
    while True:
        times = iter(range(10**9))
        query = Query("error", limit=1000, before=before, timeout_ms=200)
        matches, before, partial, _ = SearchRun(records, Scan(), query, clock=lambda: next(times) / 1000).run()  # noqa: B023
        found += matches
        rounds += 1
        if not partial and before is None:
            break
    assert keys_of(found) == expected and rounds > 1
