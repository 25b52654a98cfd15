"""One conversation as the terminal program follows it: what is recorded, then its socket, from where that ended.

Rules of this file: no widget. Who draws is a `Viewer`, who is notified of what has changed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, Protocol, cast

from msgspec.structs import replace

from blockpty.errors import BlockptyError
from blockpty.model.block import Block
from blockpty.model.events import Event
from blockpty.model.results import BlocksResult, StatusResult
from blockpty.surfaces.live_socket import ConnectionChange, Frame, LiveSocket, conversation_target
from blockpty.surfaces.view.blocks import ASKED, Blocks

PAGE: Final = 100
# As many at once as the server gives.
LARGE_PAGE: Final = 1000
# After these events the state is asked for: they do not say all that they change.
_ASK_AFTER: Final = frozenset({"agent_block_end", "shell_exit", "reset", "alt_screen", "shell_entered", "shell_left"})


class Viewer(Protocol):
    """Protocol of what draws a conversation."""

    def loaded(self) -> None:
        """Blocks and state are there."""

    def changed(self, block_ids: set[str]) -> None:
        """The state has changed, and these blocks have."""

    async def frame(self, frame: Frame) -> None:
        """Take what concerns the screen: bytes, sizes, a new beginning."""


class ViewedConversation:
    """A conversation that is looked at.

    Attributes:
        blocks: those that were read, and all since then; earlier: whether there are older ones.
        status: its state; None before it was read.
        mine: this program has control.
        live: there is a connection.
        message: what an agent has asked the person to do, while that is open and was asked since this is followed.
        asks: the person waits for control, and `askers` for the person's: those who ask for control that is mine.
    """

    def __init__(self, client: Any, conversation_id: str, viewer: Viewer) -> None:
        self.id = conversation_id
        self.blocks = Blocks()
        self.earlier = False
        self.status: StatusResult | None = None
        self.mine = False
        self.live = False
        self.message = ""
        self.asks = False
        self._asking: list[str] = []
        # The next event that says who has control: answers about it and events come in any order.
        self._control_seq = 0
        self._client = client
        self._viewer = viewer
        # For each filter that was chosen: blocks before those that were read, and whether there are even older ones.
        self._matching: dict[str, tuple[list[Block], bool]] = {}
        # Numbers of the blocks of which it was asked whether they used the screen.
        self._measured: set[int] = set()
        self.socket = LiveSocket(client, lambda: conversation_target(conversation_id, self.blocks.next))

    async def follow(self) -> None:
        """Read what is recorded, and follow until this is cancelled; control is then handed back.

        Raises BlockptyError when there is no such conversation.
        """
        conversation = await self._client.conversation(self.id)
        status, found = await asyncio.gather(conversation.status(), newest_blocks(conversation))
        self.status = status
        self.blocks.next = found.next_seq
        self.earlier = found.next_page is not None
        self.blocks.put(found.blocks)
        self._viewer.loaded()
        try:
            await self.socket.open()
            self.live = True
            self._viewer.changed(set())
            frames = cast("AsyncGenerator[Frame, None]", self.socket.frames())
            async with contextlib.aclosing(frames):
                async for frame in frames:
                    await self._take(frame)
            self.live = self.mine = False
            self._viewer.changed(set())
        finally:
            if self.mine:
                await self.socket.send({"type": "release_control"})
            await self.socket.close()

    async def read_earlier(self, count: int = PAGE) -> None:
        """Read a page of older blocks."""
        if self.earlier and self.blocks.list:
            conversation = await self._client.conversation(self.id)
            found = await newest_blocks(conversation, self.blocks.list[0].seq, count)
            self.earlier = found.next_page is not None
            self.blocks.put(found.blocks)
            self._viewer.changed({block.block_id for block in found.blocks})

    async def read_back_to(self, seq: int) -> None:
        """Read older blocks until the one with this number is there, if there is one."""
        while self.earlier and self.blocks.list and self.blocks.list[0].seq > seq:
            await self.read_earlier(LARGE_PAGE)

    async def read_matching(self, filter_: str) -> None:
        """Read the newest of the older blocks that a filter lets through."""
        asked = ASKED.get(filter_)
        if asked is None or not self.earlier or filter_ in self._matching:
            return
        conversation = await self._client.conversation(self.id)
        before = self.blocks.list[0].seq
        found = await conversation.blocks(order="newest", before_seq=before, page_size=LARGE_PAGE, **asked)
        self._matching[filter_] = (found.blocks[::-1], found.next_page is not None)
        self._viewer.changed(set())

    @property
    def askers(self) -> list[str]:
        """Who asks for control that is mine; one who has just got it may still be named."""
        holder = self.status.control_by if self.status is not None else None
        return [name for name in self._asking if name != holder] if self.mine else []

    def listed(self, filter_: str) -> list[Block]:
        """Return what is known of the blocks that a filter lets through, among others."""
        older, _ = self._matching.get(filter_, ([], False))
        first = self.blocks.list[0].seq if self.blocks.list else 0
        return [*(block for block in older if block.seq < first), *self.blocks.list]

    def has_more(self, filter_: str) -> bool:
        """Whether there may be blocks that a filter lets through and `listed` does not have."""
        return self.earlier and self._matching.get(filter_, ([], True))[1]

    async def measure(self) -> None:
        """Ask which of the blocks that have ended used the screen, where that is not known yet."""
        unknown = [one.seq for one in self.blocks.list if one.state != "running" and one.seq not in self._measured]
        if unknown:
            unknown = unknown[-LARGE_PAGE:]
            self._measured.update(unknown)
            try:
                conversation = await self._client.conversation(self.id)
                found = await conversation.blocks(
                    order="newest", after_seq=unknown[0] - 1, before_seq=unknown[-1] + 1, measure=True,
                    page_size=LARGE_PAGE,
                )  # fmt: skip
            except BaseException:
                # The next change of the blocks asks again.
                self._measured.difference_update(unknown)
                raise
            self.blocks.put(found.blocks)
            self._viewer.changed({block.block_id for block in found.blocks})

    async def _take(self, frame: Frame) -> None:
        if isinstance(frame, ConnectionChange):
            self.live = frame.live
            # What the person had, they have to take again: the server keeps it for a while and then gives it back.
            self.mine = self.asks = False
            await self._viewer.frame(frame)
            self._viewer.changed(set())
        elif isinstance(frame, bytes) or frame.get("type") in ("screen", "resize", "restart"):
            await self._viewer.frame(frame)
        elif frame["type"] == "hello":
            self.status = StatusResult.from_dict(frame["status"])
            self._viewer.changed(set())
        elif frame["type"] == "control":
            self.asks = False
            if frame["seq"] >= self._control_seq:
                self._control_seq = frame["seq"]
                self.mine = frame["control"] != "agent"
                self._set(control=frame["control"], control_by=frame.get("who"), halted=frame.get("halted"))
        elif frame["type"] == "event":
            await self._event(Event.from_dict(frame["event"]))
        elif frame["type"] == "watchers":
            self._asking = frame["asking"]
            self._viewer.changed(set())
        else:
            if frame["type"] == "asking":
                self.asks = frame["state"] == "waits"
            await self._viewer.frame(frame)

    async def _event(self, event: Event) -> None:
        if event.seq < self.blocks.next:
            return
        block_id = self.blocks.take(event)
        values: Mapping[str, Any] = event.fields
        if event.type == "control" and event.seq >= self._control_seq:
            self._control_seq = event.seq + 1
            self.mine = self.mine and values.get("state") != "agent"
            self._set(control=values.get("state"), control_by=values.get("who"), halted=values.get("halted"))
        elif event.type == "resize":
            self._set(cols=int(values["cols"]), rows=int(values["rows"]))
        elif event.type == "user_input_requested":
            self.message = str(values.get("message") or "")
        elif event.type == "user_input_done":
            self.message = ""
        elif event.type == "prompt":
            self._set(mode="idle", cwd=values.get("cwd"))
        elif event.type == "agent_block_begin":
            self._set(mode="block_running")
        elif event.type in _ASK_AFTER:
            with contextlib.suppress(BlockptyError):
                self.status = await (await self._client.conversation(self.id)).status()
        self._viewer.changed({block_id} if block_id is not None else set())

    def _set(self, **values: Any) -> None:
        if self.status is not None:
            self.status = replace(self.status, **values)
            self._viewer.changed(set())


async def newest_blocks(conversation: Any, before_seq: int | None = None, count: int = PAGE) -> BlocksResult:
    """Return a page of the newest blocks, also running ones."""
    found: BlocksResult = await conversation.blocks(
        order="newest", before_seq=before_seq, running=True, page_size=count
    )
    return found
