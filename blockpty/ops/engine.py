"""Engine with everything that the table has: conversations, and search over all of them.

This file joins rooms and holds no rule. Search and the archive are imported when they are first used: a program that
only runs commands need not wait for them. Search, which takes 30 ms, is imported in a thread.
"""

from __future__ import annotations

import sys
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from blockpty.api import limits
from blockpty.errors import BadCursor, BadRequest, Busy, NotFound
from blockpty.model.results import Activity, ArchiveResult, FoundBlock, OverviewResult, SearchHit, SearchResult
from blockpty.runtime.engine import ConversationEngine
from blockpty.runtime.wait_text import lines_around
from blockpty.runtime.worker_threads import aside

if TYPE_CHECKING:
    from blockpty.search.service import SearchService

_SEARCH = "blockpty.search.service"
# As far above and below a match its lines are looked for.
CONTEXT_BYTES: Final = 8192


class Engine(ConversationEngine):
    __doc__ = ConversationEngine.__doc__

    @cached_property
    def home_search(self) -> SearchService:
        """What searches this home; made when it is first used."""
        from blockpty.search.service import SearchService

        return SearchService(self.home, lambda: tuple(self._conversations), redact=self._record.redact)

    def __dir__(self) -> list[str]:
        """Offer the operations and what belongs to them."""
        from blockpty.ops.manifest import offered

        return offered(super().__dir__())

    async def close(self) -> None:
        """Close what was opened without `persist`, and detach from the rest."""
        if "home_search" in vars(self):
            await self.home_search.close()
            del self.home_search
        await super().close()

    async def _admit(self, conversation_id: str) -> None:
        where = await self.home_search.claim(conversation_id) if _has_catalogue() else None
        if where is not None:
            raise Busy(
                f"{conversation_id} is a conversation of another host, {where}",
                hint="ask there, or choose another name",
                details={"conversation_id": conversation_id, "address": where},
            )  # fmt: skip

    async def _sought_elsewhere(self, conversation_id: str) -> None:
        where = await self.home_search.elsewhere(conversation_id) if _has_catalogue() else None
        if where is not None:
            raise NotFound(
                f"{conversation_id} is not on this host but on {where}", hint="ask there",
                details={"conversation_id": conversation_id, "address": where},
            )  # fmt: skip

    async def search(
        self,
        query: str,
        *,
        mode: str = "substring",
        regex: bool = False,
        ignore_case: bool | None = None,
        context: int = 0,
        conversation_id: str | None = None,
        cwd: str | None = None,
        exit_status: int | None = None,
        failed: bool | None = None,
        since: int | None = None,
        until: int | None = None,
        min_duration_ms: int | None = None,
        author: str | None = None,
        kind: str | None = None,
        part: str = "any",
        per_block: bool = False,
        page: str | None = None,
        page_size: int = 100,
        timeout_ms: int = 2000,
        timeout: float | None = None,
    ) -> SearchResult:
        """Search the output and commands of all conversations of this home, newest first; every match is verified.

        `mode`: words, phrase, substring or regex; `regex` stands for the last; `ignore_case` is by default set for the
        first two. `context`: lines around each match in an output of this home, 0 to 1000. `since`, `until`: ms since
        1970. `page`: `next` of an earlier result. `page_size`: 1 to 1000. `timeout_ms`, 1 to 60,000, or in its
        place `timeout` in seconds: what was found by then is returned, flagged as `partial`. Cancelling returns at
        once. Raises BadRequest.
        """
        timeout_ms = limits.milliseconds(timeout, timeout_ms)
        limits.check("context", context)
        if regex and mode not in ("substring", "regex"):
            raise BadRequest(f"mode {mode[:40]} takes no regular expression", hint="give one of the two")
        await _import_search()
        from blockpty.search.query import Filters, MatchKey, Query

        filters = Filters(
            conversation_id, cwd, exit_status, failed, since, until, min_duration_ms, author, kind, part
        )  # fmt: skip
        before = MatchKey.from_text(page) if page is not None else None
        asked = Query(query, "regex" if regex else mode, ignore_case, filters, page_size, before, per_block, timeout_ms)
        found = await self.home_search.find(asked)
        if not context:
            return found
        return replace(found, hits=[await self._with_context(hit, context) for hit in found.hits])

    async def _with_context(self, hit: SearchHit, count: int) -> SearchHit:
        """Return a hit with the lines around it, as far as they lie within `CONTEXT_BYTES` of it."""
        if hit.part != "output" or hit.elsewhere is not None:
            return hit
        try:
            conversation = await self.conversation(hit.conversation_id)
            begin, end = hit.span
            above = await conversation.read(
                max(0, begin - CONTEXT_BYTES), to_cursor=begin, block_id=hit.block_id, max_bytes=2 * CONTEXT_BYTES
            )
            below = await conversation.read(
                begin, to_cursor=min(end + CONTEXT_BYTES, conversation.cursor), block_id=hit.block_id,
                max_bytes=2 * CONTEXT_BYTES,
            )  # fmt: skip
        except (NotFound, BadCursor):
            return hit  # deleted, or cut, since
        return replace(hit, context=lines_around(above.data, "", below.data, count))

    async def archive(
        self, conversation_id: str | None = None, *, keep_days: int = 0, dry_run: bool = False
    ) -> ArchiveResult:
        """Ship the stream of a conversation, or of all that have ended, to the object store, and remove it here.

        BLOCKPTY_ARCHIVE_URL names the store. A stream is fetched when it is read. `keep_days`: of all, those that
        were used in so many days stay. Cancelling waits for the one that is on its way; neither that nor a crash
        loses anything. Raises ArchiveUnreachable, BadRequest; Busy and NotFound for one that is named.
        """
        from blockpty.runtime import archiving

        with self.gate.allowed("archive", conversation_id):
            return await archiving.archive(self, conversation_id, keep_days, dry_run=dry_run)

    async def overview(
        self,
        *,
        conversations: int = 20,
        blocks: int = 50,
        conversation_id: str | None = None,
        failed: bool | None = None,
        before: int | None = None,
        timeout_ms: int = 2000,
        timeout: float | None = None,
    ) -> OverviewResult:
        """Return what was done here: the conversations and blocks that came last, and counts by exit status.

        Of this home, or of all hosts that share its catalogue.
        `conversations`, `blocks`: at most so many, 0 to 1000. `conversation_id`: of this one only. `failed`: only
        blocks that failed, or only others. `before`: only blocks that began before this time, in ms since 1970; pages
        go on with it. It does not go through all blocks, however many there are. `timeout_ms`, 0 to
        3,600,000, or in its place `timeout` in seconds: how long to wait for an index that is still being made;
        `partial` says that it was not there in time.
        """
        timeout_ms = limits.milliseconds(timeout, timeout_ms)
        limits.check("timeout_ms", timeout_ms)
        await _import_search()
        from blockpty.search.overview import Asked

        seen, partial = await self.home_search.overview(
            Asked(conversations, blocks, conversation_id, failed, before), timeout_ms / 1000
        )
        live = await self.live()
        return OverviewResult(
            [
                Activity(name, name in live and name not in seen.hosts, count, bad, ts, last, seen.hosts.get(name))
                for name, count, bad, ts, last in seen.conversations
            ],
            [FoundBlock(name, block, seen.hosts.get(name)) for name, block in seen.blocks],
            {"unknown" if status is None else str(status): count for status, count in seen.statuses.items()},
            seen.total_conversations,
            seen.total_blocks,
            partial,
        )


async def _import_search() -> None:
    if _SEARCH not in sys.modules:
        await aside(lambda pace: import_module(_SEARCH), long=False)


def _has_catalogue() -> bool:
    """Whether hosts share a catalogue: only then a name may be another host's."""
    from blockpty.search.backends import database_url

    return database_url() is not None
