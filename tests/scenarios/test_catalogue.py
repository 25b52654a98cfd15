"""Every item of the catalogue is played, or covered by something that exists, or says why not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.scenarios.catalogue import ITEMS, Item
from tests.scenarios.fish import ITEMS_IN_FISH, item_expected_in_fish
from tests.scenarios.rows import Later, NotApplicable
from tests.scenarios.stage import SHELLS, open_stage
from tests.scenarios.table import SCENARIOS
from tests.support.async_tests import async_test
from tests.support.profile import in_turn

ROOT = Path(__file__).parents[2]
PLAYED = [item for item in ITEMS if item.play is not None]


def _expected(item: Item, shell: str) -> object:
    return item.expected[shell] if shell != "fish" else item_expected_in_fish(item)


def _played(number: int, item: Item) -> list[str]:
    """In which shells: bash and one of the others that have such a situation; those that have none say why."""
    has = [shell for shell in (*SHELLS, "fish") if not isinstance(_expected(item, shell), NotApplicable | Later)]
    none = [shell for shell in (*SHELLS, "fish") if shell not in has]
    return [*(in_turn(number, has) if has else ()), *none]


@pytest.mark.parametrize(
    ("item", "shell"),
    [
        pytest.param(item, shell, id=f"item{item.number:02d}-{shell}", marks=pytest.mark.needs(shell))
        for number, item in enumerate(PLAYED)
        for shell in _played(number, item)
    ],
)
@async_test
async def test_item(item: Item, shell: str, home: Path) -> None:
    expected = _expected(item, shell)
    if isinstance(expected, NotApplicable | Later):
        pytest.skip(f"{item.text}, {shell}: {expected.reason}")
    assert item.play is not None
    async with open_stage(home, shell) as stage:
        assert await item.play(stage) == expected, f"{item.number}: {item.text}"


def test_the_catalogue_is_whole() -> None:
    assert [item.number for item in ITEMS] == [*range(1, 92)]
    for item in ITEMS:
        assert bool(item.reason) != bool(item.play or item.covered), item
        assert set(item.expected) == (set(SHELLS) if item.play else set()), item
        assert item.number in ITEMS_IN_FISH or not item.play, item


def _tests_in(path: Path) -> set[str]:
    body = ast.parse(path.read_text()).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_what_covers_an_item_exists() -> None:
    numbers = {scenario.number for scenario in SCENARIOS}
    missing = []
    for item in ITEMS:
        for one in item.covered:
            if isinstance(one, int):
                found = one in numbers
            else:
                file, _, name = one.partition("::")
                found = name.startswith("test_") and name in _tests_in(ROOT / file)
            if not found:
                missing.append((item.number, one))
    assert missing == []
