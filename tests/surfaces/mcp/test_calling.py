"""A call of a tool: its progress, and its end when the client cancels it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import blockpty
from tests.support.async_tests import async_test
from tests.support.mcp_clients import client_of, connected, each_connection, often, ok
from tests.support.slow_verify import slow_verify

if TYPE_CHECKING:
    import pytest

__all__ = ["often"]


@async_test
async def test_progress_is_that_of_the_operation(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[tuple[float, float | None, str | None]] = []
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        with slow_verify(monkeypatch) as going:

            async def progress(done: float, total: float | None, message: str | None) -> None:
                reports.append((done, total, message))
                going.set()

            arguments = {"conversation_id": "c1"}
            result = await client.call_tool("pty_verify", arguments, progress_callback=progress)
        assert result.structured_content["clean"]
    assert reports[0][:2] == (5.0, 8.0) and str(reports[0][2]).startswith("verify: 62 %, 5 B of 8 B, ")


@each_connection
@async_test
async def test_progress_while_waiting(home: Path, tmp_path: Path, often: float, connection: str) -> None:
    reports: list[tuple[float, float | None, str | None]] = []
    os.mkfifo(tmp_path / "gate")

    async def progress(elapsed: float, total: float | None, message: str | None) -> None:
        reports.append((elapsed, total, message))
        if len(reports) == 2:
            (tmp_path / "gate").write_bytes(b"")

    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        arguments = {"conversation_id": "c1", "command": f"echo begun; cat {tmp_path}/gate", "timeout_ms": 50_000}
        result = await client.call_tool("pty_run", arguments, progress_callback=progress)
        assert result.structured_content["block"]["exit_status"] == 0
    assert len(reports) >= 2
    elapsed = [item[0] for item in reports]
    assert elapsed == sorted(elapsed) and elapsed[0] >= 1000 * often
    assert all(total == 50_000 for _, total, _ in reports)
    assert all("bytes in the transcript, block_running" in (message or "") for _, _, message in reports)


@each_connection
@async_test
async def test_a_cancelled_wait_leaves_the_program_alone(home: Path, often: float, connection: str) -> None:
    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        begun = asyncio.Event()

        async def progress(*_report: Any) -> None:
            begun.set()

        await ok(client, "pty_exec_block", conversation_id="c1", command="read -r x; echo got $x")
        arguments = {"conversation_id": "c1", "match": "got it", "timeout_ms": 600_000}
        task = asyncio.create_task(client.call_tool("pty_wait_for", arguments, progress_callback=progress))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        # The wait itself has ended, and says so in the record.
        while True:
            page = await ok(client, "pty_events", conversation_id="c1")
            ended = [event for event in page["events"] if event["type"] == "wait_end"]
            if ended[-1]["reason"] == "cancelled":
                break
        assert (await ok(client, "pty_status", conversation_id="c1"))["mode"] == "block_running"
        await ok(client, "pty_send", conversation_id="c1", data="it\r")
        assert (await ok(client, "pty_wait_for", conversation_id="c1", match="got it"))["matched"]
        assert (await ok(client, "pty_verify", conversation_id="c1"))["clean"]
