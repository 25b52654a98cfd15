"""One request of every operation with every parameter given and none at its default, and a result for each.

Shared by the tests of the table, its schema and the command line. `RecordingEngine` answers like an engine and notes
which method was called with what.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Final, Self

from blockpty.errors import BlockptyError
from blockpty.model.block import Block
from blockpty.model.events import Event
from blockpty.model.results import (
    Activity,
    ApprovalsResult,
    ArchiveResult,
    AuditResult,
    BlockResult,
    BlocksResult,
    CaptureResult,
    CloseResult,
    ControlChange,
    ControlResult,
    ConversationInfo,
    DeleteResult,
    DiffResult,
    DoneResult,
    ExecResult,
    ExportResult,
    FoundBlock,
    GetFileResult,
    HaltResult,
    ImportResult,
    ListResult,
    OpenResult,
    OverviewResult,
    PruneResult,
    PutFileResult,
    ReadResult,
    RepairResult,
    Result,
    RunResult,
    ScreenResult,
    ScrollbackResult,
    SealResult,
    SearchHit,
    SearchResult,
    SendResult,
    SessionResult,
    Silence,
    StatusResult,
    TimelineBlock,
    TimelineQuestion,
    TimelineResize,
    TimelineResult,
    UserInputResult,
    VerdictResult,
    VerifyResult,
    WaitResult,
)

BLOCK: Final = Block(
    block_id="b7", seq=7, kind="command", cmd="make test", cwd="/", cwd_b64="Lw==", ts_begin=1_700_000_000_000,
    ts_end=1_700_000_001_000, duration_ms=1000, state="ended", exit_status=0, signal=None, span=(10, 20),
    out_path="blocks/7_1700000000000.out", out_bytes=10, parts=1, author="agent",
)  # fmt: skip

PARAMS: Final[dict[str, dict[str, Any]]] = {
    "open": {
        "conversation_id": "c1", "shell": "zsh", "cwd": "/", "env": {"A": "1"}, "env_from": {"B": "2"}, "pagers": True,
        "cols": 100, "rows": 30, "login": True,
        "persist": True, "answers": False, "timeout_ms": 5, "sandbox": "default", "source": "exec:true",
        "resume": "never",
    },
    "list": {"filter": "c"},
    "status": {"conversation_id": "c1"},
    "exec_block": {"conversation_id": "c1", "command": "make", "cwd": "/", "queue": True},
    "exec_interactive": {"conversation_id": "c1", "command": "python3", "cwd": "/"},
    "run": {
        "conversation_id": "c1", "command": "make", "cwd": "/", "timeout_ms": 5, "max_bytes": 6,
        "view": "rendered", "stop_at_input": False,
    },
    "send": {
        "conversation_id": "c1", "data": "x", "data_b64": "eA==", "session_id": "s7", "author": "user", "secret": True,
        "secret_name": "deploy-key", "match": ["x", {"token": "PROMPT"}],
        "stop": "y", "timeout_ms": 5, "view": "ansi", "max_bytes": 6,
    },
    "send_line": {
        "conversation_id": "c1", "text": "x", "session_id": "s7", "secret": True, "match": ["x", {"token": "PROMPT"}],
        "stop": "y", "timeout_ms": 5, "view": "ansi", "max_bytes": 6,
    },
    "send_keys": {
        "conversation_id": "c1", "keys": "^C", "session_id": "s7", "secret": True, "match": ["x", {"token": "PROMPT"}],
        "stop": "y", "timeout_ms": 5, "view": "ansi", "max_bytes": 6,
    },
    "paste": {
        "conversation_id": "c1", "text": "x", "session_id": "s7", "secret": True, "match": ["x", {"token": "PROMPT"}],
        "stop": "y", "timeout_ms": 5, "view": "ansi", "max_bytes": 6,
    },
    "ctrl_c": {"conversation_id": "c1", "session_id": "s7"},
    "ctrl_d": {"conversation_id": "c1", "session_id": "s7"},
    "enter": {
        "conversation_id": "c1", "session_id": "s7", "match": ["x", {"token": "PROMPT"}],
        "stop": "y", "timeout_ms": 5, "view": "ansi", "max_bytes": 6,
    },
    "wait_for": {
        "conversation_id": "c1", "match": [{"regex": "x"}, "y"], "session_id": "s7", "from_cursor": 3, "timeout_ms": 5,
        "max_bytes": 6, "stop": {"token": "EOF"}, "view": "ansi", "echo": True, "context": 1,
    },
    "read": {
        "conversation_id": "c1", "from_cursor": 3, "to_cursor": 9, "block_id": "b7", "max_bytes": 6, "view": "rendered",
        "style": "sgr", "from_line": 2,
    },
    "blocks": {
        "conversation_id": "c1", "filter": "make", "failed": True, "min_duration_ms": 4, "cwd": "/", "author": "agent",
        "kind": "command", "order": "newest", "before_seq": 9, "after_seq": 2, "running": True, "measure": True,
        "page": 2, "page_size": 3,
    },
    "block": {"conversation_id": "c1", "block_id": "b7"},
    "diff": {"conversation_id": "c1", "block_id": "b7", "against": "b3", "context": 1, "max_bytes": 6},
    "timeline": {"conversation_id": "c1", "buckets": 3},
    "events": {"conversation_id": "c1", "from_seq": 3, "follow": False},
    "screen": {"conversation_id": "c1", "format": "agent", "since": 4, "scrollback": 5, "first_line": -5,
               "last_line": 3, "at": 7, "record": True},
    "resize": {"conversation_id": "c1", "cols": 100, "rows": 30},
    "set_scrollback": {"conversation_id": "c1", "lines": 50},
    "start_capture": {"conversation_id": "c1"},
    "stop_capture": {"conversation_id": "c1"},
    "end_session": {"conversation_id": "c1", "session_id": "s7"},
    "enter_shell": {"conversation_id": "c1", "shell": "zsh", "timeout_ms": 5},
    "interrupt": {"conversation_id": "c1", "up_to": "KILL", "grace_ms": 5},
    "reset": {"conversation_id": "c1"},
    "kill": {"conversation_id": "c1", "signal": "HUP"},
    "close": {"conversation_id": "c1", "leave": True},
    "put_file": {
        "conversation_id": "c1", "path": "x", "data": "y", "data_b64": "eQ==", "local_path": "/l", "mode": "600",
    },
    "get_file": {"conversation_id": "c1", "path": "x", "local_path": "/l", "max_bytes": 6, "redact": False},
    "delete": {"conversation_id": "c1", "dry_run": True},
    "archive": {"conversation_id": "c1", "keep_days": 30, "dry_run": True},
    "prune": {"keep_days": 30, "keep_total_mb": 100, "dry_run": True},
    "search": {
        "query": "x", "mode": "words", "regex": True, "ignore_case": True, "context": 2, "conversation_id": "c1",
        "cwd": "/", "exit_status": 1, "failed": True, "since": 3, "until": 4, "min_duration_ms": 5, "author": "user",
        "kind": "session", "part": "output", "per_block": True, "page": "x", "page_size": 6, "timeout_ms": 7,
    },
    "halt": {"conversation_id": "c1", "up_to": "KILL"},
    "release": {"conversation_id": "c1"},
    "request_user_input": {"conversation_id": "c1", "message": "type the code", "timeout_seconds": 5},
    "take_control": {"conversation_id": "c1", "who": "ann", "shared": True, "lease": True},
    "release_control": {"conversation_id": "c1", "cancelled": True},
    "approvals": {"conversation_id": "c1"},
    "approve": {"conversation_id": "c1", "approval_id": "a1.1", "digest": "0" * 64, "scope": "always"},
    "deny": {"conversation_id": "c1", "approval_id": "a1.1", "digest": "0" * 64, "reason": "not here"},
    "overview": {
        "conversations": 1, "blocks": 2, "conversation_id": "c1", "failed": True, "before": 3, "timeout_ms": 4,
    },
    "audit": {
        "conversation_id": "c1", "principal": "owner", "type": "lifecycle", "since": 3, "until": 4, "page": 9,
        "page_size": 6, "verify": True,
    },
    "export": {
        "conversation_id": "c1", "format": "cast3", "from_cursor": 3, "to_cursor": 20, "block_id": "b7", "max_bytes": 6,
        "redact": True,
    },
    "import_recording": {"path": "/r/demo.cast", "conversation_id": "c1", "timing": "/r/demo.timing"},
    "verify": {"conversation_id": "c1", "key": "0123456789abcdef"},
    "repair": {"conversation_id": "c1", "key": "0123456789abcdef"},
    "seal": {"conversation_id": "c1", "key": "0123456789abcdef"},
}  # fmt: skip

OPENED: Final = OpenResult("c1", "c1.1", 42, 9, "idle")
INFO: Final = ConversationInfo("c1", True, "idle", "bash", "/", 42, 9, 7, 1_700_000_000_000)
STATUS: Final = StatusResult(
    conversation_id="c1", mode="idle", tty="at_prompt", integrity="ok", integrity_reason=None, active_session_id=None,
    active_block_id=None, shell_id="c1.1", shell="bash", pid=42, cursor=9, cols=80, rows=24, cwd="/", control="agent",
    foreground=None, transport="splice", owner=True, exit=None,
    next_seq=5,
)  # fmt: skip

HIT: Final = SearchHit(
    conversation_id="c1", block_id="b7", seq=7, part="output", span=(12, 14), cursor=12, snippet="an ok line",
    snippet_span=(3, 5), cmd="make test", cwd="/", kind="command", author="agent", state="ended", exit_status=0,
    ts_begin=1_700_000_000_000, duration_ms=1000, elsewhere="https://other:8443",
)  # fmt: skip

APPROVAL: Final[dict[str, Any]] = {
    "approval_id": "a1.1", "conversation_id": "c1", "principal": "owner/mcp", "operation": "exec_block",
    "sentence": "It publishes commits.", "text": "git push", "digest": "0a" * 32, "rule": "push", "cwd": "/srv",
    "block_id": "b7", "requested_ts": 1_700_000_000_000, "expires_ts": 1_700_000_300_000,
    "always": '[[rule]]\nname = "allowed"\n',
}  # fmt: skip
RESULTS: Final[dict[str, Result]] = {
    "open": OPENED,
    "list": ListResult([INFO]),
    "status": STATUS,
    "exec_block": ExecResult("b7", 7, 1_700_000_000_000, 9),
    "exec_interactive": SessionResult("s7", "b7", 1_700_000_000_000, 9),
    "run": RunResult(BLOCK, "ok\n", 3, False, False, "prompt", 20),
    **dict.fromkeys(("send", "send_line", "send_keys", "paste", "ctrl_c", "ctrl_d", "enter"), SendResult(9, 1)),
    "wait_for": WaitResult(True, "matched", 20, 0, "port 1", {"1": "1"}, (14, 20), "block_running", "running"),
    "read": ReadResult("data", 14, False),
    "blocks": BlocksResult([BLOCK], 1, 20),
    "block": BlockResult(BLOCK, 20),
    "screen": ScreenResult("text", 20, "text", 80, 24, (3, 1), True, False, "off", "title", 20, "0a-0b-0c", [0, 1]),
    "set_scrollback": ScrollbackResult(20, 50),
    **dict.fromkeys(("resize", "end_session", "enter_shell", "interrupt", "kill"), DoneResult(20, "exit")),
    "reset": OPENED,
    "close": CloseResult(20, {"status": 0, "signal": None}, [{"pid": 7, "command": "sleep 9", "ended": True}]),
    **dict.fromkeys(("start_capture", "stop_capture"), CaptureResult(20, "/h/exports/c1.cast", 9, 1.5)),
    "put_file": PutFileResult(1, "0a" * 32, 20, "direct"),
    "get_file": GetFileResult(1, "0a" * 32, "y", None, 20, "terminal", True),
    "delete": DeleteResult(20, 4096),
    "archive": ArchiveResult(["c1"], 4096),
    "prune": PruneResult(["c1"], 4096, 8192),
    "search": SearchResult([HIT], "eA", True, ["shard2"]),
    "diff": DiffResult(BLOCK, BLOCK, False, "--- b3\n+++ b7\n@@ -1 +1 @@\n-a\n+b\n", True, True, 20),
    "timeline": TimelineResult(
        1_700_000_000_000, 9000, 10, 30, [3, 0, 17],
        [TimelineBlock("b7", 7, "command", "agent", "make", "ended", 0, None, 1, 2, 10, 20)],
        [Silence(2, 8000, 20)], [TimelineResize(0, 10, 80, 24, False)], [ControlChange(5, 20, "user", "ann", None)],
        [TimelineQuestion(6, 20, "approval_decided", "a1.1", "denied")], {"blocks": 4},
    ),
    "overview": OverviewResult(
        [Activity("c1", True, 7, 1, 1_700_000_000_000, BLOCK)],
        [FoundBlock("c1", BLOCK)],
        {"0": 6, "unknown": 1},
        1,
        7,
        True,
    ),
    **dict.fromkeys(("halt", "release"), HaltResult(False, [{"conversation_id": "c1", "how": "SIGINT"}])),
    "request_user_input": UserInputResult("done", 20),
    **dict.fromkeys(("take_control", "release_control"), ControlResult("c1", "user", "ann", 3, None, 20)),
    "approvals": ApprovalsResult([APPROVAL]),
    **dict.fromkeys(("approve", "deny"), VerdictResult("a1.1", "approved", "once")),
    "audit": AuditResult(
        [{"format": 1, "seq": 8, "ts": 3, "type": "lifecycle", "principal": "owner", "conversation_id": "c1"}],
        8, [], "0" * 32, 1, 2,
    ),
    "export": ExportResult(20, "cast3", (3, 20), 9, "{}\n"),
    "import_recording": ImportResult("c1", 20, "asciicast-2", 20, 1.5, 2),
    "verify": VerifyResult(True, 20, 3, 1, 0, [], [], [0, 20], "0" * 32, [20, 300], 20),
    "repair": RepairResult(True, [{"where": "events.jsonl", "message": "ends at byte 9"}]),
    "seal": SealResult(20, "0" * 32),
}

EVENTS: Final = (
    Event(3, 1_700_000_000_000, 9, "prompt", {"exit_status": 0, "cwd": "/"}),
    Event(4, 1_700_000_000_001, 20, "agent_block_end", {"block_id": "b7", "block": BLOCK.to_dict()}),
)


class RecordingEngine:
    """Answers with `results`; an error among them is raised."""

    def __init__(self, results: dict[str, Result | BlockptyError] | None = None) -> None:
        self.results: dict[str, Result | BlockptyError] = {**RESULTS, **(results or {})}
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.home: str | None = None
        self.closed = False
        self.opened = OPENED

    def __call__(self, home: str | None) -> Self:
        self.home = home
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed = True

    async def open(self, *args: Any, **kwargs: Any) -> Self:
        self._answer("open", args, kwargs)
        return self

    async def conversation(self, *args: Any, **kwargs: Any) -> Self:
        self.calls.append(("conversation", args, kwargs))
        return self

    async def events(self, *args: Any, **kwargs: Any) -> AsyncIterator[Event]:
        self.calls.append(("events", args, kwargs))
        for event in EVENTS:
            yield event

    def __getattr__(self, name: str) -> Any:
        async def method(*args: Any, **kwargs: Any) -> Result:
            return self._answer(name, args, kwargs)

        return method

    def _answer(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result:
        self.calls.append((name, args, kwargs))
        result = self.results[name]
        if isinstance(result, BlockptyError):
            raise result
        return result


C1 = {"conversation_id": "c1"}
# operation, parameters, the parameter that the message names
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    # missing and unknown
    ("status", {}, "conversation_id"),
    ("run", {**C1}, "command"),
    ("wait_for", {**C1}, "match"),
    ("resize", {**C1, "cols": 80}, "rows"),
    ("status", {**C1, "verbose": True}, "verbose"),
    ("open", {"size": [80, 24]}, "size"),
    # nothing is converted
    ("resize", {**C1, "cols": "80", "rows": 24}, "cols"),
    ("resize", {**C1, "cols": 80.0, "rows": 24}, "cols"),
    ("resize", {**C1, "cols": True, "rows": 24}, "cols"),
    ("exec_block", {**C1, "command": "x", "queue": 1}, "queue"),
    ("exec_block", {**C1, "command": "x", "queue": "true"}, "queue"),
    ("exec_block", {**C1, "command": None}, "command"),
    ("exec_block", {**C1, "command": ["ls"]}, "command"),
    ("send", {**C1, "data": b"bytes"}, "data"),
    ("open", {"env": {"A": 1}}, "env.A"),
    ("open", {"env": ["A=1"]}, "env"),
    # bounds
    ("resize", {**C1, "cols": 0, "rows": 24}, "cols"),
    ("resize", {**C1, "cols": 80, "rows": 1001}, "rows"),
    ("open", {"cols": 1001}, "cols"),
    ("run", {**C1, "command": "x", "timeout_ms": -1}, "timeout_ms"),
    ("run", {**C1, "command": "x", "timeout_ms": 3_600_001}, "timeout_ms"),
    ("run", {**C1, "command": "x", "max_bytes": 0}, "max_bytes"),
    ("read", {**C1, "max_bytes": 64 * 1024 * 1024 + 1}, "max_bytes"),
    ("read", {**C1, "from_cursor": -1}, "from_cursor"),
    ("wait_for", {**C1, "match": "x", "max_bytes": 0}, "max_bytes"),
    ("blocks", {**C1, "page": -1}, "page"),
    ("blocks", {**C1, "page_size": 1001}, "page_size"),
    ("events", {**C1, "from_seq": -1}, "from_seq"),
    ("interrupt", {**C1, "grace_ms": 60_001}, "grace_ms"),
    ("exec_block", {**C1, "command": "x" * (16 * 1024 * 1024 + 1)}, "command"),
    # choices
    ("read", {**C1, "view": "html"}, "view"),
    ("wait_for", {**C1, "match": "x", "view": "html"}, "view"),
    ("kill", {**C1, "signal": "SIGUSR1"}, "signal"),
    ("interrupt", {**C1, "up_to": "STOP"}, "up_to"),
    ("send", {**C1, "data": "x", "author": "engine"}, "author"),
    # names
    *(
        ("status", {"conversation_id": name}, "conversation_id")
        for name in ("", "../x", "a/b", ".x", "-x", "x\n", "ü", "x" * 129, 7)
    ),
]
