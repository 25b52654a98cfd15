"""The executor of one search: candidates of the index and what is not indexed yet, merged, newest first, verified.

Rules of this file: a match is what `matching` says of the stream's own bytes, whatever the index says. So results
are complete and exact with a good index, an old one and none; a bad one only costs time.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from blockpty.api.progress import Progress
from blockpty.errors import SpoolError
from blockpty.model.block import Block
from blockpty.model.results import SearchHit, SearchResult
from blockpty.redact.redaction import find_sent, redact_spans, redact_text
from blockpty.search.index import Candidate, ChunkKey, Index, IndexUnavailable, Positions
from blockpty.search.matching import Matcher, OutOfTime
from blockpty.search.planner import plan
from blockpty.search.prefilter import Prefilter
from blockpty.search.query import COMMAND, MatchKey, Query
from blockpty.search.records import Record, Records, Tail
from blockpty.search.text import CommandWindow, Window

T = TypeVar("T")
_LARGEST_PAGE: Final = 2048
_SNIPPET: Final = 160
# So many bytes of outputs are read to number the lines of one result.
_COUNTED: Final = 4 * 1024 * 1024
# So many pieces are read at once, where they are not in memory.
_MANY: Final = 16
# In place of an offset: below every match of a chunk.
_ALL_OF_IT: Final = -1
# Above every key, for a search that ran out of time before it had looked at anything.
_TOP: Final = MatchKey(1 << 42, "", 0, 0, _ALL_OF_IT)


class Chunk(NamedTuple):
    """A chunk whose turn it is.

    Attributes:
        windows: makes what of it may match: all of it, or the pieces that may, in order.
        whole: makes all of it again, where that may be more.
        here: its stream is that of a record here.
    """

    key: ChunkKey
    block: Block
    windows: Callable[[], Sequence[Window]]
    whole: Callable[[], Window | None] | None
    host: str | None
    here: bool = True


class Match(Struct, frozen=True):
    """One match: its place, where it ends (as `MatchKey.offset`), its block, and the line it is in.

    Attributes:
        snippet: the line around it, at most about 160 characters.
        snippet_span: where it is in the snippet, in characters.
        host: address of the host that has it, None for this one.
    """

    key: MatchKey
    end: int
    block: Block
    snippet: str
    snippet_span: tuple[int, int]
    host: str | None


class _Redo(Exception):
    """The index was dropped meanwhile: what is indexed has to be asked again."""


class SearchRun:
    """One search over the records of a home and an index of them; `clock` gives seconds and never goes back."""

    def __init__(
        self,
        records: Records,
        index: Index,
        query: Query,
        clock: Callable[[], float] = time.monotonic,
        *,
        redact: bool = True,
        pace: Callable[[], None] = lambda: None,
    ) -> None:
        self._redact = redact
        self._pace = pace
        self._records = records
        self._index = index
        self._query = query
        self._clock = clock
        self._deadline = clock() + query.timeout_ms / 1000
        self._matcher = Matcher(query)
        asked = plan(query)
        self._plan = replace(asked, seems=self._seems)
        self._prefilter = Prefilter(asked)
        self._there: dict[str, bool] = {}
        self._missing: dict[str, None] = {}
        self._matches: list[Match] = []
        self._last_block: tuple[str, int] | None = None
        # Everything above this key has been looked at.
        self._passed = query.before
        self._scanned_only = False
        self._progress = Progress.of_caller()

    def run(self) -> tuple[list[Match], MatchKey | None, bool, tuple[str, ...]]:
        """Return the matches, where to go on, whether time ran out, and which parts of the index did not answer."""
        before = self._query.before
        if Progress.wanted() is not None:
            # An index leaves most of it out.
            self._progress.begin("search", self._records.size(self._query.filters.conversation_id))
        if before is not None and before.offset != _ALL_OF_IT and self._query.per_block:
            self._last_block = (before.conversation_id, before.seq)
        while True:
            try:
                more = self._go_through()
                return self._matches, self._matches[-1].key if more else None, False, tuple(self._missing)
            except OutOfTime:
                return self._matches, self._passed or _TOP, True, tuple(self._missing)
            except _Redo:
                continue

    def _remaining(self) -> float:
        self._pace()
        left = self._deadline - self._clock()
        if left <= 0:
            raise OutOfTime
        return left

    def _go_through(self) -> bool:
        """Collect matches; return whether there are more than fit on the page."""
        positions = self._positions()
        tails = self._tails(positions)
        fresh = {(name, block.seq): block for name, tail in tails.items() for block in tail.blocks}
        merged = heapq.merge(
            self._unindexed(positions, tails),
            self._indexed(positions, fresh),
            key=lambda chunk: chunk.key,
            reverse=True,
        )
        last: ChunkKey | None = None
        first = True
        for chunk in merged:
            if chunk.key == last or not self._wanted(chunk):
                continue
            last, passed = chunk.key, self._passed
            try:
                self._remaining()
                # What is not admitted is passed like all else, so that the next page has less to do.
                spans = self._query.filters.admits(chunk.key.conversation_id, chunk.block) and self._look(chunk)
            except OutOfTime:
                if first and self._passed is passed:
                    # It alone takes longer than there is time: the next page must get past it.
                    self._passed = MatchKey(*chunk.key, _ALL_OF_IT)
                raise
            first = False
            if spans:
                return True
            if self._passed is passed or not self._query.per_block:
                self._passed = MatchKey(*chunk.key, _ALL_OF_IT)
            # Otherwise the cursor says which block was named.
        return False

    def _look(self, chunk: Chunk) -> bool:
        """Take the matches of a chunk, last first; return whether the page is full and there is another."""
        try:
            windows = chunk.windows()
        except IndexUnavailable as problem:
            self._unavailable(problem)
            raise _Redo from None
        for window in reversed(windows):
            window, spans = self._found(chunk, window)
            for begin, end in reversed(spans):
                offsets = window.span(begin, end)
                key = MatchKey(*chunk.key, offsets[0])
                if self._passed is not None and key >= self._passed:
                    continue
                if len(self._matches) == self._query.limit:
                    return True
                snippet, span = snippet_of(window.text, begin, end)
                self._matches.append(Match(key, offsets[1], chunk.block, snippet, span, chunk.host))
                self._last_block = (key.conversation_id, key.seq)
                self._passed = key
                if self._query.per_block:
                    return False
        return False

    def _found(self, chunk: Chunk, window: Window) -> tuple[Window, list[tuple[int, int]]]:
        """Return a window as it may be shown, and the matches in it.

        It is the redacted text that is matched, and what overlaps a secret is no match: else a query could ask for a
        secret piece by piece, and the hits, their number or the page's cursor would show it.
        """
        if not self._redact:
            return window, self._matcher.find(window, self._remaining)
        lines = self._matcher.reach(window, self._remaining)
        if lines is None or lines[0] == lines[1]:
            return window, []
        secrets = self._secrets(chunk, window, *window.span(*lines))
        if not secrets:
            return window, self._matcher.find(window, self._remaining)
        at = window.begin
        raw = redact_spans(window.raw, [(max(0, begin - at), min(end - at, len(window.raw))) for begin, end in secrets])
        shown = Window(window.number, at, raw, window.end - at)
        if window.number == COMMAND:
            shown = CommandWindow(raw.decode("utf-8", "replace"))

        def free(begin: int, end: int) -> bool:
            first, last = shown.span(begin, end)
            number = bisect.bisect_right(secrets, first, key=lambda one: one[1])
            return number == len(secrets) or secrets[number][0] >= last

        return shown, self._matcher.find(shown, self._remaining, free)

    def _secrets(self, chunk: Chunk, window: Window, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the secrets in a span of the stream, or of a command, in order."""
        name = chunk.key.conversation_id
        if window.number != COMMAND and chunk.here:
            return self._ask(name, lambda record: record.secrets(begin, end), [])
        # What another host has is known as far as the chunk goes.
        whole = (chunk.whole() if chunk.whole is not None else None) or window
        found = [(whole.begin + first, whole.begin + last) for first, last in find_sent(whole.raw).spans]
        return [one for one in found if one[1] > begin and one[0] < end]

    def _wanted(self, chunk: Chunk) -> bool:
        filters = self._query.filters
        key = chunk.key
        if filters.part != "any" and (key.number == COMMAND) is not (filters.part == "command"):
            return False
        if self._query.per_block and self._last_block == (key.conversation_id, key.seq):
            return False
        return self._passed is None or tuple(key) <= tuple(self._passed[:4])

    # What is not indexed

    def _positions(self) -> Positions:
        if self._scanned_only:
            return Positions("", {})
        try:
            return self._index.positions()
        except IndexUnavailable as problem:
            self._unavailable(problem)
            return Positions("", {})

    def _unavailable(self, problem: IndexUnavailable) -> None:
        self._scanned_only = True
        self._missing |= dict.fromkeys(problem.missing)

    def _tails(self, positions: Positions) -> dict[str, Tail]:
        only = self._query.filters.conversation_id
        tails = {}
        for name in self._records.unsettled(positions.of):
            if only is None or name == only:
                self._remaining()
                tail = self._records.tail(name, positions.of.get(name))
                if tail is not None:
                    tails[name] = tail
        return tails

    def _unindexed(self, positions: Positions, tails: dict[str, Tail]) -> Iterator[Chunk]:
        blocks = sorted(
            ((block.ts_begin, name, block.seq, block) for name, tail in tails.items() for block in tail.blocks),
            key=lambda item: item[:3],
            reverse=True,
        )
        for ts, name, seq, block in blocks:
            if self._passed is not None and (ts, name, seq) > self._passed[:3]:
                continue
            if not self._query.filters.admits(name, block):
                continue
            position = positions.of.get(name)
            begin = (0, 0)
            if position is not None and position.open_seq == seq:
                begin = (position.open_number, position.open_cursor)
            record = self._records.record(name)
            self._remaining()
            for window in reversed(list(record.chunks(block, tails[name].cursor, begin))):
                key = ChunkKey(ts, name, seq, window.number)
                self._progress.add(window.end - window.begin)
                yield Chunk(key, block, lambda window=window: (window,), None, None)  # type: ignore[misc]

    # What is indexed

    def _indexed(self, positions: Positions, fresh: dict[tuple[str, int], Block]) -> Iterator[Chunk]:
        if self._scanned_only:
            return
        below = None if self._passed is None else ChunkKey(*self._passed[:3], self._passed.number + 1)
        limit, more, looked = self._index.page, True, 0
        while more:
            try:
                page = self._index.candidates(self._plan, below, limit, self._remaining())
            except IndexUnavailable as problem:
                self._unavailable(problem)
                raise _Redo from None
            if page.generation != positions.generation:
                raise _Redo
            self._missing |= dict.fromkeys(page.missing)
            if page.missing:
                self._remaining()  # it may be gone, and then the rest is for the next page
            for candidate in page.candidates:
                key = candidate.key
                if candidate.pieces is None:
                    self._progress.add(candidate.end - candidate.begin)
                block = fresh.get((key.conversation_id, key.seq), candidate.block)
                whole = partial(self._window, candidate)
                yield Chunk(
                    key, block, partial(self._windows, candidate), whole, candidate.host, candidate.stored is None
                )
                below = key
                looked += 1
            # Of each so many have matched; some more, so that it will do.
            wanted = (self._query.limit - len(self._matches) + 2) * 5 * looked // (4 * max(1, len(self._matches)))
            limit, more = min(4 * limit, max(self._index.page, wanted), _LARGEST_PAGE), page.more

    def _window(self, candidate: Candidate) -> Window | None:
        key = candidate.key
        if key.number == COMMAND:
            # What the index remembers of a conversation that was deleted is not shown any more.
            here = candidate.host is None and candidate.stored is None
            if here and not (self._exists(key.conversation_id) and self._is_kept(candidate)):
                return None
            return CommandWindow(candidate.block.cmd)
        if candidate.stored is not None:
            raw = candidate.stored()
            return None if raw is None else Window(key.number, candidate.begin, raw, candidate.end - candidate.begin)
        return self._records.window(key.conversation_id, candidate.block, key.number, candidate.begin, candidate.end)

    def _windows(self, candidate: Candidate) -> Sequence[Window]:
        if candidate.pieces is None or candidate.stored is not None:
            whole = self._window(candidate)
            if whole is None or whole.number == COMMAND:
                return () if whole is None else (whole,)
            # Of lines that hold nothing, no text need be made.
            return [piece for piece in whole.pieces() if self._prefilter.may_match(piece.raw)]
        spans = candidate.pieces
        nothing: list[tuple[int, bytes]] = []
        found = self._ask(candidate.key.conversation_id, lambda record: record.pieces(spans), nothing)
        return [Window(candidate.key.number, begin, raw, len(raw)) for begin, raw in found]

    def _seems(
        self, conversations: Sequence[tuple[str, Sequence[tuple[int, int]]]], kinds: Sequence[int]
    ) -> Sequence[int]:
        pieces: list[bytes] = []
        if len(kinds) >= _MANY:
            for name, spans in conversations:
                self._ask(name, lambda record, spans=spans: record.expect(spans), None)  # type: ignore[misc]
        for name, spans in conversations:
            nothing = [b""] * len(spans)
            pieces += self._ask(name, lambda record, spans=spans: record.bare(spans), nothing)  # type: ignore[misc]
            self._progress.add(sum(end - begin for begin, end in spans))
        return self._prefilter.among(pieces, kinds)

    def _ask(self, name: str, action: Callable[[Record], T], gone: T) -> T:
        """Ask a record, which may have gone meanwhile, or say nothing of where it begins."""
        for _ in range(2):
            try:
                return action(self._records.record(name))
            except SpoolError:
                return gone
            except OSError as problem:
                if problem.errno not in (errno.EMFILE, errno.ENFILE):
                    return gone
                self._records.close()  # what it lacks others may have
        self._missing[name] = None
        return gone

    def _is_kept(self, candidate: Candidate) -> bool:
        try:
            return candidate.block.seq >= self._records.record(candidate.key.conversation_id).first_block()
        except (OSError, SpoolError):
            return False

    def _exists(self, name: str) -> bool:
        if name not in self._there:
            self._there[name] = self._records.exists(name)
        return self._there[name]


