"""Results of the operations, as frozen data; every result carries a cursor where one makes sense."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from blockpty.model.block import Block, ListedBlock
from blockpty.model.result import REVIVED
from blockpty.model.result import Result as Result
from blockpty.model.search_results import Activity as Activity
from blockpty.model.search_results import FoundBlock as FoundBlock
from blockpty.model.search_results import OverviewResult as OverviewResult
from blockpty.model.search_results import SearchHit as SearchHit
from blockpty.model.search_results import SearchResult as SearchResult
from blockpty.model.shown import framed, preformatted, shortened
from blockpty.model.timeline_results import ControlChange as ControlChange
from blockpty.model.timeline_results import Silence as Silence
from blockpty.model.timeline_results import TimelineBlock as TimelineBlock
from blockpty.model.timeline_results import TimelineQuestion as TimelineQuestion
from blockpty.model.timeline_results import TimelineResize as TimelineResize
from blockpty.model.timeline_results import TimelineResult as TimelineResult

# The class, in those that have a field of this name.
_Bytes = bytes


@dataclass(frozen=True, slots=True)
class OpenResult(Result):
    """A conversation is open; `shell_id` names this shell instance inside it."""

    conversation_id: str
    shell_id: str
    pid: int
    cursor: int
    mode: str


@dataclass(frozen=True, slots=True)
class BlockSummary(Result):
    """What a list says of a block; the fields are those of the block's record."""

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
        return cls(**{item.name: getattr(block, item.name) for item in fields(cls)})


@dataclass(frozen=True, slots=True)
class ConversationInfo(Result):
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


@dataclass(frozen=True, slots=True)
class ListResult(Result):
    """The conversations of a home, live ones first, of each kind the newest first."""

    conversations: list[ConversationInfo]


@dataclass(frozen=True, slots=True)
class StatusResult(Result):
    """Where a conversation is.

    Attributes:
        mode: `starting`, `idle`, `block_running`, `interactive` or `exited`.
        tty: `at_prompt`, `running`, `reads_line`, `password`, `raw`, `alt_screen`, `incomplete_input`, or None when
            there is no terminal any more.
        integrity: `ok` when blocks and exit statuses are exact, else `degraded`; integrity_reason says why.
        transport: how the host moves bytes: `splice` (a killed recorder loses nothing) or `read`.
        exit: {"status", "signal"} of the ended shell, else None; with "reason" `connection_lost` when the way to a far
            shell broke, and what ran there may run on.
        lost: why it is not known how the shell ended: `host_gone` (every process that held its terminal was killed) or
            `machine_restarted`; None when it is known, or it runs.
        nested: {"program", "evidence"} while another shell, a remote or an interpreter has the terminal inside the
            running block; evidence `foreground`: by its process, `marks`: the block has printed our marks as a shell
            does that inherited our prompts, `hints`: it has printed an OSC 133;A, as at a prompt.
        next_seq: number that the next event will have, to follow `events` from here.
        control: `agent`, `user` (a person has it alone) or `shared`; control_by: that person; control_since: ms since
            1970, None when it has never changed.
        halted: who halted agents, here or in all conversations; None when they may type.
        sandbox: what holds around the shell: {"profile", "method", "network", "writable", "hidden", "not_held"}; None
            without a sandbox.
        source: `shell`, or what `open` was given: `exec:...`, `ssh:...`, `tmux:...`, `container:...`.
        connection: of an ssh source with `resume`, what the connection does: {"state", "reason", "connections"}; state
            `up`, `lost` (it is made again by itself; the shell over there runs on) or `plain` (blockpty is not
            installed there, so it is an ssh like any other); reason says why it is not up, connections how many there
            were. None for all else.
    """

    conversation_id: str
    mode: str
    tty: str | None
    integrity: str
    integrity_reason: str | None
    active_session_id: str | None
    active_block_id: str | None
    shell_id: str
    shell: str
    pid: int | None
    cursor: int
    cols: int
    rows: int
    cwd: str | None
    control: str
    foreground: str | None
    transport: str | None
    owner: bool
    exit: dict[str, Any] | None
    nested: dict[str, Any] | None = None
    next_seq: int = 0
    lost: str | None = None
    control_by: str | None = None
    control_since: int | None = None
    halted: str | None = None
    sandbox: dict[str, Any] | None = None
    source: str = "shell"
    connection: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ExecResult(Result):
    """A command was submitted as one block; it runs."""

    block_id: str
    seq: int
    ts_begin: int
    cursor: int


