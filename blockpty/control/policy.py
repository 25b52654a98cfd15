"""The policy of a home: rules in a file, and a verdict for each question.

Rules of this file: pure; reading the file is the runtime's work. Deny comes before ask, ask before allow; within one of
these, the first rule in the file decides. The verdict for a text is the strictest of its simple commands. A rule that
allows can answer rules that ask, by their names (`approves`), and no rule that denies.

A policy guards against accidents. It is not a sandbox: a script, a makefile or a program does what it does.
"""

from __future__ import annotations

import difflib
import json
import pkgutil
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final, cast, get_args

import regex
from msgspec import Struct, field
from msgspec.structs import replace

from blockpty.control.effects import EFFECTS
from blockpty.control.launchers import SHELLS
from blockpty.control.questions import Action, Level, Question, Right, Verdict
from blockpty.control.rules import CommandPattern, Rule
from blockpty.control.sandbox import SandboxProfile, parse_profiles
from blockpty.control.shell_commands import Known, simple_commands
from blockpty.control.simple_command import SimpleCommand
from blockpty.errors import BadRequest

__all__ = [
    "DEFAULT_ACTIONS", "Level", "Policy", "Question", "Right", "Verdict", "allow_rule", "default_policy",
    "default_policy_text", "parse_policy",
]  # fmt: skip

APPROVAL_SECONDS: Final = 300
UNKNOWN_COMMAND: Final = "default.unknown"
DEFAULT_ACTIONS: Final[Mapping[str, Action]] = {
    **{right.value: "allow" for right in Right}, "password": "ask", "secret": "deny", "unknown": "ask",
}  # fmt: skip
"""What is decided where no rule matches: by right, for a stored secret, and for a command that cannot be known."""

_NO_RULES: Final = frozenset({*DEFAULT_ACTIONS, *(f"default.{name}" for name in DEFAULT_ACTIONS)})
_CARRIERS: Final = frozenset({
    "ssh", "mosh", "mosh-client", "docker", "podman", "kubectl", "oc", "su", "sudo", "doas", "tmux", "screen", "script",
    "nsenter", "chroot", "machinectl", "lxc", "lxc-attach", "login", "telnet", "systemd-nspawn", "distrobox", "toolbox",
    "autossh", "sshpass", "rsh", "rlogin", "nerdctl", "docker-compose", "adb", "incus", "multipass", "limactl",
    "vagrant", "gcloud", "heroku", "fly", "flyctl", "pkexec", "run0", "runuser", "systemd-run", "unshare", "bwrap",
    "firejail",
    "zellij", "byobu", "dtach", "abduco", "poetry", "pipenv", "expect", "unbuffer", "rlwrap", "asciinema", "cu",
    "minicom", "picocom", "busybox", "toybox", "pwsh", "nu", "xonsh", "elvish",
})  # fmt: skip
"""Programs behind which a shell usually reads what is typed, and shells of other grammars."""
KEYS_ALONE: Final = re.compile(r"[\x03\x04\x0c\x15\x1a\x1c\r\n]*")
"""Keys that enter or drop a line, end a program or draw the screen anew, and type nothing."""


