"""A segment of the index: its parts become one without a moment in which something is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from blockpty.model.block import Block
from blockpty.search import sqlite_segment
from blockpty.search.index import ChunkKey, IndexEntry, IndexWatermark
from blockpty.search.planner import plan
from blockpty.search.query import Query
from blockpty.search.sqlite import SqliteIndex
from blockpty.search.text import Window

if TYPE_CHECKING:
    import pytest

QUERY = Query("error", limit=1000, timeout_ms=60_000)


def test_what_is_there_is_named_while_parts_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_segment, "_JOINED", 2)
    writer, reader = SqliteIndex(tmp_path / "index"), SqliteIndex(tmp_path / "index")
    there: set[ChunkKey] = set()

    def add(number: int) -> None:
        block = Block(
            f"b{number}", number, "command", "x", "/", None, 7 * number % 50, 99, 0, "ended", 0, None, (0, 9), None, 9,
            1, "agent",
        )  # fmt: skip
        writer.add([IndexEntry("c", block, [Window(1, 0, b"needle\n", 7)])], {"c": IndexWatermark(number, number)})
        there.add(ChunkKey(block.ts_begin, "c", number, 1))

    def seems(conversations: Sequence[tuple[str, Sequence[tuple[int, int]]]], kinds: Sequence[int]) -> Sequence[int]:
        # In the middle of a page.
        if len(there) % 2:
            add(100 + len(there))
        return range(len(kinds))

    asked = replace(plan(Query("needle")), seems=seems)
    try:
        for number in range(1, 30):
            add(number)
            reader.positions()
            before, named, more = set(there), [], True
            while more:
                page = reader.candidates(asked, named[-1] if named else None, 5, 30.0)
                named += [candidate.key for candidate in page.candidates]
                more = page.more
            assert named == sorted(set(named), reverse=True) and before <= set(named)
    finally:
        writer.close()
        reader.close()
