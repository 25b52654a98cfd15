"""The types of the public API: those of a program that uses it, and its mistakes noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]


def test_a_type_checker_sees_the_api_and_its_misuse() -> None:
    pytest.importorskip("mypy", reason="not installed: mypy")
    # As tools/test does before the tests, so that what is known of the package since then is of use.
    command = [sys.executable, "-m", "mypy", "--strict", "blockpty", "tests/support/typed_program.py"]
    environment = {**os.environ, "MYPYPATH": str(TOP), "NO_COLOR": "1"}
    found = subprocess.run(
        command, cwd=TOP, env=environment, capture_output=True, text=True, check=False, timeout=110
    )
    assert found.returncode == 0, found.stdout + found.stderr
