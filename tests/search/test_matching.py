"""Matching: where a query is found in a chunk, by its mode."""

from __future__ import annotations

import pytest

from blockpty.errors import BadRequest
from blockpty.search.matching import Matcher, OutOfTime
from blockpty.search.query import Query
from blockpty.search.text import Window

TEXT = b"one two\nTwo one three\ntwofold two two\n"


def found(query: Query, raw: bytes = TEXT) -> list[str]:
    window = Window(1, 0, raw, len(raw))
    return [window.text[begin:end] for begin, end in Matcher(query).find(window, lambda: 1.0)]


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        (Query("two"), ["two", "two", "two", "two"]),
        (Query("two", ignore_case=True), ["two", "Two", "two", "two", "two"]),
        (Query("TWO"), []),
        (Query("two two", "phrase"), ["two two"]),
        (Query("t(w)o$", "regex"), ["two", "two"]),
        (Query("x*", "regex"), []),
        (Query("(?i)^two", "regex"), ["Two", "two"]),
        (Query("one.two", "regex"), ["one two"]),
    ],
)
def test_by_mode(query: Query, matches: list[str]) -> None:
    assert found(query) == matches


def test_words_match_once_a_line() -> None:
    assert len(found(Query("one two", "words"))) == 2
    assert len(found(Query("two", "words"))) == 3
    assert not found(Query("fold", "words"))


def test_no_match_goes_over_a_line_end() -> None:
    assert not found(Query(r"two\s+Two", "regex"))
    assert not found(Query("two Two", "phrase", ignore_case=False))


def test_colours_do_not_hide_a_text() -> None:
    assert found(Query("needle"), b"nee\x1b[31mdle\x1b[m\n") == ["needle"]


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(BadRequest):
        Matcher(Query("(", "regex"))


def test_time_that_is_used_up() -> None:
    def none_left() -> float:
        raise OutOfTime

    window = Window(1, 0, TEXT, len(TEXT))
    with pytest.raises(OutOfTime):
        Matcher(Query("two", "regex")).find(window, none_left)
