"""The contract itself, on the simplest index there can be: a dictionary."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence

import pytest

from blockpty.search.index import Candidate, ChunkKey, Index, IndexEntry, IndexWatermark, Page, Positions
from blockpty.search.planner import Plan
from blockpty.search.text import words_of
from tests.support.index_contract import IndexContract, home, records

__all__ = ["home", "records"]


class MemoryIndex:
    """Keeps folded texts, and goes through all of them."""

    page = 16
    batch_bytes = 4 * 1024 * 1024

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self.drop()

    def drop(self) -> None:
        self._generation = str(next(self._numbers))
        self._positions: dict[str, IndexWatermark] = {}
        self._chunks: dict[ChunkKey, tuple[Candidate, str]] = {}

    def add(self, entries: Sequence[IndexEntry], positions: Mapping[str, IndexWatermark]) -> None:
        for entry in entries:
            block = entry.block
            for chunk in entry.chunks:
                key = ChunkKey(block.ts_begin, entry.conversation_id, block.seq, chunk.number)
                stored = functools.partial(bytes, chunk.raw) if chunk.number else None
                self._chunks[key] = Candidate(key, chunk.begin, chunk.end, block, stored), chunk.folded
        self._positions |= positions

    def positions(self) -> Positions:
        return Positions(self._generation, dict(self._positions))

    def candidates(self, plan: Plan, below: ChunkKey | None, limit: int, timeout_seconds: float) -> Page:
        found = []
        for key in sorted(self._chunks, reverse=True):
            candidate, folded = self._chunks[key]
            if below is not None and key >= below:
                continue
            if plan.literals and not any(all(text in folded for text in way) for way in plan.literals):
                continue
            if not set(plan.words) <= set(words_of(folded)):
                continue
            if len(found) == limit:
                return Page(found, True, self._generation)
            running = candidate.block.span[1] is None
            if running or plan.query.filters.admits(key.conversation_id, candidate.block):
                found.append(candidate)
        return Page(found, False, self._generation)

    def forget(self, conversation_id: str) -> None:
        self._positions.pop(conversation_id, None)
        self._chunks = {key: value for key, value in self._chunks.items() if key.conversation_id != conversation_id}

    def close(self) -> None:
        pass


class TestMemory(IndexContract):
    @pytest.fixture
    def index(self) -> Index:
        return MemoryIndex()
