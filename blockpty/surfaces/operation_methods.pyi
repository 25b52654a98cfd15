# Written by tools/gen_reference from the methods of Engine and Conversation. Do not edit.

import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from blockpty.api.opening import OpenCall
from blockpty.model.conditions import Match
from blockpty.model.events import Event
from blockpty.model.results import (
    ApprovalsResult,
    ArchiveResult,
    AuditResult,
    BlockResult,
    BlocksResult,
    CaptureResult,
    CloseResult,
    ControlResult,
    DeleteResult,
    DiffResult,
    DoneResult,
    ExecResult,
    ExportResult,
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
    RunResult,
    ScreenResult,
    ScrollbackResult,
    SealResult,
    SearchResult,
    SendResult,
    SessionResult,
    StatusResult,
    TimelineResult,
    UserInputResult,
    VerdictResult,
    VerifyResult,
    WaitResult,
)
from blockpty.surfaces.client import RemoteConversation
from blockpty.sync import SyncConversation

class EngineOperations:
    def open(
        self,
        conversation_id: str | None = None,
        *,
        shell: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_from: Mapping[str, str] | str | None = None,
        pagers: bool | None = None,
        cols: int = 80,
        rows: int = 24,
        login: bool = False,
        persist: bool | None = None,
        answers: bool = True,
        timeout_ms: int = 30000,
        sandbox: str | None = None,
        source: str | None = None,
        resume: str | None = None,
        timeout: float | None = None,
    ) -> OpenCall[RemoteConversation]: ...
    async def list(self, filter: str | None = None) -> ListResult: ...
    async def prune(
        self,
        *,
        keep_days: int | None = None,
        keep_total_mb: int | None = None,
        dry_run: bool = False,
    ) -> PruneResult: ...
    async def archive(
        self,
        conversation_id: str | None = None,
        *,
        keep_days: int = 0,
        dry_run: bool = False,
    ) -> ArchiveResult: ...
    async def halt(self, conversation_id: str | None = None, *, up_to: str = "INT") -> HaltResult: ...
    async def release(self, conversation_id: str | None = None) -> HaltResult: ...
    async def approvals(self, conversation_id: str | None = None) -> ApprovalsResult: ...
    async def search(
        self,
        query: str,
        *,
        mode: str = "substring",
        regex: bool = False,
        ignore_case: bool | None = None,
        context: int = 0,
        conversation_id: str | None = None,
        cwd: str | None = None,
        exit_status: int | None = None,
        failed: bool | None = None,
        since: int | None = None,
        until: int | None = None,
        min_duration_ms: int | None = None,
        author: str | None = None,
        kind: str | None = None,
        part: str = "any",
        per_block: bool = False,
        page: str | None = None,
        page_size: int = 100,
        timeout_ms: int = 2000,
        timeout: float | None = None,
    ) -> SearchResult: ...
    async def overview(
        self,
        *,
        conversations: int = 20,
        blocks: int = 50,
        conversation_id: str | None = None,
        failed: bool | None = None,
        before: int | None = None,
        timeout_ms: int = 2000,
        timeout: float | None = None,
    ) -> OverviewResult: ...
    async def audit(
        self,
        *,
        conversation_id: str | None = None,
        principal: str | None = None,
        type: str | None = None,
        since: int | None = None,
        until: int | None = None,
        page: int | None = None,
        page_size: int = 100,
        verify: bool = False,
    ) -> AuditResult: ...
    async def import_recording(
        self,
        path: str | os.PathLike[str],
        conversation_id: str | None = None,
        *,
        timing: str | os.PathLike[str] | None = None,
    ) -> ImportResult: ...
    async def verify(self, conversation_id: str, *, key: str | None = None) -> VerifyResult: ...
    async def repair(self, conversation_id: str, *, key: str | None = None) -> RepairResult: ...
    async def seal(self, conversation_id: str, key: str) -> SealResult: ...

