"""What every index must do, whatever its backend: inherit `IndexContract` and give it a fixture `index`.

    class TestSqlite(IndexContract):
        @pytest.fixture
        def index(self, tmp_path: Path) -> Iterator[Index]: ...

What is right is said by `every_match`, which looks at every byte and knows neither plans nor pages.
"""

from __future__ import annotations

import functools
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from blockpty.errors import BadRequest
from blockpty.model.block import Block
from blockpty.search.executor import Match, SearchRun, find
from blockpty.search.index import ChunkKey, Index, IndexWatermark, Page
from blockpty.search.ingest import batches
from blockpty.search.matching import Matcher
from blockpty.search.planner import Plan, plan
from blockpty.search.query import Filters, MatchKey, Query
from blockpty.search.records import Records
from blockpty.search.scan import Scan
from blockpty.search.text import Window, words_of
from tests.support import corpus

QUERIES = int(os.environ.get("BLOCKPTY_SEARCH_QUERIES", "16"))
_PATIENCE_MS = 60_000


@functools.lru_cache(maxsize=64)
def every_match(records: Records, query: Query) -> list[tuple[MatchKey, int]]:
    """Return all matches of a query, newest first, each with its end; the records are only read, so it is kept."""
    matcher, found = Matcher(query), []
    for name, block, windows in everything(records):
        if not query.filters.admits(name, block):
            continue
        of_block = []
        for window in windows:
            if query.filters.part == ("output" if window.number == 0 else "command"):
                continue
            for begin, end in matcher.find(window, lambda: 60.0):
                first, after = window.span(begin, end)
                of_block.append((MatchKey(block.ts_begin, name, block.seq, window.number, first), after))
        found += of_block[-1:] if query.per_block else of_block
    return sorted(found, reverse=True)


@functools.lru_cache(maxsize=1)
def everything(records: Records) -> list[tuple[str, Block, list[Window]]]:
    """Return all blocks of the home with all their chunks."""
    found = []
    for name in records.names():
        tail = records.tail(name, None)
        assert tail is not None
        record = records.record(name)
        found += [(name, block, list(record.chunks(block, tail.cursor))) for block in tail.blocks]
    return found


def fill(index: Index, records: Records, *, share: float = 1.0, seed: int = 0) -> None:
    """Bring an index up to date, or some of the way: each batch is taken with the given probability."""
    chance = random.Random(seed)
    for batch in batches(records, index.positions().of, index.batch_bytes):
        if share == 1.0 or chance.random() < share:
            index.add(batch.entries, batch.positions)


def pages_of(records: Records, index: Index, query: Query) -> list[Match]:
    """Return all matches, page by page."""
    matches: list[Match] = []
    before = query.before
    while True:
        asked = replace(query, before=before, timeout_ms=_PATIENCE_MS)
        found, before, partial, missing = SearchRun(records, index, asked).run()
        assert not partial and not missing
        assert len(found) <= query.limit
        matches += found
        if before is None:
            return matches


def random_query(chance: random.Random, conversations: Sequence[str]) -> Query:
    """Return a query that finds something more often than not."""
    mode = chance.choice(("words", "phrase", "substring", "substring", "regex"))
    words = chance.choices(corpus.WORDS, k=chance.choice((1, 1, 2)))
    text = " ".join(words)
    if mode == "substring" and chance.random() < 0.7:
        begin = chance.randrange(len(text))
        text = text[begin : begin + chance.choice((1, 2, 3, 5, 9))]
    if mode == "regex":
        text = chance.choice(
            (
                r"err(or)?", r"[45]0\d", r"(error|warning) \w+", r"^\w+", r"\w+$", r"Key\w{3,}r", r"x{1,3}86",
                r"commit.*", r"(?i)HTTP/\d", r"0x[0-9a-f]+", r"(?<=connection )refused", r"timeout(?! retry)", r"\s\s",
                r"a|b|cache", r"(?:src|lib)/", r"Gr..e", r"--\w+", r"\btoken\b", r"[[:digit:]]{3} KeyError",
                r"(?:archvie){e<=2}",
            )
        )  # fmt: skip
    started = corpus.ManualClock().now_ms
    filters = Filters(
        conversation_id=chance.choice(conversations) if chance.random() < 0.2 else None,
        failed=chance.choice((True, False)) if chance.random() < 0.2 else None,
        exit_status=chance.choice((0, 1, 130)) if chance.random() < 0.1 else None,
        since=started + chance.randrange(5000) if chance.random() < 0.1 else None,
        until=started + chance.randrange(9000) if chance.random() < 0.1 else None,
        min_duration_ms=chance.choice((1, 30)) if chance.random() < 0.1 else None,
        author=chance.choice(("agent", "user")) if chance.random() < 0.1 else None,
        kind=chance.choice(("command", "background")) if chance.random() < 0.1 else None,
        part=chance.choice(("any", "any", "output", "command")),
    )
    return Query(
        text, mode, chance.choice((None, None, True, False)), filters, chance.choice((1, 7, 100, 1000)),
        per_block=chance.random() < 0.2,
    )  # fmt: skip


