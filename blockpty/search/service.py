"""The search service of a home: queries in threads beside the event loop, and the index behind them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from blockpty.api.progress import Progress
from blockpty.model.block import Block
from blockpty.model.results import SearchResult
from blockpty.redact.redaction import redact_text
from blockpty.runtime.worker_threads import Pace, aside
from blockpty.search.backends import database_url, open_index, shared
from blockpty.search.executor import find
from blockpty.search.index import Index, IndexUnavailable
from blockpty.search.indexing import Indexing
from blockpty.search.overview import Asked, Catalogue, Overview, scanned
from blockpty.search.query import Query
from blockpty.search.records import Records

# How long a catalogue that does not answer may delay what can be done without it.
_ASKED_SECONDS: Final = 2.0
# Searches at the same time that keep their files open for the next one.
_KEPT: Final = 4
# How often a waiting overview looks at the progress of the index.
_LOOK_SECONDS: Final = 0.02


def _redacted(block: Block) -> Block:
    shown = redact_text(block.cmd)
    return block if shown == block.cmd else replace(block, cmd=shown)


class SearchService:
    """All records of a home, searched. `followed` names the conversations that may grow at any moment.

    Nothing is opened, and no index is made, before the first search or `start`.
    """

    def __init__(
        self, home: Path, followed: Callable[[], Collection[str]] = tuple, *, redact: bool = True
    ) -> None:
        self._home = home
        self._redact = redact
        self._followed = followed
        self._indexing: Indexing | None = None
        self._idle: list[tuple[Records, Index]] = []
        self._lock = threading.Lock()
        self._closed = False

    def start(self) -> None:
        """Begin to keep the index up to date."""
        if self._indexing is None and not self._closed:
            index = open_index(self._home)
            self._indexing = Indexing(self._home, lambda: index, self._followed)

    async def claim(self, conversation_id: str) -> str | None:
        """Take a name in the shared catalogue, if there is one; return the address of the host that has it already."""
        return await self._asked("claim", conversation_id)

    async def elsewhere(self, conversation_id: str) -> str | None:
        """Return the address of the host that has a conversation, as far as a shared catalogue knows; None: ours."""
        return await self._asked("elsewhere", conversation_id)

    async def _asked(self, question: str, conversation_id: str) -> str | None:
        url = database_url()
        if url is None:
            return None
        try:
            async with asyncio.timeout(_ASKED_SECONDS):
                where: str | None = await asyncio.to_thread(
                    getattr(shared(), question), self._home, url, conversation_id
                )
        except (IndexUnavailable, TimeoutError):
            # A catalogue never stands in the way of a shell: the name is claimed when it is indexed.
            return None
        return where

    async def find(self, query: Query) -> SearchResult:
        """Search; raises BadRequest for a pattern that is none.

        Cancelling returns at once; the thread ends soon after.
        """
        self.start()
        return await aside(lambda pace: self._find(query, pace))

    def _find(self, query: Query, pace: Pace) -> SearchResult:
        with self._reader() as (records, index):
            return find(records, index, query, redact=self._redact, pace=pace)

    async def overview(self, asked: Asked, timeout_seconds: float) -> tuple[Overview, bool]:
        """Return what there is to see, and whether not all of the index is there.

        The first call waits for the index, so that a home does not look empty when it is opened.
        """
        self.start()
        whole = self._indexing is None or await self._indexed(self._indexing, timeout_seconds)
        return await asyncio.to_thread(self._overview, asked, whole)

    async def _indexed(self, indexing: Indexing, timeout_seconds: float) -> bool:
        """Wait until everything is indexed, and report the progress to the caller; return whether it is."""
        deadline = time.monotonic() + timeout_seconds
        progress = Progress.of_caller()
        while not (whole := indexing.swept.is_set()) and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
            progress.take(indexing.progress.to_dict())
        return whole

    def _overview(self, asked: Asked, whole: bool) -> tuple[Overview, bool]:
        with self._reader() as (records, index):
            if isinstance(index, Catalogue):
                with contextlib.suppress(IndexUnavailable):
                    seen = index.overview(asked)
                    return self._redacted(seen), seen.partial or not whole
            return self._redacted(scanned(records, asked)), False

    def _redacted(self, seen: Overview) -> Overview:
        if not self._redact:
            return seen
        return replace(
            seen,
            conversations=[(*one[:4], _redacted(one[4])) for one in seen.conversations],
            blocks=[(name, _redacted(block)) for name, block in seen.blocks],
        )

    @contextmanager
    def _reader(self) -> Iterator[tuple[Records, Index]]:
        with self._lock:
            reader = self._idle.pop() if self._idle else None
        records, index = reader or (Records(self._home), open_index(self._home))
        try:
            yield records, index
        finally:
            with self._lock:
                keep = not self._closed and len(self._idle) < _KEPT
                if keep:
                    self._idle.append((records, index))
            if not keep:
                records.close()
                index.close()

    async def close(self) -> None:
        """Stop indexing and close the files; searches that run end by themselves."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for records, index in idle:
            records.close()
            index.close()
        if self._indexing is not None:
            await asyncio.to_thread(self._indexing.stop)
            self._indexing = None
