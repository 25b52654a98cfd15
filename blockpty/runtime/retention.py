"""Retention: deleting conversations, and which of them are deleted to keep a budget in days or bytes.

Only conversations whose shell has ended, and that no other engine owns, are ever deleted; the oldest go
first, by when something was last recorded in them. A conversation goes whole: it is renamed to a name that is no
conversation's, then removed, so that half of one is never seen; what a killed engine left of that is removed by the
next.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blockpty.errors import BadRequest, BlockptyError, Busy, NotFound
from blockpty.model.results import DeleteResult, PruneResult
from blockpty.runtime.truncation import SMALLEST_MB
from blockpty.spool import archived
from blockpty.spool.layout import Layout, check_conversation_id, conversations_directory
from blockpty.spool.ownership import Ownership
from blockpty.spool.storage import full_is_an_error

if TYPE_CHECKING:
    from blockpty.runtime.home import Home

MIB: Final = 1024 * 1024
DAY_SECONDS: Final = 86_400.0
# How often an engine with a budget looks.
PAUSE_SECONDS: Final = 600.0
_GOING: Final = ".deleted-"


def check_budget(keep_days: int | None, keep_total_mb: int | None, keep_conversation_mb: int | None = None) -> None:
    """Raise BadRequest for what is no budget."""
    if keep_conversation_mb is not None and keep_conversation_mb < SMALLEST_MB:
        raise BadRequest(f"keep_conversation_mb cannot be {keep_conversation_mb}", hint=f"{SMALLEST_MB} or more MiB")
    if keep_days is not None and not keep_days >= 0:
        raise BadRequest(f"keep_days cannot be {keep_days}", hint="0 or more days")
    if keep_total_mb is not None and keep_total_mb < 0:
        raise BadRequest(f"keep_total_mb cannot be {keep_total_mb}", hint="0 or more MiB")


def disk_usage(directory: str | Path) -> int:
    """Return the bytes that the files below a directory take."""
    taken = 0
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                is_directory = entry.is_dir(follow_symlinks=False)
                taken += disk_usage(entry.path) if is_directory else entry.stat(follow_symlinks=False).st_blocks * 512
    return taken


def last_used(layout: Layout) -> float:
    """Return when something was last recorded, in seconds; of a conversation without a record, when it was made."""
    with contextlib.suppress(OSError):
        return layout.timeline.stat().st_mtime
    with contextlib.suppress(OSError):
        return layout.directory.stat().st_mtime
    return 0.0


def erase(layout: Layout) -> int:
    """Remove a conversation's files; return how many bytes they took. Raises ArchiveUnreachable, NotFound,
    StorageFull."""
    archived.forget(layout)
    freed = disk_usage(layout.directory)
    going = layout.directory.with_name(f"{_GOING}{secrets.token_hex(8)}")
    try:
        with full_is_an_error(layout.directory):
            layout.directory.rename(going)
    except FileNotFoundError:
        raise NotFound(f"no conversation is called {layout.directory.name}") from None
    shutil.rmtree(going, ignore_errors=True)
    return freed


def sweep(home: Path) -> None:
    """Remove what is left of conversations whose deletion was interrupted."""
    with contextlib.suppress(OSError), os.scandir(conversations_directory(home)) as entries:
        for entry in entries:
            if entry.name.startswith(_GOING) and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)


async def delete(engine: Home, conversation_id: str, *, dry_run: bool = False) -> DeleteResult:
    """Delete one conversation; raises Busy while its shell runs or another engine has it, NotFound."""
    name = check_conversation_id(conversation_id)
    if name in await engine.live():
        raise Busy(f"the shell of {name} runs", hint="close it first")
    cursor = await engine.detach(name)
    layout = Layout(conversations_directory(engine.home) / name)
    if not layout.directory.is_dir():
        raise NotFound(f"no conversation is called {name}", hint="list names those that exist")
    ownership = Ownership.take(layout.lock)
    if ownership is None:
        raise Busy(f"another engine owns {name}", hint="close that engine first")
    try:
        if dry_run:
            return DeleteResult(cursor, await asyncio.to_thread(disk_usage, layout.directory))
        return DeleteResult(cursor, await asyncio.to_thread(erase, layout))
    finally:
        ownership.release()


async def prune(
    engine: Home, keep_days: int | None, keep_total_mb: int | None, *, dry_run: bool = False
) -> PruneResult:
    """Delete ended conversations: those last used before `keep_days`, then the oldest until the rest fits.

    With `dry_run` none is deleted, and the result says which would be.
    """
    check_budget(keep_days, keep_total_mb)
    await asyncio.to_thread(sweep, engine.home)
    live = await engine.live()
    now = time.time()
    found = await asyncio.to_thread(_measured, engine.home)
    total = sum(size for _, _, size in found)
    deleted, freed = [], 0
    for used, name, size in found:
        old = keep_days is not None and now - used > keep_days * DAY_SECONDS
        over = keep_total_mb is not None and total > keep_total_mb * MIB
        if name in live or not (old or over):
            continue
        with contextlib.suppress(Busy, NotFound):
            freed += (await delete(engine, name, dry_run=dry_run)).freed_bytes
            deleted.append(name)
            total -= size
    return PruneResult(deleted, freed, total)


def _measured(home: Path) -> list[tuple[float, str, int]]:
    """(when last used, name, bytes) of every conversation, the oldest first."""
    directory = conversations_directory(home)
    names = [name for name in os.listdir(directory) if not name.startswith(".")] if directory.is_dir() else []
    return sorted((last_used(Layout(directory / name)), name, disk_usage(directory / name)) for name in names)


async def keep_to(engine: Home, keep_days: int | None, keep_total_mb: int | None) -> None:
    """Prune now and then, until cancelled."""
    while True:
        with contextlib.suppress(BlockptyError, OSError):
            await prune(engine, keep_days, keep_total_mb)
        await asyncio.sleep(PAUSE_SECONDS)
