"""Results that show what is in the transcript."""

from __future__ import annotations

from blockpty.model.block import Block, ListedBlock
from blockpty.model.result import REVIVED, Result


class ReadResult(Result, frozen=True):
    """Part of the transcript.

    Attributes:
        data: the view as text, invalid UTF-8 replaced; data_b64: exact bytes, for view `raw` only.
        cursor: where the next piece begins; eof: nothing follows and nothing can.
        truncated_before: first cursor that can still be read, when older bytes were dropped.
        next_line: with `from_line`, the number of the next line, to be read from the same cursor; None at the end.
    """

    data: str
    cursor: int
    eof: bool
    data_b64: str | None = None
    truncated_before: int | None = None
    next_line: int | None = None


class BlocksResult(Result, frozen=True):
    """Blocks in the order that was asked for; `next_page` continues, None at the end.

    Attributes:
        next_seq: number that the next event had when these were read, to follow `events` from here.
    """

    blocks: list[ListedBlock]
    next_page: int | None
    cursor: int
    next_seq: int = 0


class BlockResult(Result, frozen=True):
    """One block."""

    block: Block
    cursor: int


class DiffResult(Result, frozen=True):
    """Differences between the output of a block and that of another, by default the previous run of its command.

    Attributes:
        block, against: the two records.
        same: the whole outputs are equal, as text.
        diff: a unified diff from `against` to `block`; empty when nothing differs in what was compared.
        part: the outputs are too long, and only their beginnings were compared.
        truncated: the diff is longer than `max_bytes`, and ends early.
    """

    block: Block
    against: Block
    same: bool
    diff: str
    part: bool
    truncated: bool
    cursor: int


REVIVED["list[ListedBlock]"] = lambda value: [ListedBlock.from_dict(one) for one in value]
