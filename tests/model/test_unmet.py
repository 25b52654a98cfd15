"""What `expect` and `check` raise: the error for each reason, and what its message shows."""

from __future__ import annotations

import pytest

from blockpty.model.results import RunResult, WaitResult
from blockpty.model.unmet import (
    CommandFailed,
    EndOfFile,
    InputPrompt,
    NotMatched,
    PasswordPrompt,
    Timeout,
    checked,
    evidence,
    unmet,
)
from tests.support.blocks import block


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("timeout", Timeout), ("eof", EndOfFile), ("prompt", EndOfFile), ("password", PasswordPrompt),
        ("input", InputPrompt), ("stopped", NotMatched), ("max_bytes", NotMatched), ("hooks_lost", NotMatched),
    ],
)  # fmt: skip
def test_each_reason_has_its_error(reason: str, kind: type[NotMatched]) -> None:
    result = WaitResult(False, reason, 9, text="one\ntwo\n")
    problem = unmet("'done'", result, result.text, "a screen\n\n")
    assert type(problem) is kind and problem.result is result
    assert problem.details == {"reason": reason, "cursor": 9}
    assert str(problem).startswith("'done' did not come")
    assert str(problem).endswith("last lines:\n    one\n    two\nscreen:\n    a screen")


def test_what_the_screen_shows_is_not_shown_twice() -> None:
    assert evidence("one\ntwo\n", "$ x\none\ntwo  \n\n") == ["screen:", "    $ x", "    one", "    two"]
    assert evidence("", "\n\n") == []
    assert evidence("\n".join(map(str, range(40))))[1] == "    28"


def test_a_command_that_ended_with_0_is_returned() -> None:
    result = RunResult(block(exit_status=0), "", 0, False, False, "prompt", 5)
    assert checked(result) is result


def test_one_that_failed_has_its_output() -> None:
    result = RunResult(block(cmd="make", exit_status=2), "no rule\n", 8, False, False, "prompt", 5)
    with pytest.raises(CommandFailed) as raised:
        checked(result)
    assert str(raised.value) == "'make' ended with exit status 2\nlast lines:\n    no rule"
    assert (raised.value.exit_status, raised.value.output, raised.value.result) == (2, "no rule\n", result)
    unknown = RunResult(block(exit_status=None), "", 0, False, False, "eof", 5)
    with pytest.raises(CommandFailed, match="not known"):
        checked(unknown)


@pytest.mark.parametrize(
    ("reason", "kind"), [("timeout", Timeout), ("password", PasswordPrompt), ("input", InputPrompt)]
)
def test_one_that_did_not_end_says_why(reason: str, kind: type[NotMatched]) -> None:
    result = RunResult(block(cmd="make", exit_status=None), "so far\n", 7, False, reason == "timeout", reason, 5)
    with pytest.raises(kind, match="the end of 'make' did not come") as raised:
        checked(result)
    assert "so far" in str(raised.value)


def test_one_that_asks_for_a_password_says_so_and_what_to_do() -> None:
    result = RunResult(
        block(exit_status=None), "", 0, False, False, "input", 5, tty="password", foreground="sudo", hint="ask a person"
    )
    with pytest.raises(PasswordPrompt) as raised:
        checked(result)
    assert raised.value.hint == "ask a person"
