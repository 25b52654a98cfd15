"""What the scenarios give in a shell behind ssh where that is not what they give here: by number, or why there is none.

Rules of this file: a row that is not named here must give over ssh what it gives in the same shell of this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.scenarios.rows import NotApplicable, Scenario
from tests.scenarios.stage import Done

_CLOSED: Final = b"Connection to 127.0.0.1 closed.\r\n"
_MODES: Final = NotApplicable("how the far terminal is read cannot be seen from here")
_NO_PROMPT: Final = NotApplicable("bash draws no prompt then, and the modes that tell here are those of the way there")


def _closed(expected: Mapping[str, Any]) -> dict[str, Any]:
    """Behind the end of the shell its client speaks, and the terminal ends with it."""
    done = expected["done"]
    return {**expected, "done": done._replace(output=done.output + _CLOSED), "events": ["shell_exit", "eof"]}


def _killed(expected: Mapping[str, Any]) -> dict[str, Any]:
    """To the client, a shell that a signal kills looks like a connection that breaks: it ends with 255."""
    ended = _closed(expected)
    lost = {"status": None, "signal": None, "reason": "connection_lost"}
    return {**ended, "done": ended["done"]._replace(state="connection_lost"), "signal": None, "exit": lost}


def _last_words(shell: str) -> Any:
    text = b"bye\nexit\n" if shell == "bash" else b"bye\n"
    return [(number, Done(0, "shell_exited", text + _CLOSED)) for number in range(20)], 20


OVER_SSH: Final[Mapping[int, Callable[[Any, str], Any] | NotApplicable]] = {
    # The question which shell it is, and the hooks, were typed before.
    5: lambda expected, shell: {**expected, "cleared by": ["engine", "engine", *expected["cleared by"]]},
    **dict.fromkeys((21, 22, 28), lambda expected, shell: _closed(expected)),
    27: lambda expected, shell: _killed(expected),
    29: NotApplicable("what replaces a far shell is not seen from here"),
    32: lambda expected, shell: _NO_PROMPT if shell == "bash" else expected,
    35: lambda expected, shell: {**expected, "exit": (*expected["exit"][:3], ["shell_exit", "eof"])},
    # What ignores the hang-up stays on the far machine.
    44: lambda expected, shell: (*expected[:2], True, expected[3]),
    **dict.fromkeys((48, 49), _MODES),
    53: lambda expected, shell: {**expected, "inside": (*expected["inside"][:3], "ssh")},
    61: lambda expected, shell: (expected[0], ("block_running", "raw"), expected[2]),
    79: lambda expected, shell: _last_words(shell),
    81: _MODES,
    85: NotApplicable("a Ctrl-C waits on its way behind what no program over there reads"),
    99: lambda expected, shell: _NO_PROMPT if shell == "bash" else expected,
}


def expected_over_ssh(scenario: Scenario, shell: str) -> Any:
    """Return what a row must give in this shell behind ssh, or why it cannot be played there."""
    expected, found = scenario.expected[shell], OVER_SSH.get(scenario.number)
    if found is None or isinstance(expected, NotApplicable):
        return expected
    return found if isinstance(found, NotApplicable) else found(expected, shell)
