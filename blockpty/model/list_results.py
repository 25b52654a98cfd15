"""Result of `list`: the conversations of a home."""

from __future__ import annotations

from msgspec import field

from blockpty.model.block import Block
from blockpty.model.result import REVIVED, Result


class BlockSummary(Result, frozen=True):
    """Summary of a block in a list; the fields are those of the block's record."""

    block_id: str
    cmd: str
    kind: str
    state: str
    author: str
    ts_begin: int
    ts_end: int | None
    exit_status: int | None
    signal: str | None

    @classmethod
    def of(cls, block: Block) -> BlockSummary:
        """Summarise a block."""
        return cls(**{name: getattr(block, name) for name in cls.__struct_fields__})


class ConversationInfo(Result, frozen=True):
    """One line of `list`.

    Attributes:
        lost: as in `status`.
        used_ts: when anything was last recorded, in ms since 1970.
        running: the block that runs; None when none does.
        last: the last finished block; None when none has finished.
        needs: what waits for a person: `approval`, `user_input`, `password` (a program asks for one), `line` (a program
            reads a line), `storage` (the disk is full).
        tty: as in `status`, as far as the record says; `status` asks the terminal.
        cols, rows, control, control_by, halted, integrity, source: as in `status`.
    """

    conversation_id: str
    live: bool
    mode: str
    shell: str
    cwd: str | None
    pid: int | None
    cursor: int
    blocks: int
    created_ts: int
    lost: str | None = None
    used_ts: int = 0
    running: BlockSummary | None = None
    last: BlockSummary | None = None
    needs: list[str] = field(default_factory=list)
    tty: str | None = None
    cols: int = 80
    rows: int = 24
    control: str = "agent"
    control_by: str | None = None
    halted: str | None = None
    integrity: str = "ok"
    source: str = "shell"


class ListResult(Result, frozen=True):
    """The conversations of a home, live ones first, of each kind the newest first."""

    conversations: list[ConversationInfo]


REVIVED["BlockSummary | None"] = lambda value: None if value is None else BlockSummary.from_dict(value)
REVIVED["list[ConversationInfo]"] = lambda value: [ConversationInfo.from_dict(one) for one in value]
