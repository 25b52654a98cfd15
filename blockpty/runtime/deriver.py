"""Derivation of a live record: events, blocks and outputs are written before anyone is notified of them.

What cannot be written for lack of space is kept and tried again; meanwhile `problem` says why. Nothing is written
where another record has taken the place of this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from blockpty.errors import SpoolCorrupt, SpoolError, StorageFull
from blockpty.files.opening import Rarely
from blockpty.model.block import Block
from blockpty.model.events import Event
from blockpty.runtime.checkpoint_writer import CheckpointWriter
from blockpty.spool.identity import RecordIdentity
from blockpty.spool.journal import Journal
from blockpty.spool.layout import Layout
from blockpty.spool.masking import Mask
from blockpty.spool.sink import FileSink
from blockpty.spool.stream import StreamReader

# Finished blocks that are known without looking into the file.
RECENT_BLOCKS: Final = 64
# Derived files are synced before a checkpoint vouches for them, and when that many bytes have come.
SYNC_BYTES: Final = 8 * 1024 * 1024

_BORDERS: Final = frozenset({"agent_block_begin", "agent_block_end"})


class Deriver:
    """Writes the derived files of one record once `start` was called; before that another engine does.

    Args:
        durability: `process`, `block` or `always`: what is synced before anyone is notified.
        sync_record: syncs stream and timeline.
        vouch: returns the whole checkpoint; None while there is nothing to vouch for.

    Attributes:
        problem: why nothing can be written, for now or because the record was replaced; None when all is well.
        recent: the last finished blocks, by id.
    """

    def __init__(
        self, conversation_id: str, layout: Layout, stream: StreamReader, durability: str,
        sync_record: Callable[[], None], vouch: Callable[[bool], dict[str, Any] | None],
    ) -> None:  # fmt: skip
        self.problem: SpoolError | None = None
        self.recent: dict[str, Block] = {}
        self._conversation_id = conversation_id
        self._layout = layout
        self._stream = stream
        self._durability = durability
        self._sync_record = sync_record
        self._checkpoints = CheckpointWriter(asyncio.get_running_loop(), layout, durability != "process", vouch)
        self._journal: Journal | None = None
        self._sink: FileSink | None = None
        self._settled = False
        self._unsynced = False
        self._unremembered: list[Event] = []
        self._identity = RecordIdentity(layout)
        self._identity_check = Rarely()

    @property
    def syncs(self) -> bool:
        """Whether anything is synced at all."""
        return self._durability != "process"

    @property
    def active(self) -> bool:
        """Whether this engine writes the derived files."""
        return self._journal is not None

    def start(self, mask: Mask, snapshot: Mapping[str, Any] | None, marks: Any, first_block: int | None) -> Mask:
        """Begin to write behind what a checkpoint or the log's start vouches for; return the mask to use from now on.

        `first_block`: the first that may be kept among the outputs after a start that was not in order.
        """
        self._sink = FileSink(
            self._layout, syncs=self.syncs, marks=marks, first_block=first_block, check=self._refuse_replaced
        )
        self._settled = False
        self._journal = Journal(self._conversation_id, self._stream, self._sink, mask)
        if snapshot is not None:
            self._journal.restore(snapshot)
        return self._journal.mask

    def reopen(self) -> None:
        """Forget what was before `close`: another record may lie here now, or another engine derive this one."""
        self.problem = None
        self._journal = self._sink = None
        self._unremembered.clear()
        self._identity = RecordIdentity(self._layout)
        self.recent.clear()

    # Whether the record is still this one

    def replaced(self) -> bool:
        """Return whether another record lies where this one was: then nothing of this one may be written there."""
        if self._sink is not None and not isinstance(self.problem, SpoolCorrupt):
            try:
                self._identity.check(self._sink.events.descriptor, made_again=self._sink.made_again)
                self._sink.made_again = False
            except SpoolCorrupt as problem:
                self.problem = problem
        return isinstance(self.problem, SpoolCorrupt)

    def _refuse_replaced(self) -> None:
        if self.replaced():
            assert self.problem is not None
            raise self.problem

    def may_write(self) -> bool:
        """Return whether the record is still this one, looking at the file system once a second."""
        if isinstance(self.problem, SpoolCorrupt):
            return False
        return not (self._identity_check.due() and self._is_gone())

    def _is_gone(self) -> bool:
        """Return whether the record was replaced; of what was only removed, the next write restores what is open."""
        if self.replaced():
            return True
        if self._sink is not None:
            self._sink.removed = True
        return False

    # Writing

    def write(self, events: list[Event]) -> bool:
        """Write what follows from events; False while that is not possible, and no subscriber is notified yet."""
        journal = self._journal
        if journal is None or not (events or journal.pending or self._unsynced or self._checkpoints.failed):
            return True
        try:
            try:
                journal.append(events)
            except FileNotFoundError:
                # The directory was removed, or moved, since it was last checked.
                if self._is_gone():
                    return False
                journal.append(())
            self._sync(events)
        except StorageFull as problem:
            self.problem = problem
            self._unremembered += events
            return False
        except SpoolCorrupt as problem:
            if problem is not self.problem:
                raise
            # Another record has taken this one's place.
            return False
        self.problem = None
        self._remember([*self._unremembered, *events])
        self._unremembered.clear()
        return True

    def settle(self) -> bool:
        """Cut what stands behind everything that was derived; False while there is no space."""
        if self._sink is None or self._settled:
            return True
        try:
            self._sink.settle()
        except StorageFull as problem:
            self.problem = problem
            return False
        except SpoolCorrupt as problem:
            if problem is not self.problem:
                raise
            return False
        self._settled, self.problem = True, None
        return True

    def _sync(self, events: Iterable[Event]) -> None:
        """Sync what must be durable before anyone is notified of these events."""
        assert self._sink is not None
        before_notifying = self._durability == "always" or (
            self._durability == "block" and any(event.type in _BORDERS for event in events)
        )
        if not (before_notifying or self._unsynced or self._checkpoints.failed):
            if self.syncs and (self._sink.unsynced >= SYNC_BYTES or self._sink.crowded):
                self._checkpoints.sync(self._sink)
            return
        self._unsynced, self._checkpoints.failed = True, False
        try:
            if self._durability in ("block", "always"):
                self._sync_record()
            self._sink.sync()
        except OSError as problem:
            raise StorageFull(
                f"{self._conversation_id} cannot be synced to the disk: {problem.strerror}",
                hint="look at the disk; waiting work resumes automatically",
            ) from None
        self._unsynced = False

    async def uncrowd(self) -> None:
        """Wait until few finished files are left to sync: an old record yields them faster than a thread syncs them."""
        while self.syncs and self._sink is not None and self._sink.crowded:
            await self._checkpoints.synced(self._sink)

    def _remember(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.type == "agent_block_end":
                self.recent[event.fields["block_id"]] = Block.from_dict(event.fields["block"])
                if len(self.recent) > RECENT_BLOCKS:
                    del self.recent[next(iter(self.recent))]

    # Checkpoints

    def parts(self) -> dict[str, Any] | None:
        """Return this object's part of a checkpoint; None while there is nothing to vouch for."""
        if self._journal is None or self._sink is None or self._journal.pending or not self._settled or self.replaced():
            return None
        return {"journal": self._journal.snapshot(), "files": self._sink.marks()}

    def derived(self) -> dict[str, Any] | None:
        """Return how far the derivation has come, for a log's start; None where it waits or another engine does it."""
        if self._journal is None or self._sink is None or self._journal.pending:
            return None
        marks = self._sink.marks()
        files = {name: [marks[name][0], marks[name][2]] for name in ("events", "blocks")}
        return {"journal": self._journal.snapshot(), "files": files}

    def rebase(self, first_block: int) -> bool:
        """Vouch for nothing before a block any more, since it will be removed; False where another engine derives."""
        if self._sink is None:
            return False
        self.recent = {name: block for name, block in self.recent.items() if block.seq >= first_block}
        self._sink.rebase(first_block)
        return True

    def sizes(self) -> tuple[int, int] | None:
        """Return the sizes of events.jsonl and blocks.jsonl; None when another engine writes them."""
        return self._sink.sizes() if self._sink is not None else None

    def save_soon(self) -> None:
        """Have a checkpoint written within a second or so."""
        if self._sink is not None:
            self._checkpoints.soon(self._sink)

    def save(self, *, last: bool = False) -> None:
        """Write a checkpoint, so that the next engine reads little again; `last`: nothing comes after it."""
        if self._sink is not None:
            self._checkpoints.now(self._sink, last=last)

    async def save_ahead(self) -> None:
        """Do beside the loop most of what `save` with `last` would do on it."""
        if self._sink is not None:
            await self._checkpoints.ahead(self._sink)

    def close(self) -> None:
        """Close the files."""
        if self._sink is not None:
            self._sink.close()
