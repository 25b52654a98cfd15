"""Results over many conversations: an overview of them, and the matches of a search."""

from __future__ import annotations

from blockpty.model.block import Block
from blockpty.model.result import REVIVED, Result


class Activity(Result, frozen=True):
    """Activity of a conversation.

    Attributes:
        live: its shell runs.
        blocks, failed: how many blocks have ended, and how many of them with an exit status other than 0.
        last_ts: when the last one of them began, in ms.
        last_block: the record of that one.
        elsewhere: address of the host that has the conversation; None when it is in this home. What is live there is
            not known here.
    """

    conversation_id: str
    live: bool
    blocks: int
    failed: int
    last_ts: int
    last_block: Block
    elsewhere: str | None = None


class FoundBlock(Result, frozen=True):
    """A block, the conversation it belongs to, and the address of the host that has it when that is another one."""

    conversation_id: str
    block: Block
    elsewhere: str | None = None


class OverviewResult(Result, frozen=True):
    """Activity of a home, or of all that share its catalogue, as far as it is indexed: blocks count within a second.

    Attributes:
        conversations: those that did something last, the newest first.
        blocks: the newest blocks, the newest first.
        statuses: how many blocks ended with each exit status; `unknown` for those of which it is not known.
        total_conversations, total_blocks: how many there are with at least one block, and of them.
        partial: not everything is in it: the index is still being made, or parts of a shared one did not answer.
    """

    conversations: list[Activity]
    blocks: list[FoundBlock]
    statuses: dict[str, int]
    total_conversations: int
    total_blocks: int
    partial: bool = False


class SearchHit(Result, frozen=True):
    """One match of a search.

    Attributes:
        part: `output`, or `command` when the block's command matches.
        span: where it is in the stream; of a command in its UTF-8 bytes.
        cursor: where to read on in the stream: where the match, or the block of a command, begins.
        snippet: the line around it, or the part of a long one; snippet_span says where the match is in it, in
            characters.
        cmd, cwd, kind, author, state, exit_status, ts_begin, duration_ms: of the block, as in its record.
        elsewhere: address of the host that has the conversation; None when it is in this home.
        context: the line with lines around it, where `context` asked for them; None for a command, and elsewhere.
        line: the number of the line in the block's output, from 1; None for a command, elsewhere, and far into long
            outputs.
    """

    conversation_id: str
    block_id: str
    seq: int
    part: str
    span: tuple[int, int]
    cursor: int
    snippet: str
    snippet_span: tuple[int, int]
    cmd: str
    cwd: str | None
    kind: str
    author: str
    state: str
    exit_status: int | None
    ts_begin: int
    duration_ms: int | None
    elsewhere: str | None = None
    context: str | None = None
    line: int | None = None


class SearchResult(Result, frozen=True):
    """Matches, newest first.

    Attributes:
        next: `page` of a search that goes on behind these; None when there is nothing more.
        partial: some of what there is was not looked at: time ran out, or parts of the index did not answer.
        missing: names of these parts.
    """

    hits: list[SearchHit]
    next: str | None
    partial: bool
    missing: list[str]


REVIVED.update(
    {
        "list[Activity]": lambda value: [Activity.from_dict(one) for one in value],
        "list[FoundBlock]": lambda value: [FoundBlock.from_dict(one) for one in value],
        "list[SearchHit]": lambda value: [SearchHit.from_dict(one) for one in value],
    }
)
