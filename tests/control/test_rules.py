"""Patterns of commands: programs, first arguments, options; possible and certain matches."""

from __future__ import annotations

import pytest

from blockpty.control.rules import CommandPattern
from blockpty.control.shell_commands import Known, simple_commands


def matches(pattern: str, text: str, *, certain: bool = False) -> bool:
    (command,) = simple_commands(text, Known("/x", None))
    return CommandPattern.parse(pattern).matches(command, certain=certain)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("git", "git", True), ("git", "/usr/bin/GIT x", True), ("git", "gitk", False), ("git*", "gitk", True),
        ("git push", "git push", True), ("git push", "git -C x push", True), ("git push", "git -p push", True),
        ("git push", "git commit push", False), ("git push", "git", False), ("git push -f", "git push -uf", True),
        ("git push -f", "git push origin -f", True), ("git push -f", "git push --foo", False),
        ("git push --force*", "git push --force-with-lease=x", True),
        ("git push --force*", "git push --follow-tags", False),
        ("git push ... +*", "git push origin +x", True), ("git push ... +*", "git push origin x", False),
        ("a ... b c", "a x y b c", True), ("a ... b c", "a x b y c", False), ("a *", "a", False), ("a *", "a b", True),
        ("git push -f", "git push $x", True), ("git push", "git $x", True), ("git push", "git x$y", False),
        ("find -delete", "find . -delete", True), ("find -delete", "find . -d", False), ("a x y", "a x", False),
    ],
)  # fmt: skip
def test_patterns(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


def test_a_certain_match_takes_nothing_for_granted() -> None:
    assert matches("git push", "git push x", certain=True)
    assert not matches("git push", "git $x", certain=True)
    assert not matches("git push", "git -C push x", certain=True)
    assert not matches("git push -f", "git push $x", certain=True)


def test_an_empty_pattern_is_an_error() -> None:
    with pytest.raises(ValueError):
        CommandPattern.parse(" ")
