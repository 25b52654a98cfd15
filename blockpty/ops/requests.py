"""Request models of the operations: each parameter is spelled, typed, defaulted, bounded and described here, once.

Rules of this file: data only. A class is the request of one operation; its docstring is the operation's description in
help texts, OpenAPI and MCP; its fields stand in the order of the Python signature. Nothing is converted: "5" is no
number and 1 is no flag. The conversation itself checks what depends on its state.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from blockpty.api import limits

MAX_TIMEOUT_MS: Final = limits.BOUNDS["timeout_ms"][1]
MAX_BYTES: Final = limits.BOUNDS["max_bytes"][1]
MAX_COMMAND: Final = 16 * 1024 * 1024
MAX_TEXT: Final = 4 * 1024 * 1024
MAX_FILE: Final = limits.MOST_FILE

_CONDITION: Final[list[dict[str, Any]]] = [
    {"type": "string", "minLength": 1},
    {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1},
            "regex": {"type": "string", "minLength": 1, "maxLength": 4096},
            "ignore_case": {"type": "boolean"},
            "token": {"enum": ["PROMPT", "EOF", "INPUT"]},
            "idle_ms": {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_MS},
            "screen": {"type": "string", "minLength": 1, "maxLength": 4096},
            "changed": {"type": "string", "pattern": "^(?=-{0,2}[0-9a-f])[0-9a-f]{0,16}(-[0-9a-f]{0,16}){0,2}$"},
        },
        "minProperties": 1,
        "maxProperties": 2,
        "oneOf": [{"required": [kind]} for kind in ("text", "regex", "token", "idle_ms", "screen", "changed")],
        "additionalProperties": False,
    },
]
_CONDITIONS: Final = [*_CONDITION, {"type": "array", "minItems": 1, "items": {"anyOf": _CONDITION}}]
# The engine itself checks conditions, so that a bad one is a `bad_condition` with its own hint on every surface.
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
    Field(description="The interactive session that gets the input; refused when another one, or none, is active."),
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
FilePath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4096,
        description="Path of the file: absolute, from the shell's directory on, or from its home on (~/...).",
    ),
]
TimeoutMs = Annotated[
    int, Field(ge=0, le=MAX_TIMEOUT_MS, description="Time out after so many milliseconds; the program keeps running.")
]
View = Annotated[
    Literal["raw", "ansi", "text", "rendered"],
    Field(
        description="raw: every byte; ansi: without the shell's own marks; text: without control sequences; "
        "rendered: as a person sees it in the end, overwritten lines and cursor movements applied."
    ),
]
WaitView = Annotated[
    Literal["raw", "ansi", "text", "rendered"],
    Field(description="What is searched and shown, as in read; rendered searches text and shows what a person sees."),
]
Columns = Annotated[int, Field(ge=1, le=1000, description="Width of the terminal in columns.")]
Rows = Annotated[int, Field(ge=1, le=1000, description="Height of the terminal in rows.")]
InputMatch = Annotated[
    Any,
    WithJsonSchema({"anyOf": [*_CONDITIONS, {"type": "null"}]}),
    Field(description="Wait for this, as wait_for does, from exactly this input on; the result says how that ended."),
]
InputStop = Annotated[
    Any,
    WithJsonSchema({"anyOf": [*_CONDITIONS, {"type": "null"}]}),
    Field(description="With match: conditions that end the wait without a match."),
]
WaitBytes = Annotated[
    int | None, Field(ge=1, le=MAX_BYTES, description="Give up after so many bytes of the view; by default never.")
]
# With or without SIG, in any letter case: JSON Schema has no flag for that.
_INTERRUPTS: Final = "[Ii][Nn][Tt]|[Qq][Uu][Ii][Tt]|[Tt][Ee][Rr][Mm]|[Kk][Ii][Ll][Ll]"
_SIGNAL: Final = "^([Ss][Ii][Gg])?({})$"
Cursor = Annotated[int, Field(ge=0, description="Offset in the stream, as results give it.")]

Author = Literal["agent", "user", "engine"] | None
Kind = Literal["command", "session", "user", "background"] | None
Seq = Annotated[int | None, Field(ge=0, le=2**53)]
Time = Annotated[int | None, Field(ge=0, le=2**53)]
DryRun = Annotated[bool, Field(description="Change nothing, and say what would be done.")]


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

    It begins a new conversation, or continues one whose shell has ended. For a live conversation this is `busy`.
    """

    conversation_id: ConversationId | None = Field(
        default=None,
        description="Name of the conversation: a letter or digit, then up to 127 letters, digits, '.', '_' or '-'; "
        "generated when not given.",
    )
    shell: str | None = Field(
        default=None,
        min_length=1,
        description="Path or name of the shell; by default $SHELL if it is bash, zsh or fish.",
    )
    cwd: str | None = Field(
        default=None, min_length=1, description="Directory in which the shell starts; by default the current one."
    )
    env: dict[str, str] | None = Field(default=None, description="Variables added to the environment of the shell.")
    env_from: dict[str, str] | Literal["server"] | None = Field(
        default=None,
        description="The environment from which PATH, LANG, LC_*, XDG_*, VIRTUAL_ENV, SSH_AUTH_SOCK and the like are "
        "taken: by default the caller's on this machine, over HTTP the server's. `server`: the server's; or variables.",
    )
    pagers: bool | None = Field(
        default=None,
        description="Let programs page their output; without, PAGER, GIT_PAGER and the like are cat, so that nothing "
        "waits for a key. By default for a person, and not for an agent.",
    )
    cols: Columns = 80
    rows: Rows = 24
    login: bool = Field(default=False, description="Start a login shell.")
    persist: bool | None = Field(
        default=None,
        description="Keep the shell running after the engine that opened it is closed; a server does by default, "
        "an engine of your own does not.",
    )
    answers: bool = Field(
        default=True,
        description="Answer programs that query their terminal (its type, the cursor's position and so on).",
    )
    timeout_ms: Annotated[
        int, Field(ge=0, le=MAX_TIMEOUT_MS, description="Time out if there is no prompt after so many milliseconds.")
    ] = 30_000
    sandbox: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
        description="Name of a sandbox profile, such as default: the shell runs behind that boundary, or not at all.",
    )
    source: str | None = Field(
        default=None,
        min_length=1,
        description="What the terminal shows in place of a shell on this machine: exec:program argument ... (one "
        "program without a shell; or a JSON list), ssh:[user@]host[:port], tmux:target (a pane), or "
        "container:docker/name (podman, kubectl).",
    )
    resume: Literal["never", "auto", "always"] | None = Field(
        default=None,
        description="For ssh: keep the shell if the connection breaks, and reconnect automatically: always (blockpty, "
        "or else tmux, must be installed on the other machine), auto (if one is) or never, the default.",
    )


