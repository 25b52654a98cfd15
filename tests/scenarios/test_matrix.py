"""The committed matrix is that of the tables: every row is in it, and no other."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.scenarios.catalogue import ITEMS
from tests.scenarios.rows import Scenario, both
from tests.scenarios.stage import SHELLS
from tests.scenarios.table import SCENARIOS

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("gen_matrix", str(TOP / "tools" / "gen_matrix"))
    spec = importlib.util.spec_from_loader("gen_matrix", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_every_row_is_in_the_committed_matrix(tool: ModuleType) -> None:
    """Made again with the outcomes left as they are, each line begins and ends as in the tables."""
    lines = [line for line in tool.MATRIX.read_text("utf-8").splitlines() if line.startswith("| ")]
    begins = [tool.scenario_begin(scenario) for scenario in SCENARIOS], [tool.item_begin(item) for item in ITEMS]
    wanted = [f"| {begin} | " for group in begins for begin in ("# | ", *group)]
    assert len(lines) == len(wanted), "run tools/gen_matrix"
    rows: list[Any] = [None, *SCENARIOS, None, *ITEMS]
    for line, begin, row in zip(lines, wanted, rows, strict=True):
        if row is None:
            assert line.startswith("| # | "), line
        else:
            made = tool.scenario_row(row, {}) if isinstance(row, Scenario) else tool.item_row(row, {})
            assert line.startswith(begin), "run tools/gen_matrix"
            assert line.rpartition(" | ")[2] == made.rpartition(" | ")[2], "run tools/gen_matrix"


def test_the_committed_matrix_hides_nothing(tool: ModuleType) -> None:
    text = tool.MATRIX.read_text("utf-8")
    assert "FAILED" not in text and "not run |" not in text


def test_only_what_passed_is_called_so(tool: ModuleType) -> None:
    async def play(_: Any) -> None: ...

    row = Scenario(1, "a|b", "c", play, both(None), later="more")
    names = [f"{tool.SCENARIO_TEST}[001-{shell}]" for shell in (*SHELLS, "fish")]
    for outcome, shown in (
        (["passed", ""], "pass"),
        (["failed", ""], "FAILED"),
        (["skipped", "no vim"], "skipped: no vim"),
        (None, "not run"),
    ):
        tests = dict.fromkeys(names, outcome) if outcome is not None else {}
        assert tool.scenario_row(row, tests) == f"| 1 | a\\|b | c | {shown} | {shown} | {shown} | more |"