def keys_of(matches: Sequence[Match]) -> list[tuple[MatchKey, int]]:
    """Return what must be equal for every index."""
    return [(match.key, match.end) for match in matches]


# Only read, so all modules of a process have the same ones, and what is right is worked out once.
_home = functools.cache(lambda base: corpus.home_of(Path(tempfile.mkdtemp(prefix="home", dir=base))))
_records = functools.cache(Records)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that is only read; import this fixture beside the contract."""
    made: Path = _home(tmp_path_factory.getbasetemp())
    return made


@pytest.fixture(scope="module")
def records(home: Path) -> Iterator[Records]:
    """Its records; import this fixture as well."""
    records = _records(home)
    yield records
    records.close()


class IndexContract:
    """The tests; `index` is empty when each of them begins."""

    @pytest.mark.timeout(600)
    def test_random_queries_find_what_a_look_at_every_byte_finds(self, index: Index, records: Records) -> None:
        fill(index, records, share=0.7)
        names, found_any = sorted(records.names()), 0
        for number in range(QUERIES):
            query = random_query(random.Random(number), names)
            expected = every_match(records, query)
            if len(expected) > 10 * query.limit:
                expected = expected[: query.limit]
                found, following, *_ = SearchRun(records, index, replace(query, timeout_ms=_PATIENCE_MS)).run()
                assert following is not None
            else:
                found = pages_of(records, index, query)
            assert keys_of(found) == expected, (number, query)
            found_any += bool(expected)
        assert found_any > QUERIES // 2

    def test_it_names_what_the_plan_asks_for_newest_first_and_page_by_page(
        self, index: Index, records: Records
    ) -> None:
        fill(index, records)
        generation = index.positions().generation
        for text, mode in (
            ("error", "substring"), ("connection refused", "words"), ("er", "phrase"), ("Gr.", "regex"),
            ("ls", "words"),
        ):  # fmt: skip
            asked = plan(Query(text, mode))
            named: list[ChunkKey] = []
            below, more = None, True
            while more:
                page: Page = index.candidates(asked, below, 5, 30.0)
                assert page.generation == generation and not page.missing
                named += [candidate.key for candidate in page.candidates]
                below, more = (named[-1] if named else None), page.more
            assert named == sorted(set(named), reverse=True)
            assert set(named) >= set(_must_be_named(records, asked))

    def test_what_is_added_again_is_there_once(self, index: Index, records: Records) -> None:
        for batch in batches(records, {}, index.batch_bytes):
            index.add(batch.entries, batch.positions)
            index.add(batch.entries, batch.positions)
        query = Query("error", timeout_ms=_PATIENCE_MS, limit=1000)
        page = index.candidates(plan(query), None, 100_000, 30.0)
        keys = [candidate.key for candidate in page.candidates]
        assert len(keys) == len(set(keys))
        assert keys_of(SearchRun(records, index, query).run()[0]) == every_match(records, query)[:1000]

    def test_positions_are_those_that_were_given(self, index: Index, records: Records) -> None:
        assert index.positions().of == {}
        expected: dict[str, IndexWatermark] = {}
        for batch in batches(records, {}, index.batch_bytes):
            index.add(batch.entries, batch.positions)
            expected |= batch.positions
        assert dict(index.positions().of) == expected
        assert {name for name, position in expected.items() if position.settled < 0} < set(expected)
        assert all(not batch.entries for batch in batches(records, index.positions().of, index.batch_bytes))

    def test_a_dropped_index_is_a_new_one_and_empty(self, index: Index, records: Records) -> None:
        fill(index, records)
        before = index.positions().generation
        index.drop()
        assert index.positions().of == {} and index.positions().generation != before
        assert not index.candidates(plan(Query("error")), None, 10, 30.0).candidates
        fill(index, records)
        query = Query("error", timeout_ms=_PATIENCE_MS, limit=1000)
        assert keys_of(SearchRun(records, index, query).run()[0]) == every_match(records, query)[:1000]

    def test_an_index_dropped_while_it_is_asked_leaves_nothing_out(self, index: Index, records: Records) -> None:
        fill(index, records)
        query = Query("er", timeout_ms=_PATIENCE_MS, limit=1000)
        dropping = _DropsAfter(index, 2)
        found = SearchRun(records, dropping, query).run()[0]
        assert dropping.dropped
        assert keys_of(found) == every_match(records, query)[:1000]

    def test_a_forgotten_conversation_is_indexed_anew(self, index: Index, records: Records) -> None:
        fill(index, records)
        index.forget("c3")
        assert "c3" not in index.positions().of
        fill(index, records)
        query = Query("error", timeout_ms=_PATIENCE_MS, limit=1000, filters=Filters(conversation_id="c3"))
        assert keys_of(SearchRun(records, index, query).run()[0]) == every_match(records, query)[:1000]

    def test_a_result_tells_of_the_block_and_shows_the_line(self, index: Index, records: Records) -> None:
        fill(index, records)
        result = find(records, index, Query("refused", limit=50, timeout_ms=_PATIENCE_MS))
        assert len(result.hits) == 50 and result.next is not None and not result.partial
        for hit in result.hits:
            begin, end = hit.snippet_span
            assert hit.snippet[begin:end] == "refused" and "\n" not in hit.snippet and len(hit.snippet) <= 200
            assert hit.block_id == f"b{hit.seq}" and hit.elsewhere is None
        again = find(
            records, index, Query("refused", limit=50, timeout_ms=_PATIENCE_MS, before=MatchKey.from_text(result.next))
        )
        assert again.hits and not {(hit.conversation_id, hit.span) for hit in again.hits} & {
            (hit.conversation_id, hit.span) for hit in result.hits
        }

    def test_a_pattern_that_takes_for_ever_ends_in_a_flagged_answer(self, index: Index, records: Records) -> None:
        fill(index, records)
        result = find(records, index, Query(r"^(?:\w|\w\w|\s)+[^\w\s]{7}$", "regex", timeout_ms=200))
        assert result.partial and result.next is not None
        with pytest.raises(BadRequest, match="regular expression"):
            find(records, index, Query("(", "regex"))


class _DropsAfter(Scan):
    """An index that is dropped while it is asked."""

    def __init__(self, index: Index, pages: int) -> None:
        self._index = index
        self._left = pages
        self.dropped = False

    def positions(self) -> object:  # type: ignore[override]
        return self._index.positions()

    def candidates(self, plan: Plan, below: ChunkKey | None, limit: int, timeout_seconds: float) -> Page:
        self._left -= 1
        if not self._left:
            self._index.drop()
            self.dropped = True
        return self._index.candidates(plan, below, min(limit, 3), timeout_seconds)


def _must_be_named(records: Records, asked: Plan) -> Iterator[ChunkKey]:
    for name, block, windows in everything(records):
        for window in windows if block.span[1] is not None else ():
            if any(
                set(asked.words) <= set(words_of(line))
                and (not asked.literals or any(all(text in line for text in way) for way in asked.literals))
                for line in window.folded.split("\n")
            ):
                yield ChunkKey(block.ts_begin, name, block.seq, window.number)