@dataclass(frozen=True, slots=True)
class SessionResult(Result):
    """An interactive program was submitted; use `send` and `wait_for`."""

    session_id: str
    block_id: str
    ts_begin: int
    cursor: int


@dataclass(frozen=True, slots=True)
class RunResult(Result):
    """A command ran, or its time was up or it waits for input, and it runs on.

    Attributes:
        block: the block's record; state `running` when it has not ended.
        output: text view of its output, at most max_bytes, head and tail kept.
        output_bytes: size of the whole text; truncated: whether some was left out.
        reason: `prompt` (it has ended), `timeout`, `input`, `password`, `incomplete_input`, `eof` or `hooks_lost`.
        cursor: where to go on reading or waiting.
        tty, foreground: when it has not ended, as in `status`: what the terminal does, and the program that has it.
        hint: what to do then.
    """

    block: Block
    output: str
    output_bytes: int
    truncated: bool
    timed_out: bool
    reason: str
    cursor: int
    tty: str | None = None
    foreground: str | None = None
    hint: str | None = None

    @property
    def exit_status(self) -> int | None:
        """The command's exit status; None when unknown or still running."""
        return self.block.exit_status

    @property
    def ok(self) -> bool:
        """Whether the command has ended with exit status 0."""
        return self.block.exit_status == 0

    def __repr__(self) -> str:
        how = "timed out" if self.timed_out else f"exit_status={self.exit_status}"
        return f"<RunResult {shortened(self.block.cmd)} {how} output={shortened(self.output, 400)}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return preformatted(f"$ {self.block.cmd}\n{self.output}", summary=self.block.summary)


@dataclass(frozen=True, slots=True)
class WaitResult(Result):
    """How a wait ended.

    Attributes:
        matched: whether a condition held.
        reason: `matched`, `prompt`, `eof`, `input`, `timeout`, `max_bytes`, `stopped`, `password`,
            `incomplete_input`, `hooks_lost`, `cancelled`.
        index: which of several conditions matched (or which stop condition stopped it).
        match_text, groups, span: what matched and where in the stream.
        cursor: where to go on; for an unsuccessful wait a place from which asking again misses nothing.
        text: the last text seen (at most 8 KiB) up to the end; text_bytes: how much there was.
        before: of a match, the text from where the wait looked (at most 8 KiB, the end of it) up to the match.
        already_there: what matched was there, or the shell or program ready, before the wait began.
        new_output: how many bytes of the text have come since the wait began.
        from_cursor: where it looked from; `read` from there returns all of the text.
        context: the lines that the match stands on, and those around them, if `context` lines were asked for.
        foreground: the program that has the terminal, as in `status`, and hint: what to do about it, when the wait
            ended without a match while a program runs.
    """

    matched: bool
    reason: str
    cursor: int
    index: int | None = None
    match_text: str | None = None
    groups: dict[str, Any] | None = None
    span: tuple[int, int] | None = None
    mode: str = "idle"
    tty: str | None = None
    text: str = ""
    text_bytes: int = 0
    before: str = ""
    already_there: bool = False
    new_output: int = 0
    from_cursor: int = 0
    context: str | None = None
    foreground: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class SendResult(Result):
    """Input went to the terminal; with `match`, how the wait ended that began right behind it.

    Attributes:
        cursor: where the input was typed; with `match` where to go on.
        accepted_bytes: how many bytes the terminal took.
        matched, reason, index, match_text, groups, span, mode, tty, text, text_bytes, before, already_there,
            new_output, from_cursor, foreground: as in the result of `wait_for`; None, and left out of the JSON form,
            without `match`.
        hint: what to do about the program, or how a key or token is written that was taken for text.
    """

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset({
        "matched", "reason", "index", "match_text", "groups", "span", "mode", "tty", "text", "text_bytes", "before",
        "already_there", "new_output", "from_cursor", "foreground", "hint",
    })  # fmt: skip

    cursor: int
    accepted_bytes: int
    matched: bool | None = None
    reason: str | None = None
    index: int | None = None
    match_text: str | None = None
    groups: dict[str, Any] | None = None
    span: tuple[int, int] | None = None
    mode: str | None = None
    tty: str | None = None
    text: str | None = None
    text_bytes: int | None = None
    before: str | None = None
    already_there: bool | None = None
    new_output: int | None = None
    from_cursor: int | None = None
    foreground: str | None = None
    hint: str | None = None

    def with_wait(self, waited: WaitResult) -> SendResult:
        """Return this result with how a wait ended."""
        found = {item.name: getattr(waited, item.name) for item in fields(waited) if item.name in self.LEFT_OUT}
        hints = [hint for hint in (self.hint, waited.hint) if hint is not None]
        return replace(self, cursor=waited.cursor, **{**found, "hint": "; ".join(hints) or None})


