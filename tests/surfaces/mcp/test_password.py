"""A program that asks for a password: it is typed elsewhere, and the wait goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitRequestFormParams, ElicitResult

from tests.support.async_tests import async_test
from tests.support.mcp_clients import connected, each_connection, ok, text_of

pytestmark = pytest.mark.needs("bash")


ASKS = "printf 'Password: '; read -rs word; echo; echo ${#word} characters"


class Person:
    """A person at the client: types the password in another terminal, or not, and answers the question."""

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
@each_connection
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
        # A person who says too early that it is done is asked again.
        assert len(person.asked) == 2 and "blockpty send c1 --hidden" in person.asked[0]
    # The host may be leaving, and takes its own file with it.
    files = [path for path in home.rglob("*") if path.is_file() and path != home / "host" / "pid"]
    assert files and not any(b"hunter2" in path.read_bytes() for path in files)


@pytest.mark.parametrize("action", ["decline", "cancel"])
@each_connection
@async_test
async def test_the_password_is_not_typed(home: Path, connection: str, action: str) -> None:
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


@each_connection
@async_test
async def test_a_client_that_cannot_ask(home: Path, connection: str) -> None:
    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        result = await ok(client, "pty_run", conversation_id="c1", command=ASKS)
        assert result["reason"] == "password"
        await ok(client, "pty_interrupt", conversation_id="c1")
