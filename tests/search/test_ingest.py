"""Ingest: batches of about the size that is asked for, which together bring an index to the end of the records."""

from __future__ import annotations

from blockpty.search.index import IndexWatermark
from blockpty.search.ingest import batches
from blockpty.search.records import Records
from tests.support.index_contract import home, records

__all__ = ["home", "records"]


def chunks_of(records: Records, batch_bytes: int) -> tuple[list[tuple[str, int, int]], dict[str, IndexWatermark], int]:
    """Return the chunks in their order, where the index is after them, and the number of batches."""
    found: list[tuple[str, int, int]] = []
    positions: dict[str, IndexWatermark] = {}
    count = 0
    for batch in batches(records, positions.copy(), batch_bytes):
        count += 1
        positions |= batch.positions
        found += [
            (entry.conversation_id, entry.block.seq, chunk.number) for entry in batch.entries for chunk in entry.chunks
        ]
    return found, positions, count


def test_the_size_of_a_batch_changes_nothing_else(records: Records) -> None:
    small, large = chunks_of(records, 1000), chunks_of(records, 1 << 30)
    assert small[:2] == large[:2]
    assert small[2] > large[2] == 1
    assert len(set(small[0])) == len(small[0])


def test_nothing_comes_twice(records: Records) -> None:
    _, positions, _ = chunks_of(records, 1 << 20)
    assert [batch.entries for batch in batches(records, positions, 1 << 20) if batch.entries] == []


def test_what_was_left_off_goes_on_there(records: Records) -> None:
    whole, _, count = chunks_of(records, 5000)
    assert count > 2
    first = next(batches(records, {}, 5000))
    rest = [
        (entry.conversation_id, entry.block.seq, chunk.number)
        for batch in batches(records, first.positions, 5000)
        for entry in batch.entries
        for chunk in entry.chunks
    ]
    begun = [
        (entry.conversation_id, entry.block.seq, chunk.number) for entry in first.entries for chunk in entry.chunks
    ]
    assert sorted([*begun, *rest]) == sorted(whole)


def test_only_the_conversations_that_are_named(records: Records) -> None:
    name = min(records.names())
    found = {entry.conversation_id for batch in batches(records, {}, 1 << 30, [name]) for entry in batch.entries}
    assert found == {name}
