"""Every row of the table in a shell behind ssh, whose hooks were typed in and which sees no file of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.rows import Later, NotApplicable, Scenario, as_case
from tests.scenarios.ssh import OVER_SSH, expected_over_ssh
from tests.scenarios.stage import SHELLS, open_stage_over_ssh
from tests.scenarios.table import SCENARIOS
from tests.support.async_tests import async_test
from tests.support.profile import one_in_turn, some_of


def _cases() -> list[object]:
    """A third of the rows, each shell in its turn; all of them in both in a long run."""
    return some_of(
        as_case(scenario, shell, "sshd")
        for number, scenario in enumerate(SCENARIOS)
        for shell in one_in_turn(number, SHELLS)
    )


@pytest.mark.parametrize(("scenario", "shell"), _cases())
@async_test(timeout_seconds=110)
async def test_scenario_over_ssh(scenario: Scenario, shell: str, home: Path) -> None:
    expected = expected_over_ssh(scenario, shell)
    if isinstance(expected, NotApplicable | Later):
        pytest.skip(f"{scenario.title}, {shell}: {expected.reason}")
    async with open_stage_over_ssh(home, shell) as stage:
        assert await scenario.play(stage) == expected, f"{scenario.number}: {scenario.description}"


def test_what_differs_is_in_the_table() -> None:
    assert set(OVER_SSH) <= {scenario.number for scenario in SCENARIOS}
