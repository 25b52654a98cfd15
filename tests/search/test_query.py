"""Queries: their bounds, the meaning of each filter, and the cursor of a page."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from blockpty.errors import BadRequest
from blockpty.search.query import MAX_PAGE, MAX_TEXT, MAX_TIMEOUT_MS, Filters, MatchKey, Query
from tests.support.blocks import BLOCK


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": ""}, {"text": "x" * (MAX_TEXT + 1)}, {"text": "a\nb"}, {"text": "a\rb"}, {"text": "\ud800"},
        {"text": " ", "mode": "words"}, {"text": "\t", "mode": "phrase"}, {"text": "x", "mode": "glob"},
        {"text": "x", "limit": 0}, {"text": "x", "limit": MAX_PAGE + 1}, {"text": "x", "timeout_ms": 0},
        {"text": "x", "timeout_ms": MAX_TIMEOUT_MS + 1},
    ],
    ids=repr,
)  # fmt: skip
def test_what_cannot_be_asked(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        Query(**wrong)


def test_case_counts_by_mode() -> None:
    assert [Query("x", mode).folds for mode in ("words", "phrase", "substring", "regex")] == [True, True, False, False]
    assert Query("x", ignore_case=True).folds
    assert not Query("x", "words", ignore_case=False).folds


@pytest.mark.parametrize("name", ["author", "kind", "part"])
def test_a_filter_of_unknown_words_is_refused(name: str) -> None:
    with pytest.raises(BadRequest, match=name):
        Filters(**{name: "nothing"})


FAILED = replace(BLOCK, exit_status=2)
UNKNOWN = replace(BLOCK, exit_status=None, duration_ms=None)


@pytest.mark.parametrize(
    ("filters", "admitted"),
    [
        (Filters(), (True, True, True)), (Filters(conversation_id="c2"), (False, False, False)),
        (Filters(cwd="/"), (True, True, True)), (Filters(cwd="/usr"), (False, False, False)),
        (Filters(exit_status=2), (False, True, False)), (Filters(failed=True), (False, True, False)),
        (Filters(failed=False), (True, False, False)), (Filters(since=5, until=6), (True, True, True)),
        (Filters(since=6), (False, False, False)), (Filters(until=5), (False, False, False)),
        (Filters(min_duration_ms=4), (True, True, False)), (Filters(min_duration_ms=5), (False, False, False)),
        (Filters(author="user"), (False, False, False)), (Filters(kind="command"), (True, True, True)),
    ],
)  # fmt: skip
def test_filters(filters: Filters, admitted: tuple[bool, ...]) -> None:
    assert tuple(filters.admits("c1", block) for block in (BLOCK, FAILED, UNKNOWN)) == admitted


def test_cursors_there_and_back() -> None:
    key = MatchKey(1 << 41, "c-1", 7, 0, 99)
    assert MatchKey.from_text(key.to_text()) == key
    assert "=" not in key.to_text()


@pytest.mark.parametrize("text", ["", "x", "W10", "WzEsMl0", "WzEsImMiLDEsMSwieCJd", "é"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        MatchKey.from_text(text)
