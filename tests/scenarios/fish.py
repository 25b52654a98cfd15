"""What the scenarios give in fish where that is not what bash and zsh give: by number, or why there is none.

Rules of this file: a row that is not named here must give in fish what it gives in both other shells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.scenarios.table import NotApplicable, Scenario

_LANGUAGE = NotApplicable("its commands are in the language of bash and zsh, which fish refuses to read")
_TYPED = NotApplicable("fish completes an open line as one text, without PS2; tests/shellrc/test_fish.py has its way")
_EXIT = NotApplicable("submitted, it ends only the sourced file in fish 3; typed: tests/shellrc/test_fish.py")
_OPTIONS = NotApplicable("fish has no such options")

FISH: Final[Mapping[int, Any]] = {
    **dict.fromkeys((5, 6, 7, 45), _TYPED),
    **dict.fromkeys(
        (10, 11, 12, 13, 14, 17, 18, 19, 20, 27, 28, 30, 31, 33, 35, 37, 40, 41, 42, 44, 68, 69, 72, 73, 74, 75, 76),
        _LANGUAGE,
    ),
    15: NotApplicable("the output of a typed line begins with the window title and colours that fish writes"),
    **dict.fromkeys((21, 79), _EXIT),
    **dict.fromkeys((22, 23, 24, 25, 26), _OPTIONS),
    32: NotApplicable("exec cannot redirect fish itself"),
    # A stopped job leaves $status alone, and `fg` of one that is interrupted does too.
    39: {
        "stopped": (0, "ended"),
        "resumed": ("SIGINT", 0, None, "ended"),
        "jobs": b"jobs: There are no jobs\n",
    },
}


def expected_in_fish(scenario: Scenario) -> Any:
    """Return what a row must give in fish, or why it cannot be played there."""
    if scenario.number in FISH:
        return FISH[scenario.number]
    assert scenario.expected["bash"] == scenario.expected["zsh"], f"row {scenario.number} needs its own for fish"
    return scenario.expected["bash"]
