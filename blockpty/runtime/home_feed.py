"""Feed of a home: one line for each conversation, sent again when it changes, for clients that show all of them.

The lines are kept once for all followers. Nothing is queued for a follower: each line has the number of its last
change, and a follower asks for those with a higher number than it has seen. A conversation that only prints changes no
line; many changes in a short time become one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import asdict, replace

from blockpty.errors import BlockptyError
from blockpty.model.results import ConversationInfo
from blockpty.runtime.background_tasks import BackgroundTasks
from blockpty.runtime.file_changes import changes_of
from blockpty.runtime.subscribers import Subscribers
from blockpty.spool.layout import Layout, conversations_directory

if TYPE_CHECKING:
    from pathlib import Path

    from blockpty.host.client import HostClient
    from blockpty.model.results import ListResult
    from blockpty.runtime.conversation import Conversation
    from blockpty.runtime.follower import RecordFollower
    from blockpty.runtime.gate import Gate
    from blockpty.runtime.listing import RecordLooks
    from blockpty.runtime.redactor import Redactor

# Changes in so many seconds are sent as one.
GROUPED_SECONDS: Final = 0.1
# What other processes do to a home is looked at again after so long, should the file system not report it.
AGAIN_SECONDS: Final = 30.0
# How often the host is asked which shells run: another engine makes a conversation's directory before it starts the
# shell, and only the directory is reported.
SHELLS_SECONDS: Final = 1.0


class HomeChange(Struct, frozen=True):
    """Change of one conversation.

    Attributes:
        info: its line, None when it was deleted.
        approvals: what waits in it for a person to allow it.
        decided: what became of the last that waited.
        bell_ts: when its bell rang last, in ms since 1970; None: not since this engine follows it.
    """

    conversation_id: str
    info: ConversationInfo | None
    approvals: list[dict[str, Any]]
    decided: list[dict[str, Any]]
    bell_ts: int | None


class ListedEngine(Protocol):
    """Protocol of an engine for the feed; see `blockpty.runtime.engine.ConversationEngine`."""

    home: Path

    @property
    def gate(self) -> Gate:
        """What agents may do."""

    @property
    def looks(self) -> RecordLooks:
        """What was found in records that are not attached."""

    @property
    def listed_redactor(self) -> Redactor:
        """Redactor for the lines of conversations that are not attached."""

    async def list(self) -> ListResult:
        """Return all conversations."""

    async def live(self) -> frozenset[str]:
        """Return the names of those whose shell runs."""

    async def conversation(self, conversation_id: str) -> Conversation:
        """Attach to one."""

    def attached(self, conversation_id: str) -> Conversation | None:
        """Return one that is attached."""

    async def connected(self) -> HostClient:
        """Return the connection to the host."""


class HomeFeed:
    """The lines of a home, kept while anyone follows them."""

    def __init__(self, engine: ListedEngine) -> None:
        self._engine = engine
        self._tasks = BackgroundTasks()
        self._followers = 0
        self._lines: _HomeLines | None = None

    def touch(self, conversation_id: str) -> None:
        """Look at a conversation again: it was attached, suspended or deleted."""
        if self._lines is not None:
            self._lines.touch({conversation_id})

    def touch_all(self) -> None:
        """Look at all conversations again: something changed that concerns each of them."""
        if self._lines is not None:
            self._lines.touch(set(self._lines.lines))

    async def changes(self, allows: Callable[[str], bool] = lambda name: True) -> AsyncIterator[list[HomeChange]]:
        """Yield the whole list, and then what changes, the oldest change first; `allows` says what may be seen.

        Raises SpawnFailed, or another error, when no list can be had. Cancelling is safe.
        """
        if self._lines is None:
            self._lines = _HomeLines(self._engine)
            self._lines.reading = self._tasks.start(self._lines.read())
        lines = self._lines
        self._followers += 1
        try:
            await lines.listed.wait()
            if lines.problem is not None:
                raise lines.problem
            seen, first = 0, True
            while True:
                changed = lines.subscribers.watch()
                try:
                    news = sorted((one for one in lines.lines.values() if one[0] > seen), key=lambda one: one[0])
                    seen = lines.number
                    found = [one for _, one in news if allows(one.conversation_id) and (one.info or not first)]
                    if found or first:
                        yield found
                    first = False
                    # What came meanwhile is there already.
                    if seen == lines.number:
                        await changed
                finally:
                    changed.cancel()
        finally:
            self._followers -= 1
            if not self._followers and lines.reading is not None:
                lines.reading.cancel()
                self._lines = None

    async def close(self) -> None:
        """Stop reading."""
        await self._tasks.close()


class _HomeLines:
    """The lines as they are kept from the first follower to the last."""

    def __init__(self, engine: ListedEngine) -> None:
        self.lines: dict[str, tuple[int, HomeChange]] = {}
        self.number = 0
        self.listed = asyncio.Event()
        # Why there is no list.
        self.problem: BlockptyError | OSError | None = None
        self.subscribers = Subscribers()
        self.reading: asyncio.Task[None] | None = None
        self._engine = engine
        self._touched: set[str] = set()
        self._wake = asyncio.Event()
        self._watches: dict[str, tuple[RecordFollower, asyncio.Future[None]]] = {}
        # The conversations whose shell ran when the host was asked last.
        self._live: frozenset[str] = frozenset()

    def touch(self, names: set[str]) -> None:
        """Look at these again, together with what else is touched within a moment."""
        self._touched |= names
        self._wake.set()

    async def read(self) -> None:
        """Keep the lines up to date until this is cancelled."""
        directory = conversations_directory(self._engine.home)
        try:
            with changes_of(asyncio.get_running_loop()).follow(directory) as followed:
                while True:
                    # Before the list is taken: what is made meanwhile is found by the next one.
                    listed = followed.watch()
                    try:
                        try:
                            await self._list()
                        except (BlockptyError, OSError) as problem:
                            # A list that there was is kept, and taken again later.
                            if not self.listed.is_set():
                                self.problem = problem
                                return
                        finally:
                            self.listed.set()
                        await self._until(listed)
                    finally:
                        listed.cancel()
        finally:
            for _, watch in self._watches.values():
                watch.cancel()
            self._watches.clear()

    async def _until(self, listed: asyncio.Future[None]) -> None:
        """Look at what changes, until the list has to be taken again."""
        clock = asyncio.get_running_loop().time
        listed_at = asked_at = clock()
        listed.add_done_callback(lambda done: self._wake.set())
        while not listed.done() and clock() < listed_at + AGAIN_SECONDS:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(asked_at + SHELLS_SECONDS - clock()):
                    await self._wake.wait()
                await asyncio.sleep(GROUPED_SECONDS)
            self._wake.clear()
            touched, self._touched = self._touched, set()
            try:
                if clock() >= asked_at + SHELLS_SECONDS:
                    touched |= await self._find_live()
                    asked_at = clock()
                for name in touched:
                    self._watch(name)
                    self._enter(name, await self._look(name))
            except (BlockptyError, OSError):
                return  # the whole list is taken again
            finally:
                self.subscribers.notify()

    async def _find_live(self) -> set[str]:
        """Return the conversations whose shell has started or ended since the host was asked last.

        A conversation whose shell has started is opened, so that its changes are followed. One whose line says that
        its shell runs, and of which the host knows none, counts as ended each time, until its line says so.
        """
        before, self._live = self._live, await self._engine.live()
        for name in self._live - before:
            if self._engine.attached(name) is None:
                with contextlib.suppress(BlockptyError, OSError):
                    await self._engine.conversation(name)
        shown = {name for name, (_, change) in self.lines.items() if change.info is not None and change.info.live}
        ended = (before | shown) - self._live
        for name in ended:
            # Its end is in the record, and an engine that joined late may not be notified of it.
            if (known := self._engine.attached(name)) is not None and not known.live.closed:
                known.live.pump()
        return set(self._live - before) | ended

    async def _list(self) -> None:
        """Take the whole list."""
        engine = self._engine
        self._live = frozenset()
        for name in await self._find_live():
            self._watch(name)
        infos = {info.conversation_id: info for info in (await engine.list()).conversations}
        for name in [*(name for name in self.lines if name not in infos), *infos]:
            self._enter(name, infos.get(name))
        self.subscribers.notify()

    async def _look(self, name: str) -> ConversationInfo | None:
        """Return the line of one conversation; None when it is no more."""
        engine = self._engine
        known = engine.attached(name)
        pid: int | None = None
        if known is not None and not known.over and known.live.state.pid.isdigit():
            pid = int(known.live.state.pid)
        else:
            shells = await (await engine.connected()).list()
            pid = next((shell.pid for shell in shells if shell.conversation == name), None)
        layout = Layout(conversations_directory(engine.home) / name)
        return await engine.looks.information(layout, pid, engine.listed_redactor, known)

    def _watch(self, name: str) -> None:
        """Have a conversation looked at again when its record grows."""
        known = self._engine.attached(name)
        watched = self._watches.get(name)
        if watched is not None:
            live, watch = watched
            if known is not None and known.live is live and not watch.done():
                return
            watch.cancel()
            del self._watches[name]
        if known is not None and not known.live.closed:
            watch = known.live.subscribers.watch()
            self._watches[name] = (known.live, watch)
            watch.add_done_callback(lambda done: None if done.cancelled() else self.touch({name}))

    def _enter(self, name: str, info: ConversationInfo | None) -> None:
        """Keep what is known of a conversation now; it counts as changed unless it only printed."""
        known = self._engine.attached(name)
        change = HomeChange(name, info, *self._approvals(name, known), known.live.bells.last if known else None)
        old = self.lines.get(name)
        if old is None and info is None:
            return
        if old is None or _without_progress(old[1]) != _without_progress(change):
            self.number += 1
            self.lines[name] = (self.number, change)

    def _approvals(self, name: str, known: Conversation | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return what waits, and what became of what waited."""
        if known is None:
            return [], []
        book, redacted = self._engine.gate.book, known.live.redactor.value
        return [redacted(asdict(approval)) for approval, _ in book.waiting(name)], [
            redacted(one) for one in book.decided(name)
        ]


def _without_progress(change: HomeChange) -> HomeChange:
    info = change.info
    return change if info is None else replace(change, info=replace(info, cursor=0, used_ts=0))