@dataclass(frozen=True, slots=True)
class ReadResult(Result):
    """A piece of the transcript.

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


@dataclass(frozen=True, slots=True)
class BlocksResult(Result):
    """Blocks in the order that was asked for; `next_page` continues, None at the end."""

    blocks: list[ListedBlock]
    next_page: int | None
    cursor: int


@dataclass(frozen=True, slots=True)
class BlockResult(Result):
    """One block."""

    block: Block
    cursor: int


@dataclass(frozen=True, slots=True)
class ScreenResult(Result):
    """What a terminal shows.

    Attributes:
        content: the screen in the format that was asked for; `json` as JSON text.
        cursor: how much of the stream it shows.
        cols, rows: the terminal's size.
        cursor_position: column and row of the terminal's cursor, from 0; cursor_visible: whether it is shown.
        alt_screen: the alternate screen is shown, as full-screen programs do.
        mouse: what the program wants to hear of the mouse: `off`, `press`, `click`, `drag` or `motion`.
        title: of the window.
        seqno: names this moment for `since`.
        hash: names what is shown for `{"changed": hash}`: hashes of characters, of how they are drawn and of the
            cursor, joined by "-".
        changed: rows, from 0, that are not as they were at `since`; all without it.
    """

    content: str
    cursor: int
    format: str
    cols: int
    rows: int
    cursor_position: tuple[int, int]
    cursor_visible: bool
    alt_screen: bool
    mouse: str
    title: str
    seqno: int
    hash: str
    changed: list[int]

    def __repr__(self) -> str:
        rows = "\n".join(line.rstrip() for line in self.content.rstrip().split("\n"))
        return f"<ScreenResult {self.cols}x{self.rows} {self.format}>\n{rows}"

    def _repr_html_(self) -> str:
        """Show it in a notebook; with the format html in colours."""
        title = f"{self.cols}x{self.rows}{' ' + self.title if self.title else ''}"
        return framed(self.content, self.rows) if self.format == "html" else preformatted(self.content, summary=title)


@dataclass(frozen=True, slots=True)
class ScrollbackResult(Result):
    """How many lines above the screen can be asked for."""

    cursor: int
    scrollback_lines: int


@dataclass(frozen=True, slots=True)
class DoneResult(Result):
    """Something was done; `how` says in one word or two what it took, where there are several ways."""

    cursor: int
    how: str | None = None


@dataclass(frozen=True, slots=True)
class ControlResult(Result):
    """Who may type into a conversation now.

    Attributes:
        control: `agent`, `user` or `shared`, as in `status`.
        who: name of the person who has control; null when there is none.
        since: ms since 1970 of the last change; null when there was none.
        halted: who halted agents in it; null when they may type.
    """

    conversation_id: str
    control: str
    who: str | None
    since: int | None
    halted: str | None
    cursor: int


@dataclass(frozen=True, slots=True)
class HaltResult(Result):
    """Agents were halted, or released.

    Attributes:
        everywhere: whether that holds for all conversations of the home, those that are opened later too.
        conversations: {"conversation_id", "how"} for each that something was done to; `how` as `interrupt` says it,
            "released", or the code of the error that kept it from being done.
    """

    everywhere: bool
    conversations: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class UserInputResult(Result):
    """How a request to a person ended: `done`, `cancelled` or `timeout`."""

    outcome: str
    cursor: int


@dataclass(frozen=True, slots=True)
class ApprovalsResult(Result):
    """What waits for a person to allow it, the oldest first.

    Attributes:
        approvals: each with `approval_id`, `conversation_id`, `principal`, `operation`, `sentence`, `text` (the exact
            input, made visible; null for a secret), `digest`, `rule`, `cwd`, `block_id`, `requested_ts`, `expires_ts`,
            and `always`: the rule that approving it always would add to the policy.
    """

    approvals: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class VerdictResult(Result):
    """An approval was given or refused."""

    approval_id: str
    verdict: str
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class CloseResult(Result):
    """The shell is gone; the transcript stays.

    Attributes:
        exit: how it ended, as in `status`.
        outside: `pid`, `command` and `ended` of each process that had left the shell's session (a daemon); with
            `ended` false it runs on.
    """

    cursor: int
    exit: dict[str, Any] | None
    outside: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DeleteResult(Result):
    """A conversation and its transcript are gone; `cursor` is where the stream had ended."""

    cursor: int
    freed_bytes: int


@dataclass(frozen=True, slots=True)
class PruneResult(Result):
    """Conversations that were deleted, the oldest first.

    Attributes:
        deleted: their names; freed_bytes: what they took; kept_bytes: what the remaining ones take.
    """

    deleted: list[str]
    freed_bytes: int
    kept_bytes: int


@dataclass(frozen=True, slots=True)
class ArchiveResult(Result):
    """Conversations whose streams were shipped (`archived`), and how many bytes that freed here."""

    archived: list[str]
    freed_bytes: int


@dataclass(frozen=True, slots=True)
class ExportResult(Result):
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


@dataclass(frozen=True, slots=True)
class ImportResult(Result):
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


@dataclass(frozen=True, slots=True)
class CaptureResult(Result):
    """A capture, running or stopped.

    Attributes:
        capture_file: the asciicast, on the machine of the conversation; it is there once the capture is stopped.
        bytes_captured: bytes of the terminal since it began; duration_seconds: how long it has lasted.
    """

    cursor: int
    capture_file: str
    bytes_captured: int
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class PutFileResult(Result):
    """A file was written.

    Attributes:
        bytes, digest: its length, and its SHA-256 in hex.
        how: `direct` (the engine wrote it, next to the shell) or `terminal` (the shell did).
    """

    bytes: int
    digest: str
    cursor: int
    how: str


@dataclass(frozen=True, slots=True)
class GetFileResult(Result):
    """A file was read.

    Attributes:
        bytes, digest: length and SHA-256 in hex of what is returned: of the file, unless it is `redacted`.
        data: the content, where it is UTF-8; data_b64: where it is not. Both are None where it went to `local_path`.
        how: as in the result of `put_file`.
        redacted: secrets in it are covered, so it is not the file as it is there.
    """

    bytes: int
    digest: str
    data: str | None
    data_b64: str | None
    cursor: int
    how: str
    redacted: bool = False

    @property
    def content(self) -> _Bytes:
        """The exact bytes; empty where they went to `local_path`."""
        return base64.b64decode(self.data_b64) if self.data_b64 is not None else (self.data or "").encode("utf-8")


@dataclass(frozen=True, slots=True)
class VerifyResult(Result):
    """What comparing everything with what follows from stream and timeline showed.

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