class Policy(Struct, frozen=True):
    """Rules in file order, what is decided without one, and what else the file says.

    Attributes:
        rules: in file order.
        defaults: what is decided without one, by right.
        sandboxes: the sandbox profiles by name, the default one among them.
        levels: the levels of conversations by name, which may have `*` and `?`; the first that matches holds.
        approval_timeout_seconds: how long a call waits for a person; then it is denied.
        secrets: the command of each stored secret, whose first line of output is the secret.
        decides: whether the file says anything about what agents may do, and not only about sandboxes.
    """

    rules: tuple[Rule, ...] = ()
    defaults: Mapping[str, Action] = field(default_factory=lambda: dict(DEFAULT_ACTIONS))
    sandboxes: Mapping[str, SandboxProfile] = field(default_factory=lambda: parse_profiles({}))
    levels: Mapping[str, Level] = field(default_factory=dict)
    approval_timeout_seconds: int = APPROVAL_SECONDS
    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    decides: bool = True

    def level_of(self, conversation_id: str) -> Level | None:
        """Return how much a person is asked about in a conversation on top of the rules; None: nothing more."""
        return next((level for name, level in self.levels.items() if fnmatchcase(conversation_id, name)), None)

    def decide(self, question: Question, level: Level | None = None) -> Verdict:
        """Return what is to be done with a request, by the rules and then by the level of the conversation."""
        verdict = self._by_rules(question)
        if (
            level is None
            or verdict.action == "deny"
            or question.types_as != "agent"
            or question.right is Right.PASSWORD
        ):
            return verdict
        if level is Level.ALWAYS_ALLOW:
            if verdict.action == "allow":
                return verdict
            return replace(verdict, action="allow", rule=f"level.{level.value}", reason="Everything is allowed here.")
        types = question.right in (Right.EXEC, Right.INPUT)
        if level is Level.ALWAYS_ASK:
            if verdict.action == "ask" or not types:
                return verdict
            return replace(verdict, action="ask", rule=f"level.{level.value}", kinds=(question.right.value,),
                           reason="Everything an agent types here needs your consent.")  # fmt: skip
        kinds = (*((question.right.value,) if types else ()), *verdict.kinds)
        missing = [kind for kind in kinds if kind not in question.approved]
        if not missing:
            return replace(
                verdict, action="allow", rule=f"level.{level.value}", reason="You have allowed this kind before."
            )
        if verdict.action == "ask":
            return replace(verdict, kinds=kinds)
        if not types:
            return verdict
        return replace(verdict, action="ask", rule=f"level.{level.value}", kinds=kinds,
                       reason="It is the first of its kind in this conversation.")  # fmt: skip

    def with_rule(self, text: str) -> Policy:
        """Return the policy with the rules of a text added at the end.

        Raises:
            BadRequest: the text is no policy of rules only, or a name is taken.
        """
        added = parse_policy(text)
        taken = {rule.name for rule in self.rules}
        for rule in added.rules:
            if rule.name in taken:
                raise BadRequest(f"the policy has a rule {rule.name!r} already", hint="give the new rule another name")
        return replace(self, rules=(*self.rules, *added.rules))

    def _by_rules(self, question: Question) -> Verdict:
        commands = _commands(question)
        rules = [(place, rule) for place, rule in enumerate(self.rules) if rule.asks(question)]
        decided: list[tuple[int, int, Action, str, str]] = []
        for command in commands or (None,):
            decided += self._of_command(command, question, rules)
        decided.sort(key=lambda one: one[:2])
        _, _, action, name, reason = decided[0]
        kinds = tuple(dict.fromkeys(one[3] for one in decided if one[2] == "ask")) if action == "ask" else ()
        return Verdict(action, name, reason, commands, kinds)

    def _of_command(
        self, command: SimpleCommand | None, question: Question, rules: list[tuple[int, Rule]]
    ) -> Iterator[tuple[int, int, Action, str, str]]:
        """Yield what the rules say of one command: the class, the place in the file, and the verdict."""
        matching = [(place, rule) for place, rule in rules if rule.covers(command, question)]
        approved = {name for _, rule in matching if rule.action == "allow" for name in rule.approves}
        found = False
        for place, rule in matching:
            if rule.action == "deny" or (rule.action == "ask" and rule.name not in approved):
                found = True
                yield _RANKS[rule.action], place, rule.action, rule.name, rule.reason or _because(rule)
        if command is not None and command.unknown and UNKNOWN_COMMAND not in approved:
            action = self.defaults["unknown"]
            if action != "allow":
                found = True
                yield _RANKS[action], len(self.rules), action, UNKNOWN_COMMAND, f"The command {command.unknown}."
        if found:
            return
        allowing = next((rule for _, rule in matching if rule.action == "allow"), None)
        if allowing is not None and (question.secret is None or allowing.secrets):
            yield 2, 0, "allow", allowing.name, allowing.reason or _because(allowing)
            return
        name = "secret" if question.secret is not None else question.right.value
        action = self.defaults[name] if question.types_as == "agent" else "allow"
        yield _RANKS[action], len(self.rules) + 1, action, f"default.{name}", _DEFAULT_REASONS[action]


_RANKS: Final = {"deny": 0, "ask": 1, "allow": 2}
_DEFAULT_REASONS: Final = {
    "allow": "No rule of the policy asks about it.",
    "ask": "The policy asks about everything of this kind.",
    "deny": "The policy allows this only where a rule names it.",
}


def _because(rule: Rule) -> str:
    return {"allow": "Allowed", "ask": "A person has to allow this", "deny": "Forbidden"}[rule.action] + (
        f" by the rule {rule.name}." if rule.action != "ask" else f", says the rule {rule.name}."
    )


def _commands(question: Question) -> tuple[SimpleCommand, ...]:
    """Return the simple commands of what would be run or typed; nothing where it is no shell text."""
    if question.types_as != "agent":
        return ()
    here = Known(question.cwd, question.home, _base_name(question.shell or "bash"))
    if question.right in (Right.EXEC, Right.OPEN):
        return simple_commands(question.text, here)
    # What is typed as a secret where nothing hides it, is typed all the same.
    shown = question.right is Right.PASSWORD and question.tty not in (None, "password")
    if question.right is not Right.INPUT and not shown:
        return ()
    program = None if question.foreground is None else _base_name(question.foreground)
    if not may_be_commands(program, question.tty) or KEYS_ALONE.fullmatch(question.text):
        return ()
    if "\t" in question.text:
        return (SimpleCommand("", source=question.text[:200], unknown="has a key in it that completes the line"),)
    text = question.text.replace("\r", "\n")
    if program is None:
        return simple_commands(text, here)
    return simple_commands(text, Known(None, None, program if program in SHELLS else here.shell))