class ListRequest(Request):
    """List the conversations of this home: first those whose shell runs, then the ended ones, the newest first."""

    filter: str | None = Field(default=None, description="Only those whose name contains this text.")


class StatusRequest(ConversationRequest):
    """Show what the shell and its terminal are doing now."""


class ExecBlockRequest(ConversationRequest):
    """Start a command as one block, and return when it has begun.

    While another block runs this is `busy`, or waits for its turn with `queue`. While an interactive session has the
    terminal it is `interactive_session_active`. To wait for the end, wait for the token PROMPT.
    """

    command: Command
    cwd: Directory = None
    queue: bool = Field(default=False, description="While another block runs, wait for its end instead of refusing.")


class ExecInteractiveRequest(ConversationRequest):
    """Start a program to talk to with send and wait_for; it is an interactive session until it ends."""

    command: Command
    cwd: Directory = None


class RunRequest(ConversationRequest):
    """Run a command as one block, wait for its end and return its output and exit status.

    It returns early, with reason `input`, when the command waits for input from the terminal. Then, and on a timeout,
    the command keeps running; the result says what to do, and has the cursor to wait from.
    """

    command: Command
    cwd: Directory = None
    timeout_ms: TimeoutMs = 30_000
    max_bytes: Annotated[
        int, Field(ge=1, le=MAX_BYTES, description="Bytes of output to return; of more than that, head and tail.")
    ] = 65_536
    view: View = "text"
    stop_at_input: bool = Field(
        default=True, description="Return when the command waits for a line, a key or a password; it keeps running."
    )


