"""The parameters of every operation: the one place where each is spelled, typed, defaulted, bounded and described.

Rules of this file: data only. A class is the request of one operation; its docstring is the operation's description in
help texts, OpenAPI and MCP; its fields stand in the order of the Python signature. Nothing is converted: "5" is no
number and 1 is no flag. What needs the state of a conversation to be judged is left to the conversation.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

MAX_TIMEOUT_MS: Final = 3_600_000
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_COMMAND: Final = 16 * 1024 * 1024
MAX_TEXT: Final = 4 * 1024 * 1024

_CONDITION: Final[list[dict[str, Any]]] = [
    {"type": "string", "minLength": 1},
    {
        "type": "object",
        "properties": {
            "regex": {"type": "string", "minLength": 1, "maxLength": 4096},
            "token": {"enum": ["PROMPT", "EOF"]},
            "idle_ms": {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_MS},
            "screen": {"type": "string", "minLength": 1, "maxLength": 4096},
            "changed": {"type": "string", "pattern": "^(?=-{0,2}[0-9a-f])[0-9a-f]{0,16}(-[0-9a-f]{0,16}){0,2}$"},
        },
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    },
]
_CONDITIONS: Final = [*_CONDITION, {"type": "array", "minItems": 1, "items": {"anyOf": _CONDITION}}]
# The engine itself judges conditions, so that a bad one is a `bad_condition` with its own hint on every surface.
Conditions = Annotated[Any, WithJsonSchema({"anyOf": _CONDITIONS})]
OptionalConditions = Annotated[Any, WithJsonSchema({"anyOf": [*_CONDITIONS, {"type": "null"}]})]

ConversationId = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$",
        description="Name of the conversation: a letter or digit, then up to 127 letters, digits, '.', '_' or '-'.",
    ),
]
SessionId = Annotated[
    str | None,
    Field(description="The interactive session it is meant for; refused when another one, or none, is active."),
]
Secret = Annotated[
    bool,
    Field(description="Never record these bytes, nor how many they are; what the terminal prints of them is recorded."),
]
Command = Annotated[
    str, Field(max_length=MAX_COMMAND, description="Shell text, run as exactly one block whatever it contains.")
]
Directory = Annotated[
    str | None, Field(min_length=1, description="Change the shell's directory to this one first, as cd does.")
]
TimeoutMs = Annotated[
    int, Field(ge=0, le=MAX_TIMEOUT_MS, description="Give up after so many milliseconds; what runs is left running.")
]
View = Annotated[
    Literal["raw", "ansi", "text", "rendered"],
    Field(
        description="raw: every byte; ansi: without the shell's own marks; text: without control sequences; "
        "rendered: as a person sees it in the end, overwritten lines and cursor movements applied."
    ),
]
WaitView = Annotated[
    Literal["raw", "ansi", "text"],
    Field(description="What is searched; the views are those of read, without rendered."),
]
Columns = Annotated[int, Field(ge=1, le=1000, description="Width of the terminal in columns.")]
Rows = Annotated[int, Field(ge=1, le=1000, description="Height of the terminal in rows.")]
# With or without SIG, in any letter case: JSON Schema has no flag for that.
_INTERRUPTS: Final = "[Ii][Nn][Tt]|[Qq][Uu][Ii][Tt]|[Tt][Ee][Rr][Mm]|[Kk][Ii][Ll][Ll]"
_SIGNAL: Final = "^([Ss][Ii][Gg])?({})$"
Cursor = Annotated[int, Field(ge=0, description="Offset in the stream, as results give it.")]


class Request(BaseModel):
    """Base of all requests."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class ConversationRequest(Request):
    """Base of all requests to one conversation."""

    conversation_id: ConversationId


class SessionRequest(ConversationRequest):
    """Base of the requests that are keys only."""

    session_id: SessionId = None


