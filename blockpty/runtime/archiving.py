"""Archiving: streams of ended conversations move to an object store, and are fetched when they are read.

All else stays here: `list`, `blocks`, events and the index need no stream. What is here, and where the store is, the
spool knows (`spool/archived.py`); this file chooses which conversations go, and holds them meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import TYPE_CHECKING, Final

from blockpty.errors import ArchiveUnreachable, BadRequest, Busy, NotFound, SpoolError
from blockpty.model.results import ArchiveResult
from blockpty.runtime import listing, retention
from blockpty.spool import archived, checkpoint
from blockpty.spool.layout import Layout, check_conversation_id, conversations_directory
from blockpty.spool.ownership import Ownership

if TYPE_CHECKING:
    from blockpty.runtime.home import Home

URL_VARIABLE: Final = "BLOCKPTY_ARCHIVE_URL"


async def archive(
    engine: Home, conversation_id: str | None, keep_days: int, *, dry_run: bool = False
) -> ArchiveResult:
    """Ship one conversation, or all that have ended and were not used for so long; those that cannot go stay.

    With `dry_run` none is shipped, and the result says which would be, and how long their streams are here.
    """
    if keep_days < 0:
        raise BadRequest(f"keep_days cannot be {keep_days}", hint="0 or more days")
    url = os.environ.get(URL_VARIABLE, "")
    if not url:
        raise ArchiveUnreachable("there is no archive", hint=f"set {URL_VARIABLE}, such as s3://bucket/prefix")
    if conversation_id is not None:
        name = check_conversation_id(conversation_id)
        return ArchiveResult([name], await _ship(engine, name, url, dry_run))
    done, freed = [], 0
    async for name in listing.names(engine.home):
        layout = Layout(conversations_directory(engine.home) / name)
        if name.startswith("."):  # on its way out
            continue
        if time.time() - retention.last_used(layout) < keep_days * retention.DAY_SECONDS:
            continue
        with contextlib.suppress(Busy, NotFound, FileNotFoundError):
            size = await _ship(engine, name, url, dry_run)
            if size:
                done.append(name)
                freed += size
    return ArchiveResult(done, freed)


async def _ship(engine: Home, name: str, url: str, dry_run: bool) -> int:
    layout = Layout(conversations_directory(engine.home) / name)
    try:
        checkpoint.load_meta(layout.meta)
    except FileNotFoundError:
        raise NotFound(f"no conversation is called {name}", hint="list names those that exist") from None
    except SpoolError:
        raise Busy(f"{name} cannot be read", hint="verify says why") from None
    if name in await engine.live():
        raise Busy(f"the shell of {name} runs", hint="close it first")
    await engine.detach(name)
    ownership = Ownership.take(layout.lock)
    if ownership is None:
        raise Busy(f"another engine owns {name}", hint="close that engine first")
    try:
        if listing.unfinished(listing.look(layout)[0]):
            raise Busy(f"the record of {name} does not have the end of its shell yet", hint="status records it")
        if dry_run:
            return await asyncio.to_thread(archived.here, layout)
        work = asyncio.ensure_future(asyncio.to_thread(archived.ship, layout, url))
        try:
            return await asyncio.shield(work)
        finally:
            await asyncio.wait([work])  # no other engine may have it before, cancelled or not
    finally:
        ownership.release()