class SendRequest(ConversationRequest):
    """Write text or bytes to the terminal, exactly as given; give data or data_b64. No newline is added.

    Or type a secret that a person has stored, by its name, where the policy allows it: you never see it.

    It is for the running program. At the prompt only input of a person (author user) is accepted.
    """

    data: str | None = Field(default=None, max_length=MAX_TEXT, description="Text, sent in UTF-8.")
    data_b64: str | None = Field(
        default=None, max_length=MAX_TEXT * 4 // 3 + 4, description="Exact bytes, in base64, in place of data."
    )
    session_id: SessionId = None
    author: Literal["agent", "user"] | None = Field(
        default=None,
        description="Who types, for a caller that may be either; by default agent, or what the token says.",
    )
    secret: Secret = False
    secret_name: str | None = Field(
        default=None, min_length=1, max_length=128,
        description="Name of a stored secret of policy.toml, to be typed with Enter in place of data.",
    )  # fmt: skip
    match: InputMatch = None
    stop: InputStop = None
    timeout_ms: TimeoutMs = 30_000
    view: WaitView = "text"
    max_bytes: WaitBytes = None


class SendLineRequest(ConversationRequest):
    """Type a line into the running program: a text, and Enter. Line ends in the text are Enter too."""

    text: str = Field(default="", max_length=MAX_TEXT, description="The line; empty for Enter alone.")
    session_id: SessionId = None
    secret: Secret = False
    match: InputMatch = None
    stop: InputStop = None
    timeout_ms: TimeoutMs = 30_000
    view: WaitView = "text"
    max_bytes: WaitBytes = None


class SendKeysRequest(ConversationRequest):
    """Press keys: text with named keys in it.

    ^C is a control character. [UP] [DOWN] [LEFT] [RIGHT] [HOME] [END] [PGUP] [PGDN] [INS] [DEL] [ESC] [TAB] [ENTER]
    [BS] [SPACE] and [F1] to [F12] are keys, with C- M- S- for Ctrl, Alt and Shift: [C-UP] [M-x] [S-TAB] [C-S-LEFT].
    A newline is the Enter key. Write [[ and ^^ for a literal [ and ^. [CLICK 9,4] clicks at a column and row, and
    [CLICK "Save"] where that text stands on the screen now ([CLICK "Save" 2]: the second of it).
    """

    keys: Annotated[str, Field(max_length=65_536)] | list[Annotated[str, Field(max_length=65_536)]] = Field(
        description="Text with named keys, such as ':wq[ENTER]' or '^C'; or a list of these, typed as one."
    )
    session_id: SessionId = None
    secret: Secret = False
    match: InputMatch = None
    stop: InputStop = None
    timeout_ms: TimeoutMs = 30_000
    view: WaitView = "text"
    max_bytes: WaitBytes = None


class PasteRequest(ConversationRequest):
    """Paste text: in brackets where the program asked for that, otherwise with Enter at the line ends.

    Control characters other than tab and line ends are replaced by their pictures, so that the text cannot act as keys.
    """

    text: str = Field(max_length=MAX_TEXT, description="What is pasted.")
    session_id: SessionId = None
    secret: Secret = False
    match: InputMatch = None
    stop: InputStop = None
    timeout_ms: TimeoutMs = 30_000
    view: WaitView = "text"
    max_bytes: WaitBytes = None


class CtrlCRequest(SessionRequest):
    """Press Ctrl-C."""


class CtrlDRequest(SessionRequest):
    """Press Ctrl-D."""