class OpenRequest(Request):
    """Start a shell on a terminal of its own, and return when it has shown its first prompt.

    It begins a new conversation, or goes on with one whose shell has ended; while that is live this is `busy`.
    """

    conversation_id: ConversationId | None = Field(
        default=None,
        description="Name of the conversation: a letter or digit, then up to 127 letters, digits, '.', '_' or '-'; "
        "made up when not given.",
    )
    shell: str | None = Field(
        default=None,
        min_length=1,
        description="Path or name of the shell; by default $SHELL if it is bash or zsh, else bash.",
    )
    cwd: str | None = Field(
        default=None, min_length=1, description="Directory in which the shell starts; by default the current one."
    )
    env: dict[str, str] | None = Field(default=None, description="Variables added to the environment of the shell.")
    cols: Columns = 80
    rows: Rows = 24
    login: bool = Field(default=False, description="Start a login shell.")
    persist: bool | None = Field(
        default=None,
        description="Keep the shell running after the engine that opened it has gone; a server does by default, an "
        "engine of your own does not.",
    )
    answers: bool = Field(
        default=True,
        description="Answer programs that ask their terminal what it is, where the cursor stands, and the like.",
    )
    timeout_ms: Annotated[
        int, Field(ge=0, le=MAX_TIMEOUT_MS, description="Give up when there is no prompt after so many milliseconds.")
    ] = 30_000


class ListRequest(Request):
    """List the conversations of this home, newest first, live and ended."""

    filter: str | None = Field(default=None, description="Only those whose name contains this text.")


class StatusRequest(ConversationRequest):
    """Say what the shell and its terminal are doing now."""


class ExecBlockRequest(ConversationRequest):
    """Run a command as one block and return when it has begun.

    While another one runs this is `busy`, or waits its turn with queue; while an interactive session has the terminal
    it is `interactive_session_active`. To see how it ends, wait for the token PROMPT.
    """

    command: Command
    cwd: Directory = None
    queue: bool = Field(default=False, description="While another block runs, wait for its end instead of refusing.")


class ExecInteractiveRequest(ConversationRequest):
    """Start a program that will be talked to with send and wait_for; it is an interactive session until it ends."""

    command: Command
    cwd: Directory = None


class RunRequest(ConversationRequest):
    """Run a command as one block, wait for its end and return its output and exit status.

    When the time is up the command runs on; the result says so and gives the cursor to wait from.
    """

    command: Command
    cwd: Directory = None
    timeout_ms: TimeoutMs = 30_000
    max_bytes: Annotated[
        int, Field(ge=1, le=MAX_BYTES, description="Bytes of output to return; of more than that, head and tail.")
    ] = 65_536


class SendRequest(ConversationRequest):
    """Write text or bytes to the terminal, exactly as given; give data or data_b64. No newline is added.

    It is for the program that runs; at the prompt only what a person types (author user) is taken.
    """

    data: str | None = Field(default=None, max_length=MAX_TEXT, description="Text, sent in UTF-8.")
    data_b64: str | None = Field(
        default=None, max_length=MAX_TEXT * 4 // 3 + 4, description="Exact bytes, in base64, in place of data."
    )
    session_id: SessionId = None
    author: Literal["agent", "user"] = Field(default="agent", description="Who the input is recorded to be from.")
    secret: Secret = False


class SendKeysRequest(ConversationRequest):
    """Press keys: text with named keys in it.

    ^C is a control character. [UP] [DOWN] [LEFT] [RIGHT] [HOME] [END] [PGUP] [PGDN] [INS] [DEL] [ESC] [TAB] [ENTER]
    [BS] [SPACE] and [F1] to [F12] are keys, with C- M- S- for Ctrl, Alt and Shift: [C-UP] [M-x] [S-TAB] [C-S-LEFT].
    A newline is the Enter key. Write [[ and ^^ for a literal [ and ^.
    """

    keys: str = Field(max_length=65_536, description="Text with named keys, such as ':wq[ENTER]' or '^C'.")
    session_id: SessionId = None
    secret: Secret = False


class PasteRequest(ConversationRequest):
    """Paste text: in brackets where the program asked for that, otherwise with Enter at the line ends.

    Control characters other than tab and line ends are replaced by their pictures, so that the text cannot act as keys.
    """

    text: str = Field(max_length=MAX_TEXT, description="What is pasted.")
    session_id: SessionId = None
    secret: Secret = False


class CtrlCRequest(SessionRequest):
    """Press Ctrl-C."""


class CtrlDRequest(SessionRequest):
    """Press Ctrl-D."""


class EnterRequest(SessionRequest):
    """Press Enter."""


