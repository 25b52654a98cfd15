"""What every index that counts must tell of a home: inherit `OverviewContract` and give it a fixture `index`.

What is right is said by `scanned`, which looks at every block.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from blockpty.search.index import Index, IndexEntry
from blockpty.search.ingest import batches
from blockpty.search.overview import Asked, Overview, scanned
from blockpty.search.records import Records
from tests.support.index_contract import everything, fill


class CountingIndex(Index, Protocol):
    def overview(self, asked: Asked) -> Overview: ...


def alike(one: Overview, other: Overview) -> bool:
    """Whether both say the same; blocks of the same millisecond are in no particular order."""
    return (
        sorted(one.conversations) == sorted(other.conversations)
        and [block.ts_begin for _, block in one.blocks] == [block.ts_begin for _, block in other.blocks]
        and {(name, block.seq) for name, block in one.blocks} == {(name, block.seq) for name, block in other.blocks}
        and one.statuses == other.statuses
        and (one.total_conversations, one.total_blocks) == (other.total_conversations, other.total_blocks)
    )


class OverviewContract:
    def test_the_counts_are_those_of_the_records(self, index: CountingIndex, records: Records) -> None:
        fill(index, records)
        middle = sorted(block.ts_begin for _, block, _ in everything(records))[20]
        for asked in (
            Asked(1000, 1000),
            Asked(1000, 1000, conversation_id="c2"),
            Asked(1000, 1000, failed=True),
            Asked(1000, 1000, failed=False, before=middle),
            Asked(1000, 1000, conversation_id="none"),
        ):
            assert alike(index.overview(asked), scanned(records, asked)), asked
        newest = index.overview(Asked(2, 3))
        assert len(newest.conversations) == 2 and len(newest.blocks) == 3
        assert newest.blocks[0][1].ts_begin == max(
            block.ts_begin for _, block, _ in everything(records) if block.span[1] is not None
        )

    def test_a_block_that_comes_again_counts_once_and_one_that_is_forgotten_not_at_all(
        self, index: CountingIndex, records: Records
    ) -> None:
        for batch in batches(records, {}, index.batch_bytes):
            running = []
            for entry in batch.entries:
                block = replace(entry.block, span=(entry.block.span[0], None), exit_status=None)
                running.append(IndexEntry(entry.conversation_id, block, ()))
            index.add(running, {})
            index.add(batch.entries, batch.positions)
            index.add(batch.entries, batch.positions)
        asked = Asked(1000, 1000)
        assert alike(index.overview(asked), scanned(records, asked))
        before = index.overview(asked).total_blocks
        of_one = index.overview(Asked(conversation_id="c3")).total_blocks
        index.forget("c3")
        assert index.overview(asked).total_blocks == before - of_one > 0
        assert "c3" not in {name for name, *_ in index.overview(asked).conversations}
        index.drop()
        empty = index.overview(asked)
        assert (empty.conversations, empty.blocks, dict(empty.statuses), empty.total_blocks) == ([], [], {}, 0)
