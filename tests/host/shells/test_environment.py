"""The environment of a new shell: an allow-list, and what no caller may add."""

from __future__ import annotations

import pytest

from blockpty.errors import BadRequest
from blockpty.host.shells.environment import REFUSED, clean_environment

INHERITED = {
    "PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "XDG_DATA_HOME": "/x", "LD_PRELOAD": "/evil.so", "BASH_ENV": "/e",
    "PYTHONPATH": "/p", "BLOCKPTY_HOME": "/h", "AWS_SECRET_ACCESS_KEY": "s", "TERM": "dumb", "": "empty",
}  # fmt: skip


def test_there_is_always_a_path() -> None:
    assert "/usr/bin" in clean_environment({})["PATH"].split(":")


def test_additions_may_carry_what_is_not_inherited() -> None:
    made = clean_environment(INHERITED, {"LD_PRELOAD": "/mine.so", "TERM": "vt100", "X": ""})
    assert (made["LD_PRELOAD"], made["TERM"], made["X"]) == ("/mine.so", "vt100", "")


@pytest.mark.parametrize("name", sorted(REFUSED | {"__bpty_n", "BASH_FUNC___bpty_x%%"}))
def test_what_would_break_the_hooks_is_refused(name: str) -> None:
    with pytest.raises(BadRequest, match="would break the shell integration"):
        clean_environment({}, {name: "x"})


@pytest.mark.parametrize(("name", "value"), [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0y")])
def test_malformed_entries_are_refused(name: str, value: str) -> None:
    with pytest.raises(BadRequest, match="malformed"):
        clean_environment({}, {name: value})


def test_environment_is_an_allow_list() -> None:
    names = (
        "LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES BASH_ENV ENV PYTHONPATH PYTHONSTARTUP NODE_OPTIONS "
        "PROMPT_COMMAND PS0 PS1 PS2 PS4 BLOCKPTY_HOME BLOCKPTY_TOKEN SHELLOPTS SECRET_KEY __bpty_n BASH_FUNC_x%% "
        "HISTFILE AWS_SECRET_ACCESS_KEY"
    )
    unwanted = names.split()
    wanted = "HOME PATH USER LANG LC_CTYPE TZ XDG_RUNTIME_DIR XDG_DATA_HOME SSH_AUTH_SOCK DISPLAY EDITOR TMPDIR".split()  # noqa: SIM905
    env = clean_environment(dict.fromkeys((*unwanted, *wanted, "TERM", ""), "x"))
    assert env == {**dict.fromkeys(wanted, "x"), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