class WaitForRequest(ConversationRequest):
    """Wait until something appears or happens, looking at what is recorded already first.

    The answer depends on the record alone: the same wait from the same cursor gives the same answer later. A wait that
    ends without a match is a result with its reason, not an error.
    """

    match: Conditions = Field(
        description='A text; {"regex": "..."}; {"token": "PROMPT"} (ready for a command); {"token": "EOF"} (session or '
        'shell ended); {"idle_ms": n} (silence); or a list of these.'
    )
    session_id: SessionId = None
    from_cursor: Cursor | None = Field(
        default=None,
        description="Where to look from; by default where the last wait ended, else where the block begins.",
    )
    timeout_ms: TimeoutMs = 30_000
    max_bytes: int | None = Field(
        default=None, ge=1, le=MAX_BYTES, description="Give up after so many bytes of the view; by default never."
    )
    stop: OptionalConditions = Field(
        default=None, description="Conditions, as in match, that end the wait without a match."
    )
    view: WaitView = "text"
    echo: bool = Field(default=False, description="Match the echo of what was typed as well.")


class ReadRequest(ConversationRequest):
    """Read a piece of the transcript, from a cursor or of a block; the result's cursor is where the next one begins."""

    from_cursor: Cursor | None = Field(
        default=None, description="Where to read from; by default the beginning, of the block if one is given."
    )
    block_id: str | None = Field(default=None, description="Read only the output of this block.")
    max_bytes: Annotated[int, Field(ge=1, le=MAX_BYTES, description="Bytes of the view to return at most.")] = 65_536
    view: View = "text"


class BlocksRequest(ConversationRequest):
    """List the blocks that have ended, oldest first."""

    filter: str | None = Field(default=None, description="Only those whose command contains this text.")
    failed: bool | None = Field(
        default=None, description="Only those whose exit status is not 0, or only those where it is."
    )
    min_duration_ms: int | None = Field(
        default=None, ge=0, le=2**53, description="Only those that took at least so many milliseconds."
    )
    cwd: str | None = Field(default=None, min_length=1, description="Only those that began there or below it.")
    page: int = Field(default=0, ge=0, le=2**31, description="Which page, from 0.")
    page_size: int = Field(default=100, ge=1, le=1000, description="Blocks on a page.")


class BlockRequest(ConversationRequest):
    """Show the record of one block, running or ended."""

    block_id: str = Field(min_length=1, description="Name of the block, such as b7.")


class EventsRequest(ConversationRequest):
    """Give the events of a conversation in order, and then live ones as they happen."""

    from_seq: int = Field(default=0, ge=0, description="Sequence number of the first event.")
    follow: bool = Field(default=True, description="Go on with live events, else stop after the last recorded one.")


class ScreenRequest(ConversationRequest):
    """Show what the terminal shows, now or at a cursor: a full-screen program, or the last lines of a shell."""

    format: Literal["text", "json", "ansi", "html", "svg", "agent"] = Field(
        default="text",
        description="text: the characters; agent: the same between two lines that say size and cursor; json: runs "
        "of cells with their colours; ansi: output that draws it again; html, svg: a page and a picture of it.",
    )
    since: int | None = Field(
        default=None, ge=0, description="The seqno of an earlier result; `changed` names the rows that differ since."
    )
    scrollback: int = Field(
        default=0, ge=0, le=100_000, description="So many lines above the screen come too, in text, json and agent."
    )
    at: Cursor | None = Field(default=None, description="Show what was shown at this cursor; by default now.")
    record: bool = Field(default=False, description="Record this look: a `screen_snapshot` event names its cursor.")


class SetScrollbackRequest(ConversationRequest):
    """Set how many lines above the screen can be asked for; nothing of the record is dropped or kept by it."""

    lines: int = Field(default=1000, ge=0, le=100_000, description="Lines above the screen at most.")


class ResizeRequest(ConversationRequest):
    """Change the size of the terminal."""

    cols: Columns
    rows: Rows


class StartCaptureRequest(ConversationRequest):
    """Begin to capture what the terminal shows as an asciicast, or tell of the capture that runs already.

    It goes on over restarts, until stop_capture writes the file; until then the record holds all of it.
    """


class StopCaptureRequest(ConversationRequest):
    """Stop the capture and write its asciicast to the home's `exports/`; again, it tells of the one that was stopped.

    The file is readable by its owner only and yours to delete. Nonces and the shell's own marks are not in it.
    """


class EndSessionRequest(ConversationRequest):
    """End an interactive session as gently as it allows; the result says how.

    `exit` is typed to a known shell or interpreter, the keys that leave it to a known pager or editor (what was not
    saved is lost); then Ctrl-C, SIGINT, SIGQUIT, SIGTERM and SIGKILL follow, and as the last resort a new shell. Only
    that loses the shell's directory and variables.
    """

    session_id: SessionId = None