@dataclass(frozen=True, slots=True)
class SealResult(Result):
    """A seal by a key, which is in the record from now on.

    Attributes:
        sealed_to: how far it goes, in bytes of the stream.
        head: digest of the whole record up to there.
    """

    sealed_to: int
    head: str


@dataclass(frozen=True, slots=True)
class RepairResult(Result):
    """What repairing changed.

    Attributes:
        changed: what differed or was behind before, and does not now: {"where", "message"} each, as `verify` said.
        differences: what `verify` still finds: stream and timeline cannot be derived from anything.
    """

    clean: bool
    changed: list[dict[str, Any]] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AuditResult(Result):
    """Entries of the audit log, newest first, and on request what checking all of it showed.

    Attributes:
        entries: each with `format`, `seq`, `ts` (ms since 1970), `type`, `principal`, `conversation_id` and fields of
            its type.
        next: `page` of the entries before these; null: there are none.
        findings: {"line", "message"} for each place at which the log is not what was written; null when not asked for.
        head: digest of the whole log; keep it elsewhere to know this log again. Null when not asked for.
        unwritten: entries that this engine keeps in memory, because they could not be written yet.
        dropped: entries that it could not even keep.
    """

    entries: list[dict[str, Any]]
    next: int | None = None
    findings: list[dict[str, Any]] | None = None
    head: str | None = None
    unwritten: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class DiffResult(Result):
    """How the output of a block differs from that of another one, by default of the previous run of its command.

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


REVIVED.update(
    {
        "BlockSummary | None": lambda value: None if value is None else BlockSummary.from_dict(value),
        "list[ListedBlock]": lambda value: [ListedBlock.from_dict(one) for one in value],
        "list[ConversationInfo]": lambda value: [ConversationInfo.from_dict(one) for one in value],
    }
)
