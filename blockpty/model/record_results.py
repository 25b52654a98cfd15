"""Results about whole records: exported, imported, verified, sealed, archived, deleted."""

from __future__ import annotations

from typing import Any

from msgspec import field

from blockpty.model.result import Result


class ExportResult(Result, frozen=True):
    """A conversation, or a part of it, as a file for other tools.

    Attributes:
        cursor: where the exported span ends.
        format: as asked for; span: what was exported.
        export_bytes: how much it is (of a `typescript`, without the times).
        data: the export itself, where it is at most `max_bytes`; then there is no file.
        path: else the file that holds it, on the machine of the conversation; the client deletes it.
        timing_path: for `typescript` the file with the times.
    """

    cursor: int
    format: str
    span: tuple[int, int]
    export_bytes: int
    data: str | None = None
    path: str | None = None
    timing_path: str | None = None


class ImportResult(Result, frozen=True):
    """A recording of another program that has become a conversation.

    Attributes:
        conversation_id: its name; cursor: the end of its stream.
        format: of the file: `asciicast-1`, `asciicast-2`, `asciicast-3` or `typescript`.
        imported_bytes: what the terminal showed; duration_seconds: how long it took.
        blocks: how many blocks the file names; one when it names none.
        cut: the file ends in the middle of something; what is before that is there.
    """

    conversation_id: str
    cursor: int
    format: str
    imported_bytes: int
    duration_seconds: float
    blocks: int
    cut: bool = False


class CaptureResult(Result, frozen=True):
    """A capture, running or stopped.

    Attributes:
        capture_file: the asciicast, on the machine of the conversation; it is there once the capture is stopped.
        bytes_captured: bytes of the terminal since it began; duration_seconds: how long it has lasted.
    """

    cursor: int
    capture_file: str
    bytes_captured: int
    duration_seconds: float


class VerifyResult(Result, frozen=True):
    """Differences between the files and what follows from stream and timeline.

    Attributes:
        clean: no differences.
        events, blocks, waits: how many were compared.
        differences: one dict a difference: {"invariant", "where", "message"}; at most 100.
        behind: what is missing at the ends of files, because no engine has come to it yet: {"where", "message"} each.
        vouched: [begin, end) of the stream that the timeline has digests of; null: it has none, so that it is not
            known whether the record is complete (it was written by an older version).
        head: digest of the whole record up to here; keep it elsewhere to know this record again.
        record: how long stream and timeline were, in bytes, where `head` is.
        sealed_to: how far the last seal of the given key goes, in bytes of the stream; null without a key.
    """

    clean: bool
    stream_bytes: int
    events: int
    blocks: int
    waits: int
    differences: list[dict[str, Any]] = field(default_factory=list)
    behind: list[dict[str, Any]] = field(default_factory=list)
    vouched: list[int] | None = None
    head: str | None = None
    record: list[int] | None = None
    sealed_to: int | None = None


class SealResult(Result, frozen=True):
    """A seal by a key, which is in the record from now on.

    Attributes:
        sealed_to: how far it goes, in bytes of the stream.
        head: digest of the whole record up to there.
    """

    sealed_to: int
    head: str


class RepairResult(Result, frozen=True):
    """Changes made by a repair.

    Attributes:
        changed: what differed or was behind before, and does not now: {"where", "message"} each, as `verify` said.
        differences: what `verify` still finds: stream and timeline cannot be derived from anything.
    """

    clean: bool
    changed: list[dict[str, Any]] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)


class ArchiveResult(Result, frozen=True):
    """Conversations whose streams were shipped (`archived`), and how many bytes that freed here."""

    archived: list[str]
    freed_bytes: int


class DeleteResult(Result, frozen=True):
    """A conversation and its transcript are gone; `cursor` is where the stream had ended."""

    cursor: int
    freed_bytes: int


class PruneResult(Result, frozen=True):
    """Conversations that were deleted, the oldest first.

    Attributes:
        deleted: their names; freed_bytes: what they took; kept_bytes: what the remaining ones take.
    """

    deleted: list[str]
    freed_bytes: int
    kept_bytes: int
