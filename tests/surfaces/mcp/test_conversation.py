"""Real conversations through the SDK's client, over both transports and in both ways to speak the protocol."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.async_tests import async_test
from tests.support.mcp_clients import connected, each_connection, ok, text_of

pytestmark = pytest.mark.needs("bash")

GUESS = "while :; do printf 'Guess a number: '; read -r n; [ $n = 7 ] && break; echo no; done; echo Correct!"


@each_connection
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


@each_connection
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
