"""Rules of a policy: which questions and which simple commands each one matches.

Rules of this file: pure. All conditions that a rule gives must hold; within a list one entry is enough. A rule that
asks or denies also matches where it is only possible that its condition holds; a rule that allows must be certain.
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from blockpty.control.effects import has_effect
from blockpty.control.launchers import subcommands
from blockpty.control.questions import Action, Question, Right
from blockpty.control.simple_command import SEVERAL, UNKNOWN, SimpleCommand

if TYPE_CHECKING:
    import regex

_TIMEOUT_S: Final = 0.05
_GAP: Final = "..."


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def _matches(pattern: str, text: str) -> bool:
    return pattern == text or _glob(pattern).match(text) is not None


class CommandPattern(Struct, frozen=True):
    """A program, leading arguments and options that must be there: `git push --force*`, `cargo ... publish`.

    Words are globs. Words that begin with a dash are options, in any place, alone or in a cluster; the others are the
    first arguments that are no options; `...` stands for any number of them.
    """

    program: str
    words: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> CommandPattern:
        """Read a pattern.

        Raises:
            ValueError: it is empty.
        """
        program, *words = text.split()
        options = tuple(word for word in words if word.startswith("-"))
        return cls(program.lower(), tuple(word for word in words if not word.startswith("-")), options)

    def matches(self, command: SimpleCommand, *, certain: bool) -> bool:
        """Return whether a command matches, or, unless `certain`, may match."""
        if not command.program or not _matches(self.program, command.program):
            return False
        if not self.words and not self.options:
            return True
        arguments = command.arguments
        possible = not certain and any(argument.startswith(UNKNOWN) for argument in arguments)
        if not all(
            possible or any(_is_option(option, one, certain=certain) for one in arguments) for option in self.options
        ):
            return False
        if not self.words:
            return True
        places = subcommands(arguments)
        if certain and len(places) != 1:
            return False
        return any(
            _in_order(self.words, [one for one in arguments[place:] if not one.startswith("-")], certain=certain)
            for place in places
        )


def _is_option(option: str, argument: str, *, certain: bool) -> bool:
    known, unknown, _ = argument.partition(UNKNOWN)
    if unknown and not certain and known.startswith("-") and "=" not in known:
        return option.startswith(known) or (len(option) == 2 and not known.startswith("--"))
    if option.startswith("--"):
        name = argument.partition("=")[0]
        # Most programs take an option by its first letters.
        return name.startswith("--") and (_matches(option, name) or (len(name) > 3 and option.startswith(name)))
    if len(option) == 2 and option != "--":
        return argument.startswith("-") and not argument.startswith("--") and option[1] in argument
    return _matches(option, argument)


def _in_order(words: tuple[str, ...], arguments: list[str], *, certain: bool, at: int = 0) -> bool:
    """Return whether the arguments from `at` on begin with the words."""
    for number, word in enumerate(words):
        if word == _GAP:
            rest = words[number + 1 :]
            return any(_in_order(rest, arguments, certain=certain, at=start) for start in range(at, len(arguments) + 1))
        if at >= len(arguments):
            return False
        argument = arguments[at]
        if UNKNOWN not in argument:
            if not _matches(word, argument):
                return False
        elif certain or not argument.startswith(UNKNOWN):
            return False
        elif argument == SEVERAL:
            return True
        at += 1
    return True


def _is_glob(program: str) -> bool:
    return any(char in program for char in "*?[")


class Rule(Struct, frozen=True, dict=True):
    """One rule. An empty list or None is no condition.

    Attributes:
        name: unique in the policy.
        action: what it decides.
        reason: one sentence for the person who is asked.
        rights, operations, principals, conversations, cwd, tty, foreground, secrets: of the question; globs.
        types_as: as what the principal types.
        commands, effects: of a simple command; one of either is enough.
        text: regular expressions; each is searched in the whole text.
        exact: the whole text.
        approves: for allow, names of the rules that ask which it answers.
    """

    name: str
    action: Action
    reason: str = ""
    rights: frozenset[Right] = frozenset()
    operations: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    types_as: frozenset[str] = frozenset({"agent"})
    conversations: tuple[str, ...] = ()
    cwd: tuple[str, ...] = ()
    tty: tuple[str, ...] = ()
    foreground: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    commands: tuple[CommandPattern, ...] = ()
    effects: tuple[str, ...] = ()
    text: tuple[regex.Pattern[str], ...] = ()
    exact: str | None = None
    approves: frozenset[str] = frozenset()

    @cached_property
    def _by_program(self) -> dict[str, list[CommandPattern]]:
        found: dict[str, list[CommandPattern]] = {}
        for pattern in self.commands:
            if not _is_glob(pattern.program):
                found.setdefault(pattern.program, []).append(pattern)
        return found

    @cached_property
    def _by_glob(self) -> list[CommandPattern]:
        return [pattern for pattern in self.commands if _is_glob(pattern.program)]

    def asks(self, question: Question) -> bool:
        """Return whether the conditions on the question hold."""
        if question.types_as not in self.types_as or (self.rights and question.right not in self.rights):
            return False
        for patterns, value in (
            (self.operations, question.operation), (self.principals, question.principal),
            (self.conversations, question.conversation_id), (self.cwd, question.cwd), (self.tty, question.tty),
            (self.foreground, question.foreground), (self.secrets, question.secret),
        ):  # fmt: skip
            if patterns and not any(value is not None and _matches(pattern, value) for pattern in patterns):
                return False
        if self.exact is not None and self.exact != question.text:
            return False
        return all(self._searches(pattern, question.text) for pattern in self.text)

    def _searches(self, pattern: regex.Pattern[str], text: str) -> bool:
        try:
            return pattern.search(text, timeout=_TIMEOUT_S) is not None
        except TimeoutError:
            return self.action != "allow"

    def covers(self, command: SimpleCommand | None, question: Question) -> bool:
        """Return whether the conditions on a simple command hold; None stands for a text without one."""
        if not self.commands and not self.effects:
            return True
        if command is None:
            return False
        certain = self.action == "allow"
        named = self._by_program.get(command.program)
        if named is not None and any(pattern.matches(command, certain=certain) for pattern in named):
            return True
        if self._by_glob and any(pattern.matches(command, certain=certain) for pattern in self._by_glob):
            return True
        base = question.conversation_cwd or question.cwd
        return any(has_effect(effect, command, base, question.home) for effect in self.effects)
