"""What the scenarios give in fish where that is not what bash and zsh give: by number, or why there is none.

Rules of this file: a row that is not named here must give in fish what it gives in both other shells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.scenarios.table import Scenario

FISH: Final[Mapping[int, Any]] = {}


def expected_in_fish(scenario: Scenario) -> Any:
    """Return what a row must give in fish, or why it cannot be played there."""
    if scenario.number in FISH:
        return FISH[scenario.number]
    assert scenario.expected["bash"] == scenario.expected["zsh"], f"row {scenario.number} needs its own for fish"
    return scenario.expected["bash"]
