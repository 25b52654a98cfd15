"""What the scenarios give in fish where that is not what bash and zsh give: by number, or why there is none.

Rules of this file: a row that is not named here must give in fish what it gives in both other shells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.scenarios.catalogue import Item
from tests.scenarios.rows import NotApplicable, Scenario, ok

_TYPED = NotApplicable("fish completes an open line as one text, without PS2; tests/shellrc/test_fish.py has its way")
_EXIT = NotApplicable("submitted, it ends only the sourced file in fish 3; typed: tests/shellrc/test_fish.py")
_OPTIONS = NotApplicable("fish has no such options")

FISH: Final[Mapping[int, Any]] = {
    **dict.fromkeys((5, 6, 7, 45), _TYPED),
    11: NotApplicable("fish has no here-documents"),
    19: NotApplicable("$_ is the name of the running command in fish, not the last argument"),
    **dict.fromkeys((21, 79), _EXIT),
    **dict.fromkeys((22, 23, 24, 25, 26), _OPTIONS),
    # fish raises its event when the command is over: that is behind the block, and in the transcript.
    28: {"done": ok(), "exit": {"status": 0, "signal": None}, "said behind it": True},
    30: {"wrong": [], "last": None, "blocks": 16},
    31: {
        "alias printf=false": ([(0, "ended"), (0, "ended"), (3, "ended")], b"two\n", "ok"),
        "function printf; end": ([(0, "ended"), (0, "ended"), (3, "ended")], b"two\n", "ok"),
    },
    32: NotApplicable("exec cannot redirect fish itself"),
    # A stopped job leaves $status alone; `exit` in a submitted text ends only that.
    33: {
        "stopped": 0,
        "first exit": (0, "ended", True),
        "second exit": "eof",
        "stopped again": 0,
        "submitted": [(0, "ended", False)] * 2,
    },
    # Typed, `exit` comes to its end before the shell does.
    35: {
        "exit": ("eof", "exited", {"status": 3, "signal": None}, ["shell_exit"]),
        "block": (3, "ended"),
        "late": True,
        "end": ["shell_exit", "eof"],
    },
    47: (("matched", "interactive"), ok(b"hi Bob\n")),
    54: ((4, "ended"), [], False, ok(b"next\n"), 2),
    # A stopped job leaves $status alone, and `fg` of one that is interrupted does too.
    39: {
        "stopped": (0, "ended"),
        "resumed": ("SIGINT", 0, None, "ended"),
        "jobs": b"jobs: There are no jobs\n",
    },
}


_HOOKS = NotApplicable("fish has no such hook or option")
_HEALTHY = (True, "ok", [])
_SET = (0, "ended", _HEALTHY)

ITEMS_IN_FISH: Final[Mapping[int, Any]] = {
    3: NotApplicable("a syntax error stays on the line to be corrected"),
    **dict.fromkeys((5, 10, 13, 15, 18, 19, 20, 21, 25, 26, 27, 28, 31, 33, 34, 36, 65), _HOOKS),
    6: NotApplicable("fish reads what is typed at once as a paste would be"),
    7: NotApplicable("fish has no here-documents"),
    8: NotApplicable("fish has no here-documents: an error, in the block"),
    9: ({ok(b"a\n")}, {1}, 5),
    11: NotApplicable("at its prompt fish takes Ctrl-C for itself"),
    12: (True, _HEALTHY, ["echo ok", "printf x; sh -c 'exit 3'"]),
    14: NotApplicable("handlers of events cannot come before ours: played with 90"),
    17: ([1, 1, 0, 0, 1], ["false", "false", "true", "true", "false"], ok(b"kept\n"), _HEALTHY),
    22: NotApplicable("our file is read by `fish -C`, which sets nothing"),
    23: NotApplicable("fish has no such options: a pattern without a match is an error"),
    24: _SET,
    29: NotApplicable("fish has no `set -u`"),
    30: NotApplicable("fish has no errexit"),
    32: _SET,
    35: _SET,
    42: [b"a\n", b"b\n"],
    52: NotApplicable("only zsh has ZDOTDIR"),
    53: _SET,
    54: NotApplicable("exec cannot redirect fish itself"),
    55: NotApplicable("exec cannot redirect fish itself"),
    58: NotApplicable("its event comes behind the last block: 28"),
    59: (0, "idle", _HEALTHY),
    61: NotApplicable("an alias is a function in fish"),
    68: ((3, "ended"), _HEALTHY),
    69: _HEALTHY,
    70: (["timeout"], True, 1, _HEALTHY),
}


def expected_in_fish(scenario: Scenario) -> Any:
    """Return what a row must give in fish, or why it cannot be played there."""
    if scenario.number in FISH:
        return FISH[scenario.number]
    assert scenario.expected["bash"] == scenario.expected["zsh"], f"row {scenario.number} needs its own for fish"
    return scenario.expected["bash"]


def item_expected_in_fish(item: Item) -> Any:
    """Return what an item must give in fish, or why it is not played there."""
    return ITEMS_IN_FISH.get(item.number) or NotApplicable("other tests show it")
