"""One run of the command line: options that may stand anywhere, what --read-only refuses, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from blockpty.errors import Forbidden
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.cli.invocation import EXIT_BROKEN_PIPE, Invocation, anywhere


def invocation(**fields: Any) -> Invocation:
    return Invocation(lambda home: pytest.fail("no engine is needed"), **fields)


@pytest.mark.parametrize("arguments", [["--json", "sub"], ["sub", "--json"], ["--json", "sub", "--json"]])
def test_options_stand_before_the_command_or_behind_it(arguments: list[str]) -> None:
    seen: list[Invocation] = []
    command = click.Command("sub", params=anywhere(), callback=click.pass_obj(seen.append))
    group = click.Group("top", params=anywhere(), commands=[command])
    done = CliRunner().invoke(group, arguments, obj=invocation())
    assert done.exit_code == 0, done.output
    assert [one.as_json for one in seen] == [True] and not seen[0].read_only


def test_the_home_is_a_path_that_need_not_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert invocation(home="x").directory() == tmp_path / "x"
    monkeypatch.setenv("BLOCKPTY_HOME", str(tmp_path / "y"))
    assert invocation().directory() == tmp_path / "y"


def test_read_only_lets_reading_pass_and_nothing_else() -> None:
    allowed = set()
    for name, operation in OPERATIONS.items():
        invocation().check(operation)
        try:
            invocation(read_only=True).check(operation)
        except Forbidden:
            continue
        allowed.add(name)
    assert {"list", "status", "read", "blocks", "search"} <= allowed
    assert not allowed & {"run", "send", "open", "close", "delete", "interrupt", "approve", "halt"}


def test_a_reader_that_goes_away_ends_the_run_quietly() -> None:
    program = """
import sys
from blockpty.surfaces.cli.invocation import finished
async def work():
    for _ in range(100_000):
        print("x" * 100)
    return 0
sys.exit(finished(work()))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait(60) == EXIT_BROKEN_PIPE
    process.stderr.close()