class EnterRequest(SessionRequest):
    """Press Enter."""

    match: InputMatch = None
    stop: InputStop = None
    timeout_ms: TimeoutMs = 30_000
    view: WaitView = "text"
    max_bytes: WaitBytes = None


class WaitForRequest(ConversationRequest):
    """Wait until something appears or happens; what is recorded already is searched first.

    The answer depends on the record alone: the same wait from the same cursor gives the same answer later. A wait that
    ends without a match is a result with its reason, not an error.
    """

    match: Conditions = Field(
        description='A text; {"regex": "..."}; {"token": "PROMPT"} (ready for a command); {"token": "EOF"} (session or '
        'shell ended); {"token": "INPUT"} (the program waits for a line, a key or a password); {"idle_ms": n} '
        "(silence); or a list of these."
    )
    session_id: SessionId = None
    from_cursor: Cursor | None = Field(
        default=None,
        description="Where to look from; by default where the last wait ended, else where the block begins. Given, "
        "idle_ms counts silence from before this call too.",
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
    context: int = Field(default=0, ge=0, le=1000, description="Return so many lines around a match as well.")


class ReadRequest(ConversationRequest):
    """Read part of the transcript, from a cursor or of a block; the next piece begins at the result's cursor."""

    from_cursor: Cursor | None = Field(
        default=None, description="Where to read from; by default the beginning, of the block if one is given."
    )
    to_cursor: Cursor | None = Field(
        default=None, description="Where to stop at the latest; by default at the end, of the block if one is given."
    )
    block_id: str | None = Field(default=None, description="Read only the output of this block.")
    max_bytes: Annotated[int, Field(ge=1, le=MAX_BYTES, description="Bytes of the view to return at most.")] = 65_536
    view: View = "text"
    style: Literal["plain", "sgr"] = Field(
        default="plain",
        description="Of the view rendered: sgr keeps colours and styles, as SGR sequences and no other control.",
    )
    from_line: int | None = Field(
        default=None,
        ge=0,
        le=2**53,
        description="Of the view rendered: draw all of the span, at most 64 MiB, and return its lines from this number "
        "on, counted from 0. A line that is longer than max_bytes is cut.",
    )


class BlocksRequest(ConversationRequest):
    """List the blocks that have ended, oldest first; with `running`, those as well that have not."""

    filter: str | None = Field(default=None, description="Only those whose command contains this text.")
    failed: bool | None = Field(
        default=None, description="Only those whose exit status is not 0, or only those where it is."
    )
    min_duration_ms: int | None = Field(
        default=None, ge=0, le=2**53, description="Only those that took at least so many milliseconds."
    )
    cwd: str | None = Field(default=None, min_length=1, description="Only those that began there or below it.")
    author: Author = Field(default=None, description="Only those that were submitted by this one.")
    kind: Kind = Field(default=None, description="Only those of this kind.")
    order: Literal["oldest", "newest"] = Field(
        default="oldest", description="Which come first; the newest are found without reading the others."
    )
    before_seq: Seq = Field(default=None, description="Only those with a lower number, to page from the newest.")
    after_seq: Seq = Field(default=None, description="Only those with a higher number, to page from the oldest.")
    running: bool = Field(default=False, description="List blocks too that have not ended; their state is `running`.")
    measure: bool = Field(
        default=False,
        description="Give for each how many `lines` its output has, and in `screen` whether it moved the cursor or "
        "used the alternate screen, so that only `rendered` shows what was seen. Both are left out where they are not "
        "known: of outputs over 16 MiB, and of those that are not kept here.",
    )
    page: int = Field(default=0, ge=0, le=2**31, description="Which page, from 0.")
    page_size: int = Field(default=100, ge=1, le=1000, description="Blocks on a page.")


class BlockRequest(ConversationRequest):
    """Show the record of one block, running or ended."""

    block_id: str = Field(min_length=1, description="Name of the block, such as b7.")


class TimelineRequest(ConversationRequest):
    """Show a recording over its whole time: blocks, silences, sizes, control, questions, and how much was printed when.

    Each has its time, in ms after the beginning, and its cursor; both are those of a replay.
    """

    buckets: int = Field(default=600, ge=1, le=5000, description="Into how many parts the time is divided.")


class EventsRequest(ConversationRequest):
    """Return the events of a conversation in order, and then live ones as they happen."""

    from_seq: int = Field(default=0, ge=0, description="Sequence number of the first event.")
    follow: bool = Field(default=True, description="Go on with live events, else stop after the last recorded one.")


class ScreenRequest(ConversationRequest):
    """Show the screen of the terminal, now or at a cursor: a full-screen program, or the last lines of a shell."""

    format: Literal["text", "json", "ansi", "html", "svg", "agent", "annotated"] = Field(
        default="text",
        description="text: the characters; agent: the same between two lines that say size and cursor; annotated: the "
        "same, and below it what is focused, selected or highlighted; json: runs of cells with their colours; ansi: "
        "output that draws it again; html, svg: a page and a picture of it.",
    )
    since: int | None = Field(
        default=None, ge=0, description="The seqno of an earlier result; `changed` names the rows that differ since."
    )
    scrollback: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="So many lines above the screen come too, in text, json, agent and annotated.",
    )
    first_line: int | None = Field(
        default=None,
        ge=-100_000,
        le=1000,
        description="Only the lines from this one on, whatever scrollback says: 0 is the top of the screen, -1 is the "
        "line above it; in text and agent. Above the screen at most as many as set_scrollback says.",
    )
    last_line: int | None = Field(
        default=None, ge=-100_000, le=1000, description="Only the lines up to this one, counted as in first_line."
    )
    at: Cursor | None = Field(default=None, description="Show what was shown at this cursor; by default now.")
    record: bool = Field(default=False, description="Record this call: a `screen_snapshot` event names its cursor.")


