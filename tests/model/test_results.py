"""Results: what they hold comes back from JSON, whatever version wrote it."""

from __future__ import annotations

import json

from blockpty.model.result import Result
from blockpty.model.results import BlockResult, OpenResult
from blockpty.model.search_results import Activity, FoundBlock, OverviewResult, SearchHit, SearchResult
from tests.support.blocks import BLOCK


def there_and_back(result: Result) -> Result:
    content = json.loads(json.dumps(result.to_dict()))
    assert content["ok"] is True
    again = type(result).from_dict({**content, "of_a_later_version": 1})
    assert again.to_dict() == result.to_dict()
    return again


def test_results_of_one_block() -> None:
    assert there_and_back(BlockResult(BLOCK, 7)) == BlockResult(BLOCK, 7)
    opened = OpenResult("c1", "s1", 5, 0, "idle")
    assert there_and_back(opened) == opened


def test_results_over_many_conversations() -> None:
    activity = Activity("c1", True, 3, 1, 5, BLOCK)
    overview = OverviewResult([activity], [FoundBlock("c1", BLOCK)], {"0": 2, "unknown": 1}, 1, 3)
    assert there_and_back(overview) == overview
    hit = SearchHit(
        "c1", "b1", 1, "output", (3, 9), 3, "a needle", (2, 8), "true", None, "command", "agent", "ended", 0, 5, None
    )
    found = SearchResult([hit], None, True, ["shard"])
    assert there_and_back(found) == found
    assert isinstance(found.hits[0].span, tuple)


def test_fields_of_a_later_version_may_be_missing() -> None:
    content = Activity("c1", True, 3, 1, 5, BLOCK).to_dict()
    del content["elsewhere"]
    assert Activity.from_dict(content).elsewhere is None
