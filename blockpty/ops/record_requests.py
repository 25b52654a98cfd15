"""The parameters of operations on what is recorded; the rules are those of `requests`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from blockpty.ops.requests import MAX_BYTES, ConversationId, ConversationRequest, Request

Time = Annotated[int | None, Field(ge=0, le=2**53)]


class SearchRequest(Request):
    """Search everything that was ever shown, and the commands, of all conversations of this home, newest first.

    Every match is verified in the record, and what is not indexed yet is looked at as well, so the result is complete;
    where it is not, because time ran out or a part of a shared catalogue does not answer, `partial` is set. A match
    lies within one line. A secret is covered in what is shown of its line.
    """

    query: str = Field(min_length=1, max_length=1024, description="What to look for, without a line end.")
    mode: Literal["words", "phrase", "substring", "regex"] = Field(
        default="substring",
        description="words: lines that hold all the words; phrase: the words one after another; substring: the text as "
        "it is; regex: a regular expression, as in Python.",
    )
    ignore_case: bool | None = Field(
        default=None, description="Upper and lower case are the same; by default for words and phrases only."
    )
    conversation_id: ConversationId | None = Field(default=None, description="Only this conversation.")
    cwd: str | None = Field(default=None, min_length=1, description="Only blocks that began there or below it.")
    exit_status: int | None = Field(default=None, ge=0, le=255, description="Only blocks with this exit status.")
    failed: bool | None = Field(
        default=None, description="Only blocks whose exit status is not 0, or only those where it is."
    )
    since: Time = Field(default=None, description="Only blocks that began at or after this time, in ms since 1970.")
    until: Time = Field(default=None, description="Only blocks that began before this time, in ms since 1970.")
    min_duration_ms: int | None = Field(
        default=None, ge=0, le=2**53, description="Only blocks that took at least so many milliseconds."
    )
    author: Literal["agent", "user", "engine"] | None = Field(
        default=None, description="Only blocks that were submitted by this one."
    )
    kind: Literal["command", "session", "user", "background"] | None = Field(
        default=None, description="Only blocks of this kind."
    )
    part: Literal["any", "output", "command"] = Field(
        default="any", description="Look in the output of blocks, in their commands, or in both."
    )
    per_block: bool = Field(default=False, description="Only the newest match of every block.")
    page: str | None = Field(
        default=None, min_length=1, max_length=1024, description="`next` of an earlier result, to go on behind it."
    )
    page_size: int = Field(default=100, ge=1, le=1000, description="Matches on a page.")
    timeout_ms: Annotated[
        int, Field(ge=1, le=60_000, description="Return what was found after so many milliseconds.")
    ] = 2000


class OverviewRequest(Request):
    """Show what this home has done: the conversations and blocks that came last, and how many ended with which status.

    Blocks count when they have ended and are indexed, within a second. It costs the same however many there are.
    """

    conversations: int = Field(default=20, ge=0, le=1000, description="Conversations at most.")
    blocks: int = Field(default=50, ge=0, le=1000, description="Blocks at most.")
    conversation_id: ConversationId | None = Field(default=None, description="Only this conversation.")
    failed: bool | None = Field(
        default=None, description="Only blocks whose exit status is not 0, or only those where it is."
    )
    before: Time = Field(default=None, description="Only blocks that began before this time, in ms since 1970.")


class DiffRequest(ConversationRequest):
    """Compare the output of a block with that of another one, by default of the previous run of the same command.

    Of outputs over 1 MiB or 20,000 lines only the beginning is compared, and the result says so.
    """

    block_id: str = Field(min_length=1, description="Name of the block, such as b7.")
    against: str | None = Field(
        default=None, min_length=1, description="Name of the block to compare it with; by default the previous run."
    )
    context: int = Field(default=3, ge=0, le=1000, description="Lines around each change.")
    max_bytes: int = Field(default=65_536, ge=1, le=MAX_BYTES, description="Bytes of the diff to return at most.")


class ArchiveRequest(Request):
    """Ship the streams of conversations whose shell has ended to an object store, and free their space here.

    Where that is says BLOCKPTY_ARCHIVE_URL of the engine. They are listed as before, and what is read of one comes back
    by itself.
    """

    conversation_id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$",
        description="Only this one; by default all that have ended.",
    )
    keep_days: int = Field(default=0, ge=0, le=36_500, description="Of all, keep here what was used in so many days.")


class ImportRecordingRequest(Request):
    """Make a conversation of a recording: asciicast 1, 2 or 3, or the pair of files that script(1) writes.

    It can be read, exported, replayed and verified as any other; nothing can be opened or typed in it. A marker begins
    a block, as our own typescripts say where theirs are; a file without any is one block. What was typed is left out.
    """

    path: str = Field(min_length=1, max_length=4096, description="The file, on the machine of the engine.")
    conversation_id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$",
        description="Name of the conversation; made from the name of the file when not given.",
    )
    timing: str | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description="Of a typescript the file with its times; by default PATH.timing.",
    )
