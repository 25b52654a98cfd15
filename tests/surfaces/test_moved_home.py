"""A home that is moved or removed while its server runs: the server leaves, and writes nothing there."""

from __future__ import annotations

import json
import os
import select
import shutil
from pathlib import Path

import pytest

from blockpty.surfaces.private_files import server_directory
from tests.support.cli_calls import blockpty
from tests.support.processes import stop_server

pytestmark = [pytest.mark.linux, pytest.mark.needs("bash")]


@pytest.mark.parametrize("removed", [False, True])
def test_the_server_leaves_and_writes_nothing_there(home: Path, removed: bool) -> None:
    path, moved = home / "one", home / "moved"
    path.mkdir(mode=0o700)
    try:
        assert blockpty(path, "open", "c1", "--shell", "bash")["conversation_id"] == "c1"
        assert blockpty(path, "exec-block", "c1", "while :; do echo old; sleep 0.05; done")["ok"]
        server = os.pidfd_open(json.loads((server_directory(path) / "server.json").read_text())["pid"])
        path.rename(moved)
        if removed:
            shutil.rmtree(moved)
        path.mkdir(mode=0o700)
        # While the old one may still be there.
        assert blockpty(path, "list")["conversations"] == []
        assert blockpty(path, "open", "c1", "--shell", "bash")["shell_id"] == "c1.1"
        poller = select.poll()
        poller.register(server, select.POLLIN)
        assert poller.poll(30_000), "the old server leaves"
        os.close(server)
        assert blockpty(path, "run", "c1", "echo new")["output"] == "new\n"
        verified = blockpty(path, "verify", "c1")
        assert verified["clean"] and verified["blocks"] == 1, verified
        blockpty(path, "close", "c1")
        if not removed:
            listed = blockpty(moved, "list")
            assert [one["conversation_id"] for one in listed["conversations"]] == ["c1"], listed
            assert blockpty(moved, "verify", "c1")["clean"]
    finally:
        for one in (path, moved):
            if one.exists():
                stop_server(one)
