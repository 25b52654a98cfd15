"""The committed matrix is that of the tables: every row is in it, and no other."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.scenarios.catalogue import ITEMS, Item
from tests.scenarios.rows import Scenario, both
from tests.scenarios.stage import SHELLS
from tests.scenarios.table import SCENARIOS
from tests.support.tool_scripts import load_tool


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool("gen_matrix")


def test_every_row_is_in_the_committed_matrix(tool: ModuleType) -> None:
    """Made again with the outcomes left as they are, each item begins and ends as in the tables."""
    text = tool.MATRIX.read_text("utf-8").replace("\n  ", " ")
    lines = [line for line in text.splitlines() if line.startswith("* ")]
    rows: list[Scenario | Item] = [*SCENARIOS, *ITEMS]
    assert len(lines) == len(rows), "run tools/gen_matrix"
    for line, row in zip(lines, rows, strict=True):
        scenario = isinstance(row, Scenario)
        begin = tool.scenario_begin(row) if scenario else tool.item_begin(row)
        made = (tool.scenario_row(row, {}) if scenario else tool.item_row(row, {})).replace("\n  ", " ")
        assert line.startswith(f"{begin} "), "run tools/gen_matrix"
        assert line.partition(". Not yet: ")[2] == made.partition(". Not yet: ")[2], "run tools/gen_matrix"


def test_the_committed_matrix_hides_nothing(tool: ModuleType) -> None:
    text = tool.MATRIX.read_text("utf-8")
    assert "FAILED" not in text and "not run*" not in text and "not run;" not in text


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
        assert tool.scenario_row(row, tests) == f"* **1. a\\|b**: c. *bash, zsh, fish: {shown}*. Not yet: more"
