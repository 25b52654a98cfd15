"""What the scenarios give in fish where that is not what bash and zsh give: by number, or why there is none.

Rules of this file: a row that is not named here must give in fish what it gives in both other shells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.scenarios.rows import Later, NotApplicable, Scenario

_LANGUAGE = NotApplicable("its commands are in the language of bash and zsh, which fish refuses to read")
_TYPED = NotApplicable("fish completes an open line as one text, without PS2; tests/shellrc/test_fish.py has its way")
_EXIT = NotApplicable("submitted, it ends only the sourced file in fish 3; typed: tests/shellrc/test_fish.py")
_OPTIONS = NotApplicable("fish has no such options")

_OWN_READ = Later("not played in fish yet: `read` of fish is its line editor, not a line of the terminal")
_UNWRITTEN = Later("not played in fish yet: its commands or its startup file are those of bash and zsh")

FISH: Final[Mapping[int, Any]] = {
    **dict.fromkeys((5, 6, 7, 45), _TYPED),
    **dict.fromkeys(
        (11, 12, 13, 14, 18, 19, 28, 30, 31, 33, 35, 54),
        _LANGUAGE,
    ),
    15: NotApplicable("the output of a typed line begins with the window title and colours that fish writes"),
    **dict.fromkeys((21, 79), _EXIT),
    **dict.fromkeys((22, 23, 24, 25, 26), _OPTIONS),
    32: NotApplicable("exec cannot redirect fish itself"),
    **dict.fromkeys((47, 48, 49, 60, 94), _OWN_READ),
    **dict.fromkeys((37, 80, 82, 86, 87, 88, 89, 90, 91), _UNWRITTEN),
    27: Later("after kill -9 the end of the shell is reported, the end of the terminal was not seen with it"),
    40: Later("no notice of the ended job was found; how fish words it is not looked at yet"),
    99: Later("in one column and one row the block of a submitted command does not end: no prompt comes"),
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
