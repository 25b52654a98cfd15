"""The command line from arguments to an exit status: each error has one, and each has the one shape."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import blockpty
from blockpty.errors import BlockptyError, Busy, Exited, NotFound
from tests.support.cli_calls import Run, answering, program, run
from tests.support.operations import RecordingEngine

__all__ = ["run"]


@pytest.mark.parametrize(
    ("error", "status"), [(Busy("b7 is running", hint="wait"), 1), (NotFound("no c1"), 1), (Exited("it has ended"), 4)]
)
def test_errors_of_the_engine(run: Run, error: BlockptyError, status: int) -> None:
    found, text, errors = run("status", "c1", engine=answering("status", error))
    assert (found, text) == (status, "")
    assert error.message in errors and error.code in errors and error.hint in errors
    found, text, errors = run("status", "c1", "--json", engine=answering("status", error))
    assert (found, errors) == (status, "")
    assert json.loads(text) == error.to_dict()


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["status"],
        ["run", "c1"],
        ["exec_block", "c1", "x"],
        ["status", "c1", "--nonsense"],
        ["resize", "c1", "wide", "24"],
        ["resize", "c1", "0", "24"],
        ["read", "c1", "--view", "html"],
        ["status", "../c1"],
    ],
)
def test_usage_is_2_and_nothing_is_asked_of_an_engine(run: Run, arguments: list[str]) -> None:
    engine = RecordingEngine()
    status, _, errors = run(*arguments, engine=engine)
    assert status == 2 and errors
    status, text, errors = run(*arguments, "--json", engine=engine)
    assert status == 2
    error = json.loads(text)
    assert errors == "" and error["ok"] is False and error["error"]["code"] == "bad_request"
    assert engine.calls == []


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    status, text, errors = run()
    assert "exec-block" in text + errors
    assert status in (0, 2)  # click has changed its mind about this


def test_a_defect_has_the_one_shape_too(run: Run) -> None:
    class Broken(RecordingEngine):
        async def conversation(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("unexpected")

    status, text, errors = run("status", "c1", "--json", engine=Broken())
    assert status == 1
    assert json.loads(text)["error"]["code"] == "internal"
    assert "Traceback" in errors


def test_an_interrupt_is_130(run: Run) -> None:
    class Interrupted(RecordingEngine):
        async def conversation(self, *args: Any, **kwargs: Any) -> Any:
            raise KeyboardInterrupt

    assert run("status", "c1", engine=Interrupted())[0] == 130


def test_version() -> None:
    found = program("--version")
    assert (found.returncode, found.stdout) == (0, f"blockpty {blockpty.__version__}\n")


def test_version_loads_no_engine_and_no_model() -> None:
    code = (
        "import sys; from blockpty.surfaces.cli.main import main; assert main(['--version']) == 0; "
        "loaded = {'asyncio', 'pydantic', 'rich', 'regex', 'blockpty.runtime', 'blockpty.model'} & set(sys.modules); "
        "assert not loaded, loaded"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 0, found.stderr
