"""`blockpty serve` in the background: where it is, the port it keeps, and settings that do not fit."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blockpty import Client, NotFound
from tests.support.async_tests import async_test
from tests.support.ports import free_port


def blockpty(home: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    found = subprocess.run(
        [sys.executable, "-m", "blockpty", "--home", str(home), "--json", *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return found.returncode, json.loads(found.stdout)


def test_where_it_is_and_its_port_again(home: Path) -> None:
    status, answer = blockpty(home, "serve", "--status")
    assert status == 1 and answer["error"]["code"] == "not_found"
    port = free_port()
    status, started = blockpty(home, "serve", "--background", "--port", str(port))
    assert status == 0 and started["url"] == f"http://127.0.0.1:{port}"
    status, found = blockpty(home, "serve", "--status")
    assert status == 0 and (found["url"], found["pid"]) == (started["url"], started["pid"])
    assert Path(found["token_file"]).is_file()
    # The same again is no contradiction, others are.
    assert blockpty(home, "serve", "--background", "--port", str(port))[1]["pid"] == started["pid"]
    for options in (["--port", str(port + 1)], ["--session-limit", "3"]):
        status, refused = blockpty(home, "serve", "--background", *options)
        assert status == 1 and refused["error"]["code"] == "busy" and "--stop" in refused["error"]["hint"]
    assert blockpty(home, "serve", "--stop")[0] == 0
    assert blockpty(home, "serve", "--background", "--keep-conversation-mb", "8")[1]["url"] == started["url"]
    assert blockpty(home, "serve", "--stop")[0] == 0


@pytest.mark.parametrize("place", ["/proc/none/home", "/dev/null/home"])
def test_a_home_that_cannot_be_made_is_named(place: str) -> None:
    status, answer = blockpty(Path(place), "list")
    assert status == 2 and answer["error"]["code"] == "bad_request"
    assert place.rpartition("/")[0] in answer["error"]["message"] and "BLOCKPTY_HOME" in answer["error"]["hint"]


POLICY = """
[[rule]]
name = "echo"
action = "ask"
commands = ["echo"]
"""


@pytest.mark.needs("bash")
@async_test
async def test_stopping_while_a_call_waits_is_no_defect(home: Path) -> None:
    (home / "policy.toml").write_text(POLICY)
    async with Client(home, agent="mcp") as client:
        conversation = await client.open("c1", shell="bash")
        call = asyncio.ensure_future(conversation.run("echo one"))
        while not (await client.approvals()).approvals:  # noqa: ASYNC110  (no event says it to all)
            await asyncio.sleep(0.01)
        assert (await asyncio.to_thread(blockpty, home, "serve", "--stop"))[0] == 0
        with pytest.raises(NotFound, match="the server stops"):
            await call
        log = (home / "server" / "server.log").read_text()
        assert "Traceback" not in log and "CancelledError" not in log
    async with Client(home) as person:
        conversation = await person.conversation("c1")
        assert (await conversation.run("true")).exit_status == 0
        await conversation.close()
