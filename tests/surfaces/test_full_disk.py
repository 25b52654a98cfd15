"""A server that was killed while the disk was full starts again, lets read, and says what it has no room for."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_calls import blockpty
from tests.support.processes import stop_server
from tests.support.small_disk import fill, make_room, small_disk

SMALL_KIB = 2048
ROOMY_KIB = 64 * 1024


def kill(*pids: int) -> None:
    """Together: keeper and recorder start each other again."""
    descriptors = [os.pidfd_open(pid) for pid in pids]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)
    for descriptor in descriptors:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        assert poller.poll(10_000)
        os.close(descriptor)


def open_on_a_full_disk(home: Path, name: str) -> dict[str, Any]:
    """Open a conversation; once more where an index was closed meanwhile, which gives the room of its log back."""
    log = home / "index" / "catalogue.sqlite-wal"
    while True:
        had_log = log.exists()
        fill(home)
        opened = blockpty(home, "open", name, "--shell", "bash")
        if "error" in opened or not had_log or log.exists():
            return opened
        blockpty(home, "close", name)
        blockpty(home, "delete", name)


@pytest.mark.linux
@pytest.mark.parametrize("host", [False, True])
def test_a_server_starts_on_a_full_disk(home: Path, host: bool) -> None:
    with small_disk(home, SMALL_KIB):
        assert blockpty(home, "open", "one", "--shell", "bash")["conversation_id"] == "one"
        assert blockpty(home, "run", "one", "echo before")["block"]["exit_status"] == 0
        server = json.loads((home / "server" / "server.json").read_text())["pid"]
        pids = json.loads((home / "host" / "pid").read_text())
        fill(home)
        kill(server, *(pids.values() if host else ()))
        try:
            listed = blockpty(home, "list")
            assert [one["conversation_id"] for one in listed["conversations"]] == ["one"], listed
            read = blockpty(home, "read", "one")
            assert "before" in json.dumps(read), read
            refused = open_on_a_full_disk(home, "two")
            assert refused["error"]["code"] == "storage_full", refused
            make_room(home, ROOMY_KIB)
            assert blockpty(home, "status", "one")["transport"] == "splice"
            again = blockpty(home, "open", "two", "--shell", "bash")
            assert again["conversation_id"] == "two", again
            blockpty(home, "close", "two")
            if not host:
                assert blockpty(home, "run", "one", "echo after")["block"]["exit_status"] == 0
                assert blockpty(home, "verify", "one")["clean"]
                blockpty(home, "close", "one")
            assert json.loads((home / "server" / "server.json").read_text())["pid"] != server
            assert not [path for path in (home / "server").iterdir() if path.name.startswith(".server.json")]
        finally:
            stop_server(home)
