"""Runs of pytest with our plugin."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def run_tests(directory: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a source text; other plugins than ours and the named ones are not loaded."""
    (directory / "test_it.py").write_text(textwrap.dedent(source), "utf-8")
    (directory / "pytest.ini").write_text("[pytest]\naddopts = -W error --strict-markers\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "blockpty.testing.plugin"]
    command += ["--basetemp", str(directory / "b")]
    environment = {**os.environ, "PYTHONPATH": str(TOP), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [*command, *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
