"""What the bridges share: their settings, and the file in which they say what their connection does."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from blockpty.host.bridge import LOST, say
from tests.support.bridges import bridge_started


def test_the_state_of_the_connection_is_in_a_file_at_any_moment(tmp_path: Path) -> None:
    settings = {"state": str(tmp_path / "state"), "instance": 3}
    say(settings, "lost", "why", 2)
    say(settings, "up", None, 3)
    found = json.loads((tmp_path / "state").read_text())
    assert found == {"state": "up", "reason": None, "connections": 3, "instance": 3}
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    # A place that has gone is no reason to end the way to a shell.
    say({**settings, "state": str(tmp_path / "gone" / "state")}, "up", None, 4)


@pytest.mark.parametrize("module", ["tmux_bridge", "ssh_bridge"])
def test_a_bridge_removes_the_file_of_its_settings_and_loads_nothing_but_its_room(module: str, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 255\n")
    program.chmod(0o700)
    settings = {
        "program": str(program), "session": {}, "pane": "%1", "nonce": "own", "pause_after": 1, "ssh": [],
        "command": "", "plain": [], "state": str(tmp_path / "state"), "instance": 1, "silence_seconds": 1,
    }  # fmt: skip
    settings |= {"session": "$1"} if module == "tmux_bridge" else {"ssh": [str(program)]}
    argv = bridge_started(tmp_path, module, settings)
    file = Path(argv[-1])
    assert file.exists()
    near, far = pty.openpty()
    try:
        # It names what a module imports.
        argv[1:1] = ["-X", "importtime"]
        done = subprocess.run(argv, stdin=far, stdout=far, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    finally:
        os.close(near)
        os.close(far)
    assert (done.returncode, file.exists()) == (LOST, False)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line}
    assert {name for name in loaded if name.startswith("blockpty")} == {"blockpty.host.bridge"}