def may_be_commands(program: str | None, tty: str | None) -> bool:
    """Return whether a shell may read what is typed into a program as commands.

    `program`: None at a prompt. A program that does not read (`running`) leaves it to the shell behind it.
    """
    return program is None or tty == "running" or _base_name(program) in SHELLS or _base_name(program) in _CARRIERS


def _base_name(program: str) -> str:
    """Return a program's name without its path, the dash of a login shell, and what stands behind a colon."""
    return program.rpartition("/")[2].removeprefix("-").partition(":")[0]


# --- the file


def parse_policy(text: str) -> Policy:
    """Read the text of a `policy.toml`.

    Raises:
        BadRequest: it is not valid TOML, or has an unknown key, a wrong type, an unknown name or a bad pattern; the
            message names the rule and its line.
    """
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest(
            f"policy.toml is not valid TOML: {error}", hint="see the TOML manual, https://toml.io"
        ) from error
    known = ("version", "default", "rule", "sandbox", "levels", "approval_timeout_seconds", "secret")
    _known_keys(table, known, "the policy", 0)
    version = table.get("version", 1)
    if version != 1 or isinstance(version, bool):
        raise BadRequest("policy.toml: version must be 1", hint="a newer blockpty may have written this file")
    lines = [
        text.count("\n", 0, found.start()) + 1
        for found in re.finditer(r"^[ \t]*\[\[\s*rule\s*\]\]", text, re.MULTILINE)
    ]
    entries = table.get("rule", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadRequest("policy.toml: a rule is a table", hint="write [[rule]] before each rule")
    rules: list[Rule] = []
    for index, entry in enumerate(entries):
        rule = _rule(entry, index, lines[index] if index < len(lines) else 0)
        if any(rule.name == other.name for other in rules):
            raise _wrong(
                f"rule {rule.name!r}", lines[index] if index < len(lines) else 0, "has the name of another rule"
            )
        rules.append(rule)
    _check_approvals(rules)
    seconds = table.get("approval_timeout_seconds", APPROVAL_SECONDS)
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 <= seconds <= 86_400:
        raise BadRequest("policy.toml: approval_timeout_seconds is a number of seconds", hint="0 to 86400")
    return Policy(
        tuple(rules), _defaults(table.get("default", {})), parse_profiles(table.get("sandbox", {})),
        _levels(table.get("levels", {})), seconds, _secrets(table.get("secret", {})),
        not set(table) <= {"version", "sandbox"},
    )  # fmt: skip


def _levels(table: Any) -> dict[str, Level]:
    words = [level.value for level in Level]
    if not isinstance(table, dict) or any(value not in words for value in table.values()):
        raise BadRequest(
            "policy.toml: levels maps names of conversations to levels",
            hint=f'write [levels] and below it, for example, "*" = "ask_first"; a level is one of {", ".join(words)}',
        )
    return {name: Level(value) for name, value in table.items()}


def _secrets(table: Any) -> dict[str, tuple[str, ...]]:
    found = {}
    for name, entry in table.items() if isinstance(table, dict) else ((None, None),):
        command = entry.get("command") if isinstance(entry, dict) and set(entry) == {"command"} else None
        if not isinstance(command, list) or not command or not all(isinstance(one, str) for one in command):
            raise BadRequest(
                "policy.toml: a secret has the command that prints it",
                hint='write [secret.deploy-key] and below it command = ["pass", "show", "deploy"]',
            )
        found[str(name)] = tuple(command)
    return found


def _defaults(table: Any) -> dict[str, Action]:
    if not isinstance(table, dict):
        raise BadRequest(
            "policy.toml: default is a table", hint='write [default] and below it, for example, exec = "ask"'
        )
    _known_keys(table, tuple(DEFAULT_ACTIONS), "[default]", 0)
    for key, value in table.items():
        if value not in get_args(Action):
            raise BadRequest(f"policy.toml: default.{key} is {value!r}", hint="one of allow, ask, deny")
    return {**DEFAULT_ACTIONS, **table}


def _check_approvals(rules: list[Rule]) -> None:
    """An approval of a rule that denies would be silently without effect."""
    denying = {rule.name for rule in rules if rule.action == "deny"}
    for rule in rules:
        for name in sorted(rule.approves & denying):
            raise BadRequest(
                f"policy.toml: rule {rule.name!r} approves {name!r}, which denies",
                hint="only a rule that asks can be approved",
            )


def _rule(entry: dict[str, Any], index: int, line: int) -> Rule:
    name = entry.get("name")
    where = f"rule {name!r}" if isinstance(name, str) else f"rule {index + 1}"
    _known_keys(entry, tuple(_KEYS), where, line)
    if (
        not isinstance(name, str)
        or re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", name) is None
        or name.startswith(("default.", "level."))
    ):
        raise _wrong(where, line, "needs a name of small letters, digits and dashes")
    if entry.get("action") not in get_args(Action):
        raise _wrong(where, line, "needs an action: allow, ask or deny")
    values: dict[str, Any] = {"name": name, "action": entry["action"]}
    for key, value in entry.items():
        if key not in values:
            values[key] = _value(key, value, where, line)
    if values.get("approves") and values["action"] != "allow":
        raise _wrong(where, line, "approves other rules, which only a rule that allows can do")
    return Rule(**values)


def _value(key: str, value: Any, where: str, line: int) -> Any:
    kind = _KEYS[key]
    if kind is str:
        if not isinstance(value, str):
            raise _wrong(where, line, f"has {key} = {value!r}, which is not a string")
        return value
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(one, str) and one for one in texts):
        raise _wrong(where, line, f"has {key} = {value!r}, which is not a list of strings")
    convert = cast("Callable[[list[str]], Any]", kind)
    try:
        return convert(texts)
    except (ValueError, regex.error) as error:
        raise _wrong(where, line, f"has a bad {key}: {error}") from error


