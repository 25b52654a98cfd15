"""The command line with a real shell: every command is a process of its own, the conversation lives on between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

pytestmark = pytest.mark.needs("bash")


def blockpty(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "blockpty", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def answer(*arguments: str, status: int = 0) -> dict[str, Any]:
    found = blockpty(*arguments, "--json")
    assert found.returncode == status, found.stdout + found.stderr
    answered: dict[str, Any] = json.loads(found.stdout)
    return answered


@pytest.fixture
def conversation(home: Path) -> str:
    assert answer("open", "c1", "--shell", "bash", "--cwd", "/")["conversation_id"] == "c1"
    return "c1"


@pytest.fixture(autouse=True)
def closed(home: Path) -> Any:
    yield
    for item in answer("list")["conversations"]:
        if item["live"]:
            answer("close", item["conversation_id"])


def test_a_conversation_over_several_commands(conversation: str) -> None:
    assert blockpty("run", conversation, "cd /tmp; x=5").returncode == 0
    found = blockpty("run", conversation, 'echo "$x in $PWD"; exit_with() { return 42; }; exit_with')
    assert (found.returncode, found.stdout, found.stderr) == (42, "5 in /tmp\n", "")

    begun = answer("exec-block", conversation, "sleep 0.2; echo port 8123")
    waited = answer("wait-for", conversation, '{"regex": "port (\\\\d+)"}', "--from-cursor", str(begun["cursor"]))
    assert (waited["matched"], waited["groups"]) == (True, {"1": "8123"})
    answer("wait-for", conversation, '{"token": "PROMPT"}', "--from-cursor", str(waited["cursor"]))

    blocks = answer("blocks", conversation)["blocks"]
    assert [block["exit_status"] for block in blocks] == [0, 42, 0]
    assert blockpty("read", conversation, "--block-id", begun["block_id"]).stdout == "port 8123\n"
    assert answer("status", conversation)["mode"] == "idle"
    assert answer("verify", conversation)["clean"] is True
    assert blockpty("replay", conversation, "--verify").returncode == 0


def test_a_session_over_several_commands(conversation: str) -> None:
    session = answer("exec-interactive", conversation, "cat")
    answer("send-keys", conversation, "hello[ENTER]", "--session-id", session["session_id"])
    waited = answer("wait-for", conversation, "hello", "--from-cursor", str(session["cursor"]))
    assert waited["mode"] == "interactive"
    answer("ctrl-d", conversation)
    waited = answer("wait-for", conversation, '{"token": "EOF"}', "--from-cursor", str(session["cursor"]))
    assert waited["matched"] is True and waited["mode"] == "idle"
    assert answer("block", conversation, session["block_id"])["block"]["state"] == "ended"


def test_time_outs_and_ends(conversation: str) -> None:
    found = answer("run", conversation, "sleep 60", "--timeout-ms", "200", status=3)
    assert found["timed_out"] is True
    assert answer("exec-block", conversation, "true", status=1)["error"]["code"] == "busy"
    assert answer("wait-for", conversation, "never", "--timeout-ms", "100", status=3)["reason"] == "timeout"
    answer("interrupt", conversation)
    assert blockpty("run", conversation, "echo again").stdout == "again\n"
    answer("close", conversation)
    assert answer("run", conversation, "true", status=4)["error"]["code"] == "exited"


def test_a_shell_that_need_not_outlive_the_server(home: Path) -> None:
    answer("open", "c2", "--shell", "bash", "--no-persist")
    answer("open", "c3", "--shell", "bash")
    assert answer("serve", "--stop") == {"ok": True}
    assert {one["conversation_id"]: one["mode"] for one in answer("list")["conversations"]} == {
        "c2": "exited",
        "c3": "idle",
    }


def test_a_hostile_program_cannot_drive_the_terminal_that_shows_its_output(conversation: str) -> None:
    hostile = r"printf '\033]0;owned\007\033[2J\033[31mred\033[0m\n'"
    command = ["-m", "blockpty", "read", conversation, "--view", "ansi", "--block-id", "b1"]
    assert blockpty("run", conversation, hostile).returncode == 0
    environment = {**os.environ, "TERM": "xterm"}
    with pexpect.spawn(sys.executable, command, timeout=60, env=environment, dimensions=(24, 80)) as terminal:
        shown = terminal.read()
    assert terminal.exitstatus == 0
    assert b"^[]0;owned^G^[[2J\x1b[31mred\x1b[0m" in shown
    assert b"\x1b]" not in shown and b"\x1b[2J" not in shown
