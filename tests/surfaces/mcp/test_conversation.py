"""Real conversations through the SDK's client, over both transports and in both ways to speak the protocol."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitRequestFormParams, ElicitResult

from tests.support.async_tests import async_test
from tests.support.mcp_clients import CONNECTIONS, connected, ok, text_of

pytestmark = [pytest.mark.needs("bash"), pytest.mark.parametrize("connection", CONNECTIONS)]

GUESS = "while :; do printf 'Guess a number: '; read -r n; [ $n = 7 ] && break; echo no; done; echo Correct!"
ASKS = "printf 'Password: '; read -rs word; echo; echo ${#word} characters"


@async_test
async def test_guessing_a_number(home: Path, connection: str) -> None:
    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        launched = await ok(client, "pty_launch", conversation_id="c1", command=GUESS)
        session = launched["session_id"]
        asked = await ok(
            client, "pty_wait_for", conversation_id="c1", match="Guess a number", from_cursor=launched["cursor"]
        )
        assert (asked["matched"], asked["match_text"], asked["mode"]) == (True, "Guess a number", "interactive")
        for guess, answer in (("3\r", "no"), ("7\r", "Correct!")):
            sent = await ok(client, "pty_send", conversation_id="c1", session_id=session, data=guess)
            heard = await ok(client, "pty_wait_for", conversation_id="c1", match=answer, from_cursor=sent["cursor"])
            assert heard["matched"]
        ended = await ok(client, "pty_wait_for", conversation_id="c1", match={"token": "EOF"})
        assert (ended["matched"], ended["mode"]) == (True, "idle")
        block = (await ok(client, "pty_block", conversation_id="c1", block_id=launched["block_id"]))["block"]
        assert (block["kind"], block["exit_status"]) == ("session", 0)
        assert (await ok(client, "pty_verify", conversation_id="c1"))["clean"]


@async_test
async def test_a_python_repl(home: Path, connection: str) -> None:
    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        python = f"PYTHON_BASIC_REPL=1 {sys.executable} -q"
        started = await ok(client, "pty_exec_interactive", conversation_id="c1", command=python)
        ready = {"regex": r">>> $"}
        assert (await ok(client, "pty_wait_for", conversation_id="c1", match=ready))["matched"]
        sent = await ok(client, "pty_send_keys", conversation_id="c1", keys="6 * 7[ENTER]")
        answer = {"conversation_id": "c1", "match": {"regex": r"^(\d+)\n?"}, "from_cursor": sent["cursor"]}
        heard = await client.call_tool("pty_wait_for", answer)
        assert heard.structured_content["groups"] == {"1": "42"}
        assert 'groups: {"1": "42"}' in text_of(heard)
        await ok(client, "pty_wait_for", conversation_id="c1", match=ready)
        ended = await ok(client, "pty_end_session", conversation_id="c1", session_id=started["session_id"])
        assert ended["how"] == "exit"
        assert (await ok(client, "pty_run", conversation_id="c1", command="echo on"))["output"] == "on\n"


class Person:
    """Somebody at the client: types the password in another terminal, or not, and answers the question."""

    def __init__(self, *actions: str) -> None:
        self.actions = list(actions)
        self.asked: list[str] = []
        self.client: Any = None

    async def __call__(self, _context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        assert params.requested_schema.get("properties") == {}
        self.asked.append(params.message)
        action = self.actions.pop(0)
        if action == "accept":
            await ok(self.client, "pty_send", conversation_id="c1", data="hunter2\r", author="user")
        return ElicitResult(action="accept" if action == "too early" else action)


@pytest.mark.parametrize("tool", ["pty_run", "pty_wait_for"])
@async_test
async def test_a_password_is_typed_elsewhere(home: Path, connection: str, tool: str) -> None:
    person = Person("too early", "accept")
    async with connected(connection, home, elicitation_callback=person) as client:
        person.client = client
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        if tool == "pty_run":
            result = await ok(client, tool, conversation_id="c1", command=ASKS)
            assert (result["block"]["exit_status"], result["reason"]) == (0, "prompt")
            assert result["output"] == "Password: \n7 characters\n"
            assert (result["truncated"], result["output_bytes"]) == (False, len(result["output"]))
        else:
            begun = await ok(client, "pty_exec_block", conversation_id="c1", command=ASKS)
            result = await ok(
                client, tool, conversation_id="c1", match={"regex": r"(\d+) characters"}, from_cursor=begun["cursor"]
            )
            assert (result["matched"], result["groups"]) == (True, {"1": "7"})
        # Whoever says too early that it is done is asked again.
        assert len(person.asked) == 2 and "blockpty send c1 --hidden" in person.asked[0]
    # The host may be leaving, and takes its own file with it.
    files = [path for path in home.rglob("*") if path.is_file() and path != home / "host" / "pid"]
    assert files and not any(b"hunter2" in path.read_bytes() for path in files)


@pytest.mark.parametrize("action", ["decline", "cancel"])
@async_test
async def test_nobody_types_the_password(home: Path, connection: str, action: str) -> None:
    person = Person(action, action)
    async with connected(connection, home, elicitation_callback=person) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        result = await client.call_tool("pty_run", {"conversation_id": "c1", "command": ASKS})
        found = result.structured_content
        assert (found["reason"], found["timed_out"], found["block"]["state"]) == ("password", False, "running")
        assert "waits for a password" in text_of(result)
        waited = await ok(client, "pty_wait_for", conversation_id="c1", match="never")
        assert (waited["matched"], waited["reason"], waited["tty"]) == (False, "password", "password")
        assert len(person.asked) == 2
        await ok(client, "pty_interrupt", conversation_id="c1")


@async_test
async def test_a_client_that_cannot_ask(home: Path, connection: str) -> None:
    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        result = await ok(client, "pty_run", conversation_id="c1", command=ASKS)
        assert result["reason"] == "password"
        await ok(client, "pty_interrupt", conversation_id="c1")


@async_test
async def test_progress_while_waiting(home: Path, connection: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(elapsed: float, total: float | None, message: str | None) -> None:
        told.append((elapsed, total, message))

    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        arguments = {"conversation_id": "c1", "command": "echo begun; sleep 2.5", "timeout_ms": 50_000}
        result = await client.call_tool("pty_run", arguments, progress_callback=progress)
        assert result.structured_content["block"]["exit_status"] == 0
    assert len(told) >= 2
    elapsed = [item[0] for item in told]
    assert elapsed == sorted(elapsed) and elapsed[0] >= 1000
    assert all(total == 50_000 for _, total, _ in told)
    assert all("bytes in the transcript, block_running" in (message or "") for _, _, message in told)


@async_test
async def test_a_cancelled_wait_leaves_the_program_alone(home: Path, connection: str) -> None:
    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        begun = asyncio.Event()

        async def progress(*_told: Any) -> None:
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


@async_test
async def test_resources(home: Path, connection: str) -> None:
    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        ran = await ok(client, "pty_run", conversation_id="c1", command="seq 30000")
        await ok(client, "pty_open", conversation_id="gone", shell="bash")
        await ok(client, "pty_close", conversation_id="gone")
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        base = "blockpty://conversations/c1"
        assert listed == [f"{base}/transcript", f"{base}/blocks", f"{base}/screen", f"{base}/status"]
        templates = (await client.list_resource_templates()).resource_templates
        assert {template.name for template in templates} == {"transcript", "blocks", "block", "screen", "status"}

        # Page after page of the transcript, every line once.
        uri, lines = f"{base}/transcript", []
        for _ in range(20):
            (content,) = (await client.read_resource(uri)).contents
            first, _, rest = content.text.partition("\n")
            assert len(content.text.encode()) < 32 * 1024
            if not first.startswith("[... read on"):
                lines.append(content.text)
                break
            lines.append(rest)
            uri = first.partition(": ")[2].removesuffix(" ...]")
        found = [line for line in "".join(lines).splitlines() if line.lstrip("^M").isdecimal()]
        assert [int(line.lstrip("^M")) for line in found] == list(range(1, 30001))

        record, output = (await client.read_resource(f"{base}/blocks/b1")).contents
        assert record.mime_type == "application/json" and '"exit_status": 0' in record.text
        assert ran["truncated"] and output.text[:4_000] == ran["output"][:4_000]
        assert output.text.endswith("29999\n30000\n") and "bytes left out, read on at cursor" in output.text
        (blocks,) = (await client.read_resource(f"{base}/blocks?page=0")).contents
        assert '"b1"' in blocks.text
        (screen,) = (await client.read_resource(f"{base}/screen")).contents
        assert screen.text.startswith("[Terminal Screen - 80x24 - Alt Screen: No") and "\n30000\n" in screen.text
        shown = await ok(client, "pty_get_screen", conversation_id="c1")
        assert (shown["content"], shown["format"]) == (screen.text, "agent")
        shown = await ok(client, "pty_screen", conversation_id="c1", since=shown["seqno"])
        assert "\n30000\n" in shown["content"] and not shown["content"].startswith("[") and shown["changed"] == []
        (status,) = (await client.read_resource(f"{base}/status")).contents
        assert '"idle"' in status.text