class SetScrollbackRequest(ConversationRequest):
    """Set how many lines above the screen can be requested; the record does not change."""

    lines: int = Field(default=1000, ge=0, le=100_000, description="Lines above the screen at most.")


class ResizeRequest(ConversationRequest):
    """Change the size of the terminal."""

    cols: Columns
    rows: Rows


class StartCaptureRequest(ConversationRequest):
    """Start to capture the terminal as an asciicast, or describe the capture that is already running.

    It continues over restarts until stop_capture writes the file; until then the record holds all of it.
    """


class StopCaptureRequest(ConversationRequest):
    """Stop the capture and write its asciicast to the home's `exports/`; later calls describe the stopped one.

    The file is readable by its owner only, and you may delete it. It contains no nonces and no marks of the shell.
    """


class EndSessionRequest(ConversationRequest):
    """End an interactive session as gently as possible; the result says how.

    A known shell or interpreter gets `exit`, a known pager or editor gets the keys that leave it (unsaved changes are
    lost). Then Ctrl-C, SIGINT, SIGQUIT, SIGTERM and SIGKILL follow, and as the last resort a new shell. Only a new
    shell loses the directory and the variables.
    """

    session_id: SessionId = None


class EnterShellRequest(ConversationRequest):
    """Install the shell integration in a shell inside a command (ssh, su, a container): its commands become blocks."""

    shell: Literal["bash", "zsh", "fish"] | None = Field(
        default=None, description="Which shell is at the prompt; needed behind another program such as ssh."
    )
    timeout_ms: int = Field(default=10_000, ge=0, le=MAX_TIMEOUT_MS, description="How long its first prompt may take.")


class InterruptRequest(ConversationRequest):
    """Interrupt the running program with SIGINT, and stronger signals only if allowed; the result says how."""

    up_to: str = Field(
        default="INT",
        min_length=1,
        max_length=7,
        pattern=_SIGNAL.format(_INTERRUPTS),
        description="The strongest signal to go to, in the order INT, QUIT, TERM, KILL (SIGTERM as well).",
    )
    grace_ms: int = Field(default=1000, ge=0, le=60_000, description="How long to wait for a prompt after each signal.")


