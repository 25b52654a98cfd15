"""The blocks of a conversation, reduced from its events; and what a filter lets through. Pure.

Events count by their `seq`: one that came twice changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from blockpty.model.block import Block, ListedBlock
from blockpty.model.events import Event
from blockpty.surfaces.view.words import sign

SLOW_MS: Final = 10_000
FILTERS: Final[dict[str, Callable[[Block], bool]]] = {
    "all": lambda block: True,
    "failed": lambda block: sign(block) == "fail",
    "slow": lambda block: (block.duration_ms or 0) >= SLOW_MS,
    "agent": lambda block: block.author == "agent",
    "you": lambda block: block.author == "user",
    "screen": lambda block: block.kind == "session" or (isinstance(block, ListedBlock) and block.screen is True),
}

# The same, as the server is asked for it; what used the screen it does not know before it has read the outputs.
ASKED: Final[dict[str, dict[str, Any]]] = {
    "failed": {"failed": True},
    "slow": {"min_duration_ms": SLOW_MS},
    "agent": {"author": "agent"},
    "you": {"author": "user"},
}


class Blocks(Struct):
    """Blocks in their order.

    Attributes:
        next: number of the next event that counts.
    """

    list: list[Block] = field(default_factory=list)
    next: int = 0

    def put(self, blocks: Iterable[Block]) -> None:
        """Take records, at their places."""
        for block in blocks:
            at = bisect_left(self.list, block.seq, key=lambda one: one.seq)
            if at < len(self.list) and self.list[at].seq == block.seq:
                self.list[at] = block
            else:
                self.list.insert(at, block)

    def take(self, event: Event) -> str | None:
        """Take an event; return the block that it changed."""
        if event.seq < self.next:
            return None
        self.next = event.seq + 1
        if event.type == "agent_block_begin":
            begun = _begun(event)
            known = self.of(begun.block_id)
            # Its end may have been read already.
            if known is None:
                self.put([begun])
            return begun.block_id
        if event.type == "agent_block_end" and event.fields.get("block"):
            ended = Block.from_dict(event.fields["block"])
            self.put([ended])
            return ended.block_id
        if event.type == "agent_block_delta":
            block_id, end = str(event.fields["block_id"]), int(event.fields["span"][1])
            block = self.of(block_id)
            if block is not None and block.state == "running":
                self.put([replace(block, out_bytes=max(block.out_bytes, end - block.span[0]))])
                return block_id
        return None

    def of(self, block_id: str) -> Block | None:
        """Return a block by its name."""
        return next((block for block in reversed(self.list) if block.block_id == block_id), None)


def _begun(event: Event) -> Block:
    values: Any = event.fields
    return Block(
        block_id=str(values["block_id"]), seq=int(values["block_seq"]), kind=str(values["kind"]),
        cmd=str(values.get("cmd") or ""), cwd=values.get("cwd"), cwd_b64=None,
        ts_begin=int(values.get("ts_begin") or event.ts), ts_end=None, duration_ms=None, state="running",
        exit_status=None, signal=None, span=(event.cursor, None), out_path=None, out_bytes=0, parts=1,
        author=str(values["author"]),
    )  # fmt: skip
