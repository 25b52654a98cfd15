"""The keep-alive that ssh gets where the user's configuration has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.host.shells import ShellPlan
from blockpty.runtime.ssh_options import ALIVE, kept_alive
from tests.support.async_tests import async_test


@pytest.mark.parametrize(
    ("report", "added"),
    [("user me\nserveraliveinterval 0\n", True), ("serveraliveinterval 30\n", False), ("", False), ("exit", False)],
)
@async_test
async def test_the_users_own_goes_first(report: str, added: bool, tmp_path: Path) -> None:
    program = tmp_path / "ssh"
    answer = "exit 1" if report == "exit" else f"printf '%s' '{report}'"
    program.write_text(f'#!/bin/sh\n[ "$1" = -G ] && {{ {answer}; }}\n')
    program.chmod(0o755)
    asked = ShellPlan("ssh", (str(program), "-tt", "--", "far"), {"PATH": "/usr/bin:/bin"}, (), ())
    made = await kept_alive(asked)
    assert made.argv == (str(program), *(ALIVE if added else ()), "-tt", "--", "far")


@async_test
async def test_an_ssh_that_is_not_there_changes_nothing(tmp_path: Path) -> None:
    asked = ShellPlan("ssh", (str(tmp_path / "no"), "far"), {}, (), ())
    assert await kept_alive(asked) == asked
