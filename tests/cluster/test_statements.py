"""A shard works out the statements for candidates by itself."""

from __future__ import annotations

import pytest

from blockpty.cluster import statements
from blockpty.search.index import ChunkKey
from blockpty.search.planner import plan
from blockpty.search.query import Filters, Query
from tests.support.postgres_servers import Databases
from tests.support.shared_indexes import Keep, index_of


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
