"""The sections of the help, and what was meant by a command that does not exist."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from blockpty.surfaces.cli.commands import program
from blockpty.surfaces.cli.groups import GROUPS, GroupedCommands


def test_every_command_is_in_one_section_and_every_line_is_of_a_command() -> None:
    made = program()
    named = [name for group in GROUPS.values() for name in group]
    with click.Context(made) as context:
        commands = {name for name in made.list_commands(context) if not made.get_command(context, name).hidden}  # type: ignore[union-attr]
    assert len(named) == len(set(named))
    assert commands - {"import-recording"} == set(named)


def test_the_help_has_one_line_for_each() -> None:
    text = CliRunner().invoke(program(), ["--help"]).output
    for title, group in GROUPS.items():
        assert f"\n{title}:\n" in text
        for name, words in group.items():
            assert sum(line.split()[:1] == [name] for line in text.splitlines()) == 1, name
            assert words in text and len(words) <= 60 and words.endswith(".")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("stauts", "status"), ("exec_block", "exec-block"), ("wait", "wait-for"), ("qqqq", None)],
)
def test_what_was_meant(typed: str, meant: str | None) -> None:
    found = CliRunner().invoke(program(), [typed])
    assert found.exit_code == 2 and f"No such command {typed!r}." in found.output
    assert (meant is not None) == ("Did you mean" in found.output)
    if meant is not None:
        assert meant in found.output


def test_a_command_without_a_section_is_shown_as_well() -> None:
    group = GroupedCommands("it", commands={"new": click.Command("new", help="Do something new.")})
    text = CliRunner().invoke(group, ["--help"]).output
    assert "More:" in text and "Do something new." in text and "Shells:" not in text