def snippet_of(text: str, begin: int, end: int) -> tuple[str, tuple[int, int]]:
    """Return the line around a match, at most about `_SNIPPET` characters, and where the match is in it."""
    first, last = text.rfind("\n", 0, begin) + 1, text.find("\n", end)
    last = last if last >= 0 else len(text)
    shown_end = min(end, begin + _SNIPPET)
    room = max(0, _SNIPPET - (shown_end - begin))
    first = max(first, begin - room // 2)
    last = min(last, max(shown_end, first + _SNIPPET))
    return text[first:last], (begin - first, min(end, last) - first)


def find(
    records: Records, index: Index, query: Query, *, redact: bool = True, pace: Callable[[], None] = lambda: None
) -> SearchResult:
    """Search; this blocks, for at most about the query's time. Raises BadRequest for a pattern that is none.

    With `redact`, secrets are redacted in what is shown, and what overlaps one is not found. `pace` is called
    between pieces, and ends it by an exception.
    """
    matches, following, unfinished, missing = SearchRun(records, index, query, redact=redact, pace=pace).run()
    # Many matches are of few blocks.
    shown = {cmd: redact_text(cmd) if redact else cmd for cmd in {match.block.cmd for match in matches}}
    lines = _lines(records, matches, pace)
    return SearchResult(
        [_hit(match, shown[match.block.cmd], line) for match, line in zip(matches, lines, strict=True)],
        following.to_text() if following is not None else None,
        unfinished or bool(missing),
        list(missing),
    )


def _lines(records: Records, matches: Sequence[Match], pace: Callable[[], None]) -> list[int | None]:
    """Return in which lines of their outputs matches are, where that does not take much reading."""
    found: list[int | None] = []
    left = _COUNTED
    # Of a block the last match comes first, and what is before it holds the lines of the others.
    block: tuple[str, int] = ("", 0)
    data = b""
    for match in matches:
        pace()
        begin = match.block.span[0]
        size, line = match.key.offset - begin, None
        if match.key.number != COMMAND and match.host is None:
            if block != (match.key.conversation_id, begin) and size <= left:
                block, data = (match.key.conversation_id, begin), b""
                left -= size
                with contextlib.suppress(OSError, SpoolError):  # it may be gone
                    data = records.record(match.key.conversation_id).read(begin, size)
            if block == (match.key.conversation_id, begin) and len(data) >= size:
                line = data.count(b"\n", 0, size) + 1
        found.append(line)
    return found


def _hit(match: Match, cmd: str, line: int | None) -> SearchHit:
    block, key = match.block, match.key
    part = "command" if key.number == COMMAND else "output"
    return SearchHit(
        conversation_id=key.conversation_id,
        block_id=block.block_id,
        seq=block.seq,
        part=part,
        span=(key.offset, match.end),
        cursor=block.span[0] if part == "command" else key.offset,
        snippet=match.snippet,
        snippet_span=match.snippet_span,
        cmd=cmd,
        cwd=block.cwd,
        kind=block.kind,
        author=block.author,
        state=block.state,
        exit_status=block.exit_status,
        ts_begin=block.ts_begin,
        duration_ms=block.duration_ms,
        elsewhere=match.host,
        line=line,
    )
