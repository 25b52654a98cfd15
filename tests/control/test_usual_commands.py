"""Usual commands that run what is known only at run time: which ones are read, and when they are not."""

from __future__ import annotations

import pytest

from blockpty.control.shell_commands import Known, simple_commands
from blockpty.control.simple_command import SimpleCommand
from tests.support.command_texts import CWD, HOME


def unknown(text: str, shell: str = "bash") -> list[SimpleCommand]:
    return [one for one in simple_commands(text, Known(CWD, HOME, shell)) if one.unknown]


USUAL = [
    'eval "$(ssh-agent -s)"', "eval `ssh-agent`", "eval $(pyenv init - 2>/dev/null)",
    'eval "$(brew shellenv)" > /dev/null', "source <(kubectl completion bash)", ". <(/usr/bin/fzf --zsh)",
    "exec $SHELL -l", '"$SHELL"', "$EDITOR +3 ~/a 'b c'", "$VISUAL src/*.py", "$(which python) x",
    "exec $(command -v zsh)",
]  # fmt: skip


@pytest.mark.parametrize("text", USUAL)
def test_a_usual_command_is_known(text: str) -> None:
    assert unknown(text) == []
    assert unknown(f"cd src && {text} || echo no; ls | cat") == []


@pytest.mark.parametrize("text", USUAL)
@pytest.mark.parametrize(
    "definition",
    [
        "x=1", "export x=1", "f() { :; }", "alias x=y", "read x", "printf -v x y", "for x in y; do :; done",
        ": ${x:=y}", "hash x", "set -- x", "x[1]=y", "env x=y z",
    ],
)  # fmt: skip
def test_beside_a_definition_it_is_not(text: str, definition: str) -> None:
    assert unknown(f"{definition}; {text}") and unknown(f"{text}\n{definition}")


@pytest.mark.parametrize("text", USUAL)
def test_behind_a_launcher_or_in_fish_it_is_not(text: str) -> None:
    quoted = text.replace("'", "'\\''")
    assert unknown(f"bash -c '{quoted}'") and unknown(f"ssh host '{quoted}'")
    assert unknown(text, "fish")


@pytest.mark.parametrize(
    ("text", "program"),
    [("$SHELL", "zsh"), ("exec -l $SHELL", "zsh"), ("$EDITOR x", "editor"), ("$(which node) x", "node")],
)
def test_it_is_read_as_the_program_that_it_stands_for(text: str, program: str) -> None:
    assert simple_commands(text, Known(CWD, HOME, "zsh"))[-1].program == program


@pytest.mark.parametrize("name", ["SHELL", "EDITOR", "VISUAL"])
@pytest.mark.parametrize(
    "form",
    ["{}='rm -rf'", "export {}=rm", "read {}", "printf -v{} x", ": ${{{}:=x}}", "{}=(rm -rf)", "declare -n x={}"],
)
def test_setting_a_variable_that_is_run_is_read_as_running_it(form: str, name: str) -> None:
    found = simple_commands(form.format(name), Known(CWD, HOME))
    assert any(one.unknown or (one.program == "rm" and len(one.arguments) > 0) for one in found)