class ConversationOperations:
    async def status(self) -> StatusResult: ...
    async def exec_block(self, command: str, *, cwd: str | None = None, queue: bool = False) -> ExecResult: ...
    async def exec_interactive(self, command: str, *, cwd: str | None = None) -> SessionResult: ...
    async def run(
        self,
        command: str,
        *,
        cwd: str | None = None,
        timeout_ms: int = 30000,
        max_bytes: int = 65536,
        view: str = "text",
        stop_at_input: bool = True,
        timeout: float | None = None,
        check: bool = False,
    ) -> RunResult: ...
    async def send(
        self,
        data: str | bytes | None = None,
        *,
        data_b64: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        secret: bool = False,
        secret_name: str | None = None,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult: ...
    async def send_line(
        self,
        text: str = "",
        *,
        session_id: str | None = None,
        secret: bool = False,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult: ...
    async def send_keys(
        self,
        keys: str | Sequence[str],
        *,
        session_id: str | None = None,
        secret: bool = False,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult: ...
    async def paste(
        self,
        text: str,
        *,
        session_id: str | None = None,
        secret: bool = False,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult: ...
    async def ctrl_c(self, *, session_id: str | None = None) -> SendResult: ...
    async def ctrl_d(self, *, session_id: str | None = None) -> SendResult: ...
    async def enter(
        self,
        *,
        session_id: str | None = None,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult: ...
    async def wait_for(
        self,
        match: Match,
        *,
        session_id: str | None = None,
        from_cursor: int | None = None,
        timeout_ms: int = 30000,
        max_bytes: int | None = None,
        stop: Match | None = None,
        view: str = "text",
        echo: bool = False,
        context: int = 0,
        timeout: float | None = None,
    ) -> WaitResult: ...
    async def expect(
        self,
        match: Match,
        *,
        session_id: str | None = None,
        from_cursor: int | None = None,
        timeout_ms: int = 30000,
        max_bytes: int | None = None,
        stop: Match | None = None,
        view: str = "text",
        echo: bool = False,
        context: int = 0,
        timeout: float | None = None,
    ) -> WaitResult: ...
    async def read(
        self,
        from_cursor: int | None = None,
        *,
        to_cursor: int | None = None,
        block_id: str | None = None,
        max_bytes: int = 65536,
        view: str = "text",
        style: str = "plain",
        from_line: int | None = None,
    ) -> ReadResult: ...
    async def blocks(
        self,
        filter: str | None = None,
        *,
        failed: bool | None = None,
        min_duration_ms: int | None = None,
        cwd: str | None = None,
        author: str | None = None,
        kind: str | None = None,
        order: str = "oldest",
        before_seq: int | None = None,
        after_seq: int | None = None,
        running: bool = False,
        measure: bool = False,
        page: int = 0,
        page_size: int = 100,
    ) -> BlocksResult: ...
    async def block(self, block_id: str) -> BlockResult: ...
    async def diff(
        self,
        block_id: str,
        against: str | None = None,
        *,
        context: int = 3,
        max_bytes: int = 65536,
    ) -> DiffResult: ...
    async def timeline(self, buckets: int = 600) -> TimelineResult: ...
    def events(self, from_seq: int = 0, *, follow: bool = True) -> AsyncIterator[Event]: ...
    async def screen(
        self,
        *,
        format: str = "text",
        since: int | None = None,
        scrollback: int = 0,
        first_line: int | None = None,
        last_line: int | None = None,
        at: int | None = None,
        record: bool = False,
    ) -> ScreenResult: ...
    async def resize(self, cols: int, rows: int) -> DoneResult: ...
    async def set_scrollback(self, lines: int = 1000) -> ScrollbackResult: ...
    async def start_capture(self) -> CaptureResult: ...
    async def stop_capture(self) -> CaptureResult: ...
    async def end_session(self, session_id: str | None = None) -> DoneResult: ...
    async def enter_shell(
        self,
        shell: str | None = None,
        *,
        timeout_ms: int = 10000,
        timeout: float | None = None,
    ) -> DoneResult: ...
    async def interrupt(self, *, up_to: str = "INT", grace_ms: int = 1000) -> DoneResult: ...
    async def reset(self) -> OpenResult: ...
    async def kill(self, *, signal: str = "TERM") -> DoneResult: ...
    async def close(self, *, leave: bool = False) -> CloseResult: ...
    async def put_file(
        self,
        path: str,
        data: str | bytes | None = None,
        *,
        data_b64: str | None = None,
        local_path: str | None = None,
        mode: str | None = None,
    ) -> PutFileResult: ...
    async def get_file(
        self,
        path: str,
        local_path: str | None = None,
        *,
        max_bytes: int = 4194304,
        redact: bool | None = None,
    ) -> GetFileResult: ...
    async def delete(self, *, dry_run: bool = False) -> DeleteResult: ...
    async def request_user_input(self, message: str, *, timeout_seconds: int = 300) -> UserInputResult: ...
    async def take_control(
        self,
        who: str | None = None,
        *,
        shared: bool = False,
        lease: bool = False,
    ) -> ControlResult: ...
    async def release_control(self, *, cancelled: bool = False) -> ControlResult: ...
    async def approve(self, approval_id: str, digest: str, *, scope: str = "once") -> VerdictResult: ...
    async def deny(self, approval_id: str, digest: str, *, reason: str | None = None) -> VerdictResult: ...
    async def export(
        self,
        format: str = "cast",
        *,
        from_cursor: int | None = None,
        to_cursor: int | None = None,
        block_id: str | None = None,
        max_bytes: int = 65536,
        redact: bool | None = None,
    ) -> ExportResult: ...
    async def verify(self, *, key: str | None = None) -> VerifyResult: ...
    async def repair(self, *, key: str | None = None) -> RepairResult: ...
    async def seal(self, key: str) -> SealResult: ...

class SyncEngineOperations:
    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        session_limit: int = 15,
        persist: bool = False,
        durability: str = "interval",
        redact: bool = True,
        allow_uncovered: bool = False,
        process_limit: int = 4096,
        shell_nice: int = 10,
        idle_timeout_seconds: float | None = None,
        keep_days: int | None = None,
        keep_total_mb: int | None = None,
        keep_conversation_mb: int | None = None,
    ) -> None: ...
    def open(
        self,
        conversation_id: str | None = None,
        *,
        shell: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_from: Mapping[str, str] | str | None = None,
        pagers: bool | None = None,
        cols: int = 80,
        rows: int = 24,
        login: bool = False,
        persist: bool | None = None,
        answers: bool = True,
        timeout_ms: int = 30000,
        sandbox: str | None = None,
        source: str | None = None,
        resume: str | None = None,
        timeout: float | None = None,
    ) -> SyncConversation: ...
    def list(self, filter: str | None = None) -> ListResult: ...
    def prune(
        self,
        *,
        keep_days: int | None = None,
        keep_total_mb: int | None = None,
        dry_run: bool = False,
    ) -> PruneResult: ...
    def archive(
        self,
        conversation_id: str | None = None,
        *,
        keep_days: int = 0,
        dry_run: bool = False,
    ) -> ArchiveResult: ...
    def halt(self, conversation_id: str | None = None, *, up_to: str = "INT") -> HaltResult: ...
    def release(self, conversation_id: str | None = None) -> HaltResult: ...
    def approvals(self, conversation_id: str | None = None) -> ApprovalsResult: ...
    def search(
        self,
        query: str,
        *,
        mode: str = "substring",
        regex: bool = False,
        ignore_case: bool | None = None,
        context: int = 0,
        conversation_id: str | None = None,
        cwd: str | None = None,
        exit_status: int | None = None,
        failed: bool | None = None,
        since: int | None = None,
        until: int | None = None,
        min_duration_ms: int | None = None,
        author: str | None = None,
        kind: str | None = None,
        part: str = "any",
        per_block: bool = False,
        page: str | None = None,
        page_size: int = 100,
        timeout_ms: int = 2000,
        timeout: float | None = None,
    ) -> SearchResult: ...
    def overview(
        self,
        *,
        conversations: int = 20,
        blocks: int = 50,
        conversation_id: str | None = None,
        failed: bool | None = None,
        before: int | None = None,
        timeout_ms: int = 2000,
        timeout: float | None = None,
    ) -> OverviewResult: ...
    def audit(
        self,
        *,
        conversation_id: str | None = None,
        principal: str | None = None,
        type: str | None = None,
        since: int | None = None,
        until: int | None = None,
        page: int | None = None,
        page_size: int = 100,
        verify: bool = False,
    ) -> AuditResult: ...
    def import_recording(
        self,
        path: str | os.PathLike[str],
        conversation_id: str | None = None,
        *,
        timing: str | os.PathLike[str] | None = None,
    ) -> ImportResult: ...
    def verify(self, conversation_id: str, *, key: str | None = None) -> VerifyResult: ...
    def repair(self, conversation_id: str, *, key: str | None = None) -> RepairResult: ...
    def seal(self, conversation_id: str, key: str) -> SealResult: ...

class SyncConversationOperations:
    def status(self) -> StatusResult: ...
    def exec_block(self, command: str, *, cwd: str | None = None, queue: bool = False) -> ExecResult: ...
    def exec_interactive(self, command: str, *, cwd: str | None = None) -> SessionResult: ...
    def run(
        self,
        command: str,
        *,
        cwd: str | None = None,
        timeout_ms: int = 30000,
        max_bytes: int = 65536,
        view: str = "text",
        stop_at_input: bool = True,
        timeout: float | None = None,
        check: bool = False,
    ) -> RunResult: ...
    def send(
        self,
        data: str | bytes | None = None,
        *,
        data_b64: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        secret: bool = False,
        secret_name: str | None = None,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult: ...
    def send_line(
        self,
        text: str = "",
        *,
        session_id: str | None = None,
        secret: bool = False,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult: ...
    def send_keys(
        self,
        keys: str | Sequence[str],
        *,
        session_id: str | None = None,
        secret: bool = False,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult: ...
    def paste(
        self,
        text: str,
        *,
        session_id: str | None = None,
        secret: bool = False,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult: ...
    def ctrl_c(self, *, session_id: str | None = None) -> SendResult: ...
    def ctrl_d(self, *, session_id: str | None = None) -> SendResult: ...
    def enter(
        self,
        *,
        session_id: str | None = None,
        match: Match | None = None,
        stop: Match | None = None,
        timeout_ms: int = 30000,
        view: str = "text",
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> SendResult: ...
    def wait_for(
        self,
        match: Match,
        *,
        session_id: str | None = None,
        from_cursor: int | None = None,
        timeout_ms: int = 30000,
        max_bytes: int | None = None,
        stop: Match | None = None,
        view: str = "text",
        echo: bool = False,
        context: int = 0,
        timeout: float | None = None,
    ) -> WaitResult: ...
    def expect(
        self,
        match: Match,
        *,
        session_id: str | None = None,
        from_cursor: int | None = None,
        timeout_ms: int = 30000,
        max_bytes: int | None = None,
        stop: Match | None = None,
        view: str = "text",
        echo: bool = False,
        context: int = 0,
        timeout: float | None = None,
    ) -> WaitResult: ...
    def read(
        self,
        from_cursor: int | None = None,
        *,
        to_cursor: int | None = None,
        block_id: str | None = None,
        max_bytes: int = 65536,
        view: str = "text",
        style: str = "plain",
        from_line: int | None = None,
    ) -> ReadResult: ...
    def blocks(
        self,
        filter: str | None = None,
        *,
        failed: bool | None = None,
        min_duration_ms: int | None = None,
        cwd: str | None = None,
        author: str | None = None,
        kind: str | None = None,
        order: str = "oldest",
        before_seq: int | None = None,
        after_seq: int | None = None,
        running: bool = False,
        measure: bool = False,
        page: int = 0,
        page_size: int = 100,
    ) -> BlocksResult: ...
    def block(self, block_id: str) -> BlockResult: ...
    def diff(
        self,
        block_id: str,
        against: str | None = None,
        *,
        context: int = 3,
        max_bytes: int = 65536,
    ) -> DiffResult: ...
    def timeline(self, buckets: int = 600) -> TimelineResult: ...
    def events(self, from_seq: int = 0, *, follow: bool = True) -> Iterator[Event]: ...
    def screen(
        self,
        *,
        format: str = "text",
        since: int | None = None,
        scrollback: int = 0,
        first_line: int | None = None,
        last_line: int | None = None,
        at: int | None = None,
        record: bool = False,
    ) -> ScreenResult: ...
    def resize(self, cols: int, rows: int) -> DoneResult: ...
    def set_scrollback(self, lines: int = 1000) -> ScrollbackResult: ...
    def start_capture(self) -> CaptureResult: ...
    def stop_capture(self) -> CaptureResult: ...
    def end_session(self, session_id: str | None = None) -> DoneResult: ...
    def enter_shell(
        self,
        shell: str | None = None,
        *,
        timeout_ms: int = 10000,
        timeout: float | None = None,
    ) -> DoneResult: ...
    def interrupt(self, *, up_to: str = "INT", grace_ms: int = 1000) -> DoneResult: ...
    def reset(self) -> OpenResult: ...
    def kill(self, *, signal: str = "TERM") -> DoneResult: ...
    def close(self, *, leave: bool = False) -> CloseResult: ...
    def put_file(
        self,
        path: str,
        data: str | bytes | None = None,
        *,
        data_b64: str | None = None,
        local_path: str | None = None,
        mode: str | None = None,
    ) -> PutFileResult: ...
    def get_file(
        self,
        path: str,
        local_path: str | None = None,
        *,
        max_bytes: int = 4194304,
        redact: bool | None = None,
    ) -> GetFileResult: ...
    def delete(self, *, dry_run: bool = False) -> DeleteResult: ...
    def request_user_input(self, message: str, *, timeout_seconds: int = 300) -> UserInputResult: ...
    def take_control(self, who: str | None = None, *, shared: bool = False, lease: bool = False) -> ControlResult: ...
    def release_control(self, *, cancelled: bool = False) -> ControlResult: ...
    def approve(self, approval_id: str, digest: str, *, scope: str = "once") -> VerdictResult: ...
    def deny(self, approval_id: str, digest: str, *, reason: str | None = None) -> VerdictResult: ...
    def export(
        self,
        format: str = "cast",
        *,
        from_cursor: int | None = None,
        to_cursor: int | None = None,
        block_id: str | None = None,
        max_bytes: int = 65536,
        redact: bool | None = None,
    ) -> ExportResult: ...
    def verify(self, *, key: str | None = None) -> VerifyResult: ...
    def repair(self, *, key: str | None = None) -> RepairResult: ...
    def seal(self, key: str) -> SealResult: ...

class SyncClientOperations(SyncEngineOperations):
    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        start: bool = True,
        certificates: str | None = None,
        agent: str | None = None,
    ) -> None: ...
