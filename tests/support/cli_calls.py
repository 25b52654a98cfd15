"""Calls of the command line against an engine that records what it is asked."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from blockpty.errors import BlockptyError
from blockpty.model.results import (
    Result,
)
from blockpty.surfaces.cli.main import main
from tests.support.operations import RecordingEngine

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str, engine: Any = None) -> tuple[int, str, str]:
        status = main(arguments, open_engine=engine or RecordingEngine())
        sys.stdout.flush()
        captured = capfd.readouterr()
        return status, captured.out, captured.err

    return run


def answering(name: str, result: Result | BlockptyError) -> RecordingEngine:
    return RecordingEngine({name: result})


def call(*arguments: str) -> tuple[int, str, str]:
    """Run the command line in a thread of this process, which has no event loop yet; return what `program` has.

    To start Python takes several times longer than most commands do.
    """
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    with (
        ThreadPoolExecutor(1) as thread, contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1])
    ):  # fmt: skip
        status = thread.submit(main, arguments).result()
    out, err = (one.buffer.getvalue().decode() for one in streams)  # type: ignore[attr-defined]
    return status, out, err


def program(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "blockpty", *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def blockpty(home: Path, *arguments: str) -> dict[str, Any]:
    status, printed, said = call(*arguments, "--home", str(home), "--json")
    lines = printed.splitlines() or said.splitlines()
    assert lines, status
    found: dict[str, Any] = json.loads(lines[-1])
    return found