class ResetRequest(ConversationRequest):
    """Kill the shell and start another on a new terminal; transcript and cursors continue."""


class KillRequest(ConversationRequest):
    """Kill the shell and its foreground program: TERM, then HUP and KILL until the shell has ended.

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
    """Terminate the shell and its processes. The transcript is kept.

    Processes that have left the shell's session (setsid, a daemon) are terminated too, or keep running with `leave`;
    the result lists them.
    """

    leave: bool = Field(default=False, description="Keep processes running that have left the shell's session.")


class PutFileRequest(ConversationRequest):
    """Write a file where the shell is: on this machine or, after enter_shell, behind ssh, su or a container.

    Give data, data_b64 or local_path. The file is replaced as a whole once its digest is right; the record has its
    path, length and digest, and not what is in it. After a cut, the same call goes on there. It needs a prompt.
    """

    path: FilePath
    data: str | None = Field(default=None, max_length=MAX_FILE, description="The content, as text in UTF-8.")
    data_b64: str | None = Field(
        default=None, max_length=MAX_FILE * 4 // 3 + 4, description="The exact content, in base64, in place of data."
    )
    local_path: str | None = Field(
        default=None, min_length=1, description="A file of the engine's machine to take it from; not for agents."
    )
    mode: str | None = Field(
        default=None,
        pattern="^[0-7]{3,4}$",
        description="Permissions, in octal; by default those of the file that is there, or what the umask leaves.",
    )


class GetFileRequest(ConversationRequest):
    """Read a file where the shell is, exactly; text comes as data, anything else as data_b64.

    Secrets are redacted, and the result says so. It needs a prompt.
    """

    path: FilePath
    local_path: str | None = Field(
        default=None, min_length=1, description="A file of the engine's machine to put it in; not for agents."
    )
    max_bytes: Annotated[int, Field(ge=1, le=MAX_FILE, description="Refuse a file that is longer than this.")] = (
        4_194_304
    )
    redact: bool | None = Field(
        default=None,
        description="Redact secrets; by default as in all output. false needs allow_uncovered.",
    )


class DeleteRequest(ConversationRequest):
    """Delete an ended conversation with its transcript. This cannot be undone."""

    dry_run: DryRun = False


class PruneRequest(Request):
    """Delete conversations that were not used for a number of days, then the oldest above a total size.

    Only ended conversations are deleted, as a whole. This cannot be undone.
    """

    keep_days: int | None = Field(default=None, ge=0, le=36_500, description="Keep what was used in so many days.")
    keep_total_mb: int | None = Field(default=None, ge=0, le=10**9, description="Keep at most so many MiB in all.")
    dry_run: DryRun = False


class ExportRequest(ConversationRequest):
    """Export a conversation, a block or a span for other tools; small results as data, others as a file.

    The file is written to the home's `exports/`, readable by its owner only. You may delete it; after seven days a
    later export removes it. A typescript is always a pair of files. Nonces are redacted, and only the typescript has
    the shell's own marks. A cast of a part begins with what the screen showed.
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
        description="Redact secrets; by default as in all output. false needs an engine that allows it, and the "
        "scope admin.",
    )


_KEY: Final = "A secret of yours, at least 16 characters; it is kept nowhere."
OptionalKey = Annotated[str | None, Field(min_length=16, max_length=4096, description=_KEY)]


class VerifyRequest(Request):
    """Compare all files with what follows from stream and timeline, waits included; nothing is written.

    With a key, also check the seals that were made with it.
    """

    conversation_id: ConversationId
    key: OptionalKey = None


class RepairRequest(Request):
    """Derive everything again from stream and timeline, and report what changed; only while no shell runs."""

    conversation_id: ConversationId
    key: OptionalKey = None


class SealRequest(Request):
    """Seal the record up to now with a key, so that verify with this key finds any later change to it."""

    conversation_id: ConversationId
    key: Annotated[str, Field(min_length=16, max_length=4096, description=_KEY)]


