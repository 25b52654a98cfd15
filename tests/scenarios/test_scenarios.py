"""Every row of the table, in every shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.fish import FISH, expected_in_fish
from tests.scenarios.rows import Later, NotApplicable, Scenario, as_case
from tests.scenarios.stage import SHELLS, open_stage
from tests.scenarios.table import SCENARIOS
from tests.support.async_tests import async_test
from tests.support.profile import in_turn


def _played(number: int, scenario: Scenario) -> list[str]:
    """In which shells: bash and one of the others that have such a situation; those that have none say why."""
    has = [shell for shell in (*SHELLS, "fish") if not isinstance(_expected(scenario, shell), NotApplicable | Later)]
    none = [shell for shell in (*SHELLS, "fish") if shell not in has]
    return [*(in_turn(number, has) if has else ()), *none]


def _expected(scenario: Scenario, shell: str) -> object:
    return scenario.expected[shell] if shell != "fish" else expected_in_fish(scenario)


def _cases() -> list[object]:
    return [
        as_case(scenario, shell)
        for number, scenario in enumerate(SCENARIOS)
        for shell in _played(number, scenario)
    ]


@pytest.mark.parametrize(("scenario", "shell"), _cases())
@async_test(timeout_seconds=110)
async def test_scenario(scenario: Scenario, shell: str, home: Path) -> None:
    expected = _expected(scenario, shell)
    if isinstance(expected, NotApplicable | Later):
        pytest.skip(f"{scenario.title}, {shell}: {expected.reason}")
    async with open_stage(home, shell) as stage:
        assert await scenario.play(stage) == expected, f"{scenario.number}: {scenario.description}"


def test_the_table_is_whole() -> None:
    """Every number once, and further rows only beside one that needs no program; an expectation for every shell."""
    own = [scenario.number for scenario in SCENARIOS if not scenario.variant]
    assert own == [*range(1, 107)]
    assert all(bool(scenario.variant) >= bool(set(scenario.needs) - {"bash", "less"}) for scenario in SCENARIOS)
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert all(set(scenario.expected) == set(SHELLS) for scenario in SCENARIOS)
    assert set(FISH) <= {scenario.number for scenario in SCENARIOS}
    assert all(scenario.title and scenario.description for scenario in SCENARIOS)
