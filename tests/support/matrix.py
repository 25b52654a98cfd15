"""Writes how each test ended into a file, from which tools/gen_matrix makes the matrix of scenarios and shells."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


class MatrixWriter:
    """Collects the outcome of every test; a test counts as passed only when setup, call and teardown all did."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        worst = self._outcomes.get(report.nodeid, ("", ""))[0]
        if report.failed:
            self._outcomes[report.nodeid] = ("failed", "")
        elif worst != "failed" and (report.skipped or (report.when == "call" and report.passed)):
            why = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
            self._outcomes[report.nodeid] = ("skipped" if report.skipped else "passed", why.removeprefix("Skipped: "))

    def pytest_sessionfinish(self) -> None:
        system = f"{platform.system()}, Python {'.'.join(map(str, sys.version_info[:3]))}"
        made = {"system": system, "tests": self._outcomes}
        self._path.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", "utf-8")