class SearchRequest(Request):
    """Search the output and the commands of all conversations of this home, newest first.

    Every match is verified in the record, and text that is not indexed yet is scanned, so the result is complete. It is
    `partial` if time ran out or a part of a shared catalogue did not answer. A match lies within one line. Secrets on
    its line are redacted.
    """

    query: str = Field(min_length=1, max_length=1024, description="What to look for, without a line end.")
    mode: Literal["words", "phrase", "substring", "regex"] = Field(
        default="substring",
        description="words: lines that hold all the words; phrase: the words one after another; substring: the text as "
        "it is; regex: a regular expression, as in Python.",
    )
    regex: bool = Field(default=False, description="The query is a regular expression: short for mode regex.")
    ignore_case: bool | None = Field(
        default=None, description="Upper and lower case are the same; by default for words and phrases only."
    )
    context: int = Field(
        default=0, ge=0, le=1000, description="Return so many lines above and below each match in an output as well."
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
    author: Author = Field(default=None, description="Only blocks that were submitted by this one.")
    kind: Kind = Field(default=None, description="Only blocks of this kind.")
    part: Literal["any", "output", "command"] = Field(
        default="any", description="Look in the output of blocks, in their commands, or in both."
    )
    per_block: bool = Field(default=False, description="Only the newest match of every block.")
    page: str | None = Field(
        default=None, min_length=1, max_length=1024, description="`next` of an earlier result, to continue after it."
    )
    page_size: int = Field(default=100, ge=1, le=1000, description="Matches on a page.")
    timeout_ms: Annotated[
        int, Field(ge=1, le=60_000, description="Return what was found after so many milliseconds.")
    ] = 2000


class OverviewRequest(Request):
    """Show what this home has done: the latest conversations and blocks, and how many ended with each status.

    A block counts within a second after its end. The time does not depend on their number.
    """

    conversations: int = Field(default=20, ge=0, le=1000, description="Conversations at most.")
    blocks: int = Field(default=50, ge=0, le=1000, description="Blocks at most.")
    conversation_id: ConversationId | None = Field(default=None, description="Only this conversation.")
    failed: bool | None = Field(
        default=None, description="Only blocks whose exit status is not 0, or only those where it is."
    )
    before: Time = Field(default=None, description="Only blocks that began before this time, in ms since 1970.")
    timeout_ms: int = Field(
        default=2000, ge=0, le=MAX_TIMEOUT_MS, description="How long to wait for an index that is still being made."
    )


class HaltRequest(Request):
    """Have agents type nothing, in one conversation or in all, and interrupt what runs there.

    It holds until `release`, also after a restart of the server. What a person types is taken all the same.
    """

    conversation_id: ConversationId | None = Field(default=None, description="Only this conversation; by default all.")
    up_to: str = Field(
        default="INT", pattern=_SIGNAL.format(_INTERRUPTS), description="The last signal to send to what runs."
    )


class ReleaseRequest(Request):
    """Let agents type again, after `halt`. Only a person may ask for it."""

    conversation_id: ConversationId | None = Field(
        default=None, description="Only this conversation; by default what was halted in all."
    )


class RequestUserInputRequest(ConversationRequest):
    """Ask a person to take over the terminal and type, and wait until that is done.

    For a password, a second factor, a decision: what an agent cannot or should not type. Agents may type nothing
    meanwhile. The result says how it ended: done, cancelled or timeout.
    """

    message: str = Field(min_length=1, max_length=2000, description="What the person is asked to do, in plain words.")
    timeout_seconds: int = Field(default=300, ge=1, le=86_400, description="Wait for so many seconds at most.")


class TakeControlRequest(ConversationRequest):
    """Give control to a person: what agents type is refused, and cut off where it is under way.

    Only a person may ask for it. release_control hands it back.
    """

    who: str | None = Field(
        default=None, min_length=1, max_length=200, description="Name of the person; by default that of the token."
    )
    shared: bool = Field(default=False, description="Let agents type as well; other persons are refused.")
    lease: bool = Field(
        default=False,
        description="Hand control back after 30 s, unless this is called again, or a WebSocket of the conversation is "
        "open.",
    )


class ReleaseControlRequest(ConversationRequest):
    """Hand control back to agents. Only a person may ask for it, not only the one who has control."""

    cancelled: bool = Field(
        default=False, description="Say to an agent that had asked for a person that it was not done."
    )


class ApprovalsRequest(Request):
    """List pending approvals, each with the exact input, its digest and the rule that asks."""

    conversation_id: ConversationId | None = Field(default=None, description="Only this conversation.")


class _VerdictRequest(ConversationRequest):
    approval_id: str = Field(pattern=r"^a[0-9]+\.[1-9][0-9]*$", description="Which, as approvals names it.")
    digest: str = Field(
        pattern="^[0-9a-f]{64}$",
        description="Digest of what was shown, as approvals gives it; for anything else the verdict is stale.",
    )


class ApproveRequest(_VerdictRequest):
    """Approve pending input. Only a person may do that."""

    scope: Literal["once", "conversation", "always"] = Field(
        default="once",
        description="once: this; conversation: the same input in the same directory of this conversation; always: add "
        "the rule to policy.toml that approvals shows as `always`.",
    )


class DenyRequest(_VerdictRequest):
    """Deny pending input. Only a person may do that."""

    reason: str | None = Field(default=None, max_length=2000, description="Why; the agent gets it.")


class AuditRequest(Request):
    """Show who did what in this home: verdicts, changes of control, lifecycle calls, tokens at new addresses.

    Newest first. Entries have digests in place of what was typed. A token without the scope admin has to name a
    conversation.
    """

    conversation_id: ConversationId | None = Field(default=None, description="Only this conversation.")
    principal: str | None = Field(default=None, min_length=1, description="Only what was done on behalf of this one.")
    type: str | None = Field(
        default=None, min_length=1, description="Only entries of this type, such as lifecycle or token_use."
    )
    since: Time = Field(default=None, description="Only entries from this time on, in ms since 1970.")
    until: Time = Field(default=None, description="Only entries up to this time, in ms since 1970.")
    page: int | None = Field(
        default=None, ge=1, le=2**53, description="`next` of an earlier result, to continue after it."
    )
    page_size: int = Field(default=100, ge=1, le=1000, description="Entries at most.")
    verify: bool = Field(
        default=False, description="Check the whole log as well: lines that were changed, removed, added, moved or cut."
    )


class DiffRequest(ConversationRequest):
    """Compare the output of a block with another one, by default with the previous run of the same command.

    Only the first 1 MiB or 20,000 lines of an output are compared; the result says so.
    """

    block_id: str = Field(min_length=1, description="Name of the block, such as b7.")
    against: str | None = Field(
        default=None, min_length=1, description="Name of the block to compare it with; by default the previous run."
    )
    context: int = Field(default=3, ge=0, le=1000, description="Lines around each change.")
    max_bytes: int = Field(default=65_536, ge=1, le=MAX_BYTES, description="Bytes of the diff to return at most.")


class ArchiveRequest(Request):
    """Move the streams of ended conversations to an object store, and free their space here.

    BLOCKPTY_ARCHIVE_URL of the engine names the store. The conversations are listed as before, and a stream is fetched
    when it is read.
    """

    conversation_id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$",
        description="Only this one; by default all that have ended.",
    )
    keep_days: int = Field(default=0, ge=0, le=36_500, description="Of all, keep here what was used in so many days.")
    dry_run: DryRun = False


class ImportRecordingRequest(Request):
    """Make a conversation from a recording: asciicast 1, 2 or 3, or the pair of files that script(1) writes.

    You can read, export, replay and verify it; you cannot type into it. A block begins at each marker, or as in a
    typescript that blockpty exported; a file without any is one block. Recorded input is left out.
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