def _effects(texts: list[str]) -> tuple[str, ...]:
    for one in texts:
        if one not in EFFECTS:
            raise ValueError(f"{one!r} is not one of {', '.join(EFFECTS)}")
    return tuple(texts)


def _types(texts: list[str]) -> frozenset[str]:
    for one in texts:
        if one not in ("agent", "user", "engine"):
            raise ValueError(f"{one!r} is not one of agent, user, engine")
    return frozenset(texts)


_KEYS: Final[dict[str, object]] = {
    "name": str, "action": str, "reason": str, "exact": str,
    "rights": lambda texts: frozenset(Right(one) for one in texts),
    "types_as": _types,
    **dict.fromkeys(("operations", "principals", "conversations", "cwd", "tty", "foreground", "secrets"), tuple),
    "commands": lambda texts: tuple(CommandPattern.parse(one) for one in texts),
    "effects": _effects,
    "text": lambda texts: tuple(regex.compile(one) for one in texts),
    "approves": frozenset,
}  # fmt: skip


def _known_keys(table: Mapping[str, Any], keys: tuple[str, ...], where: str, line: int) -> None:
    for key in table:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            hint = f"did you mean {near[0]}?" if near else "one of " + ", ".join(keys)
            raise _wrong(where, line, f"has an unknown key {key!r}", hint)


def _wrong(where: str, line: int, what: str, hint: str = "see docs/topics/policy.md") -> BadRequest:
    place = f" (line {line})" if line else ""
    return BadRequest(f"policy.toml: {where}{place} {what}", hint=hint, details={"line": line} if line else None)


def allow_rule(question: Question, verdict: Verdict, name: str) -> str:
    """Return the text of a rule that answers this very question in future, to be shown and then added to the file.

    It allows exactly this text, in this directory if one is known, and approves the rules that asked.
    """
    lines = ["[[rule]]", f"name = {_toml(name)}", 'action = "allow"', f"rights = [{_toml(question.right.value)}]"]
    if question.text:
        lines.append(f"exact = {_toml(question.text)}")
    else:
        lines.append(f"operations = [{_toml(question.operation)}]")
    if question.cwd is not None:
        literal = re.sub(r"[*?[]", r"[\g<0>]", question.cwd)
        lines.append(f"cwd = [{_toml(literal)}]")
    if question.foreground is not None:
        lines.append(f"foreground = [{_toml(question.foreground)}]")
    if question.secret is not None:
        lines.append(f"secrets = [{_toml(question.secret)}]")
    # What a level or a default asks about is no rule that could be approved.
    asked = [kind for kind in verdict.kinds if kind == UNKNOWN_COMMAND or kind not in _NO_RULES]
    if asked:
        lines.append(f"approves = [{', '.join(map(_toml, asked))}]")
    return "\n".join(lines) + "\n"


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def default_policy_text() -> str:
    """Return the policy file that comes with blockpty."""
    data = pkgutil.get_data("blockpty.control", "default_policy.toml")
    assert data is not None
    return data.decode()


@lru_cache(maxsize=1)
def default_policy() -> Policy:
    """Return the policy of `default_policy_text`."""
    return parse_policy(default_policy_text())