class EnterShellRequest(ConversationRequest):
    """Give the hooks to a shell that runs inside a command (ssh, su, a container): its commands are blocks then."""

    shell: Literal["bash", "zsh", "fish"] | None = Field(
        default=None, description="Which shell is at the prompt; needed where it runs behind another program, as ssh."
    )
    timeout_ms: int = Field(default=10_000, ge=0, le=86_400_000, description="How long its first prompt may take.")


class InterruptRequest(ConversationRequest):
    """Interrupt what runs, with SIGINT first and stronger signals only as far as asked for; says how it ended."""

    up_to: str = Field(
        default="INT",
        min_length=1,
        max_length=7,
        pattern=_SIGNAL.format(_INTERRUPTS),
        description="The strongest signal to go to, in the order INT, QUIT, TERM, KILL (SIGTERM as well).",
    )
    grace_ms: int = Field(default=1000, ge=0, le=60_000, description="How long to wait for a prompt after each signal.")


class ResetRequest(ConversationRequest):
    """Kill the shell and start another on a new terminal; transcript and cursors go on."""


class KillRequest(ConversationRequest):
    """End the shell and what it runs in the foreground: TERM, then HUP and KILL as long as the shell runs.

    The result says which signal ended the shell, or `running`: at its prompt a shell survives INT and QUIT.
    """

    signal: str = Field(
        default="TERM",
        min_length=1,
        max_length=7,
        pattern=_SIGNAL.format(f"[Hh][Uu][Pp]|{_INTERRUPTS}"),
        description="Send HUP, INT, QUIT or KILL alone in place of these (SIGHUP as well).",
    )


class CloseRequest(ConversationRequest):
    """End the shell with everything that came from it; the transcript stays.

    What has left the shell's session (setsid, a daemon) is ended too, or runs on with `leave`; the result lists it.
    """

    leave: bool = Field(default=False, description="Leave running what has left the shell's session.")


class DeleteRequest(ConversationRequest):
    """Delete a conversation whose shell has ended, with its transcript; there is no way back."""


class PruneRequest(Request):
    """Delete the conversations that were not used for so long, then the oldest until the others take no more space.

    Only conversations whose shell has ended are deleted, whole, and there is no way back.
    """

    keep_days: int | None = Field(default=None, ge=0, le=36_500, description="Keep what was used in so many days.")
    keep_total_mb: int | None = Field(default=None, ge=0, le=10**9, description="Keep at most so many MiB in all.")


class ExportRequest(ConversationRequest):
    """Export a conversation, a block or a span for other tools; small results as data, others as a file.

    The file is written in flat memory to the home's `exports/`, readable by its owner only, and is yours to delete;
    one that is left for seven days is removed by a later export. A typescript is always a pair of files. Nonces are
    covered; the shell's own marks are in the typescript only. A cast of a part begins with what the screen showed.
    """

    format: Literal["cast", "cast3", "typescript", "text", "html", "markdown", "jsonl"] = Field(
        default="cast",
        description="cast, cast3: asciicast v2 and v3, with a marker per block; typescript: the exact bytes and their "
        "times, as script(1) writes them; text, html: as a person saw it; markdown, jsonl: block by block.",
    )
    from_cursor: Cursor | None = Field(default=None, description="Where the span begins; by default the beginning.")
    to_cursor: Cursor | None = Field(default=None, description="Where the span ends; by default now.")
    block_id: str | None = Field(default=None, description="Export only this block, in place of a span.")
    max_bytes: Annotated[
        int, Field(ge=1, le=MAX_BYTES, description="Return at most so many bytes as data, and write more to a file.")
    ] = 65_536
    redact: bool | None = Field(
        default=None,
        description="Cover secrets; by default as in all that leaves. false needs an engine that allows it, and the "
        "scope admin.",
    )


_KEY: Final = "A secret of yours, at least 16 characters; it is kept nowhere."
OptionalKey = Annotated[str | None, Field(min_length=16, max_length=4096, description=_KEY)]


class VerifyRequest(Request):
    """Compare all files with what follows from stream and timeline, waits included; nothing is written.

    With a key: also look for the seals that were made with it.
    """

    conversation_id: ConversationId
    key: OptionalKey = None


class RepairRequest(Request):
    """Derive everything again from stream and timeline, and say what that changed; only while no shell runs."""

    conversation_id: ConversationId
    key: OptionalKey = None


class SealRequest(Request):
    """Seal the record, as far as it goes now, with a key: who has the key can tell it from any other by verify."""

    conversation_id: ConversationId
    key: Annotated[str, Field(min_length=16, max_length=4096, description=_KEY)]
