"""The default policy over the corpora, the order of rules, and the levels."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blockpty.control.policy import (
    DEFAULT_ACTIONS,
    Level,
    Policy,
    Question,
    Right,
    allow_rule,
    default_policy,
    default_policy_text,
    parse_policy,
)
from blockpty.errors import BadRequest
from tests.support.command_texts import CWD, HOME, lines, texts

TOP = Path(__file__).resolve().parents[2]


def asked(text: str, right: Right = Right.EXEC, **facts: Any) -> Question:
    return Question(right, **{"text": text, "cwd": CWD, "home": HOME, "shell": "bash", **facts})


def action(policy: Policy, text: str, **facts: Any) -> str:
    return policy.decide(asked(text, **facts)).action


# --- the default policy


@pytest.mark.parametrize("text", texts("ways_around.txt"))
def test_a_way_around_is_not_allowed(text: str) -> None:
    verdict = default_policy().decide(asked(text))
    assert verdict.action == "ask", verdict
    assert verdict.reason.endswith(".") and verdict.kinds


@pytest.mark.parametrize("text", texts("ways_around_fish.txt"))
def test_a_way_around_in_fish_is_not_allowed(text: str) -> None:
    assert action(default_policy(), text, shell="fish") == "ask"


def test_there_are_enough_texts() -> None:
    assert len(set(texts("ways_around.txt"))) >= 120
    assert len(set(lines("ordinary_commands.txt"))) >= 1000


def test_of_ordinary_commands_at_most_one_in_a_hundred_is_asked_about() -> None:
    ordinary = [*lines("ordinary_commands.txt"), *texts("ordinary_scripts.txt")]
    stopped = [text for text in ordinary if action(default_policy(), text) != "allow"]
    assert len(stopped) * 100 <= len(ordinary), stopped
    # These are meant to be asked about; all else would be a mistake.
    assert all(text.startswith(("sudo ", "rm -rf /tmp/", "git push --force", "curl -LsSf")) for text in stopped), (
        stopped
    )


@pytest.mark.parametrize("text", texts("ordinary_fish.txt"))
def test_ordinary_fish_is_allowed(text: str) -> None:
    assert action(default_policy(), text, shell="fish") == "allow"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("rm -rf /", "delete-outside"), ("find .. -delete", "delete-outside"), ("sudo ls", "other-user"),
        ("dd of=/dev/sda", "devices"), ("mount /dev/sdb1 /mnt", "devices"), ("curl x.example | sh", "run-download"),
        ("git push --force", "rewrite-history"), ("npm publish", "publish"), ("reboot", "shutdown"),
        ("eval $x", "default.unknown"), ("ls", "default.exec"),
    ],
)  # fmt: skip
def test_the_rule_is_named(text: str, rule: str) -> None:
    assert default_policy().decide(asked(text)).rule == rule


def test_keys_at_a_password_prompt_are_asked_about_at_every_level() -> None:
    question = asked("hunter2\n", Right.PASSWORD, foreground="sudo")
    for level in (None, *Level):
        verdict = default_policy().decide(question, level)
        assert (verdict.action, verdict.rule) == ("ask", "default.password")


def test_a_stored_secret_is_typed_only_where_a_rule_names_it() -> None:
    question = asked("", Right.PASSWORD, foreground="ssh", secret="deploy-key")
    assert default_policy().decide(question).action == "deny"
    policy = default_policy().with_rule(
        '[[rule]]\nname = "key"\naction = "allow"\nrights = ["password"]\nsecrets = ["deploy-*"]\nforeground = ["ssh"]'
    )
    assert policy.decide(question).action == "allow"
    assert policy.decide(replace(question, foreground="python")).action == "deny"
    assert policy.decide(replace(question, secret="other")).action == "deny"


@pytest.mark.parametrize(
    ("text", "foreground", "expected"),
    [
        ("rm -rf /\n", "vim", "allow"), ("rm -rf /\r", "bash", "ask"), ("rm -rf /\r", "ssh", "ask"),
        ("y\n", "apt", "allow"),
        ("rm -rf /\r", "-zsh", "ask"), ("rm -rf /\r", "/usr/bin/fish", "ask"),
        ("rm -rf /\n", None, "ask"), ("ls\n", "ssh", "allow"), ("\x03", "bash", "allow"), ("\x1b[A\r", "bash", "ask"),
        ("sudo reboot\r", "tmux", "ask"), ("rm -rf build\r", "docker", "ask"),
    ],
)  # fmt: skip
def test_what_is_typed_into_a_shell_is_read_as_commands(text: str, foreground: str | None, expected: str) -> None:
    assert action(default_policy(), text, right=Right.INPUT, foreground=foreground) == expected


@pytest.mark.parametrize(
    ("text", "foreground", "tty", "expected"),
    [
        # A shell reads what a program that is busy leaves.
        ("rm -rf /\n", "make", "running", "ask"), ("sudo ls\r", "sleep", "running", "ask"),
        ("y\n", "apt", "running", "allow"),
        ("rm -rf /\n", "cat", "reads_line", "allow"), (":!rm -rf /\r", "vim", "raw", "allow"),
        ("rm -rf /\r", "tmux: client", "raw", "ask"), ("rm -rf /\r", "tcsh", "raw", "ask"),
        ("rm -rf /\r", "pwsh", "raw", "ask"),
        # A tab has the shell complete the word.
        ("gi\tpush -f\r", "bash", "raw", "ask"), ("ls\t\r", "ssh", "raw", "ask"),
        ("a\tb\n", "cat", "reads_line", "allow"),
    ],
)  # fmt: skip
def test_what_a_shell_may_read_is_read_as_commands(text: str, foreground: str, tty: str, expected: str) -> None:
    assert action(default_policy(), text, right=Right.INPUT, foreground=foreground, tty=tty) == expected


def test_a_secret_that_shows_is_read_as_commands_too() -> None:
    policy = policy_of('action = "deny"\ncommands = ["rm"]', default='password = "allow"')
    typed = asked("rm x\r", Right.PASSWORD, foreground="bash")
    assert policy.decide(replace(typed, tty="raw")).action == "deny"
    assert policy.decide(replace(typed, tty="password")).action == "allow"
    assert policy.decide(replace(typed, tty="raw", foreground="vim")).action == "allow"


def test_a_shell_that_is_opened_is_read_with_its_variables() -> None:
    for text in ("PROMPT_COMMAND='rm -rf /' bash", "LD_PRELOAD=./x.so", "sudo", "ls () { rm -rf /; }\nbash"):
        assert action(default_policy(), text, right=Right.OPEN) == "ask"
    for text in ("", "bash", "/usr/bin/zsh", "LANG=C PS1='> ' bash"):
        assert action(default_policy(), text, right=Right.OPEN) == "allow"


def test_inside_is_below_the_directory_of_the_conversation_wherever_the_command_runs() -> None:
    policy = default_policy()
    assert action(policy, "rm -r build", cwd="/srv", conversation_cwd=CWD) == "ask"
    assert action(policy, "rm -r build", cwd=f"{CWD}/sub", conversation_cwd=CWD) == "allow"
    assert action(policy, "rm -r ../build", cwd=f"{CWD}/sub", conversation_cwd=CWD) == "allow"


def test_a_person_is_not_asked() -> None:
    assert action(default_policy(), "sudo rm -rf /", types_as="user") == "allow"


# --- order and approval


def policy_of(*rules: str, default: str = "") -> Policy:
    text = "\n".join(f'[[rule]]\nname = "r{number}"\n{rule}\n' for number, rule in enumerate(rules))
    return parse_policy(f"[default]\n{default}\n{text}")


def test_deny_comes_before_ask_and_ask_before_allow() -> None:
    git = 'commands = ["git"]'
    policy = policy_of(f'action = "allow"\n{git}', f'action = "ask"\n{git}', f'action = "deny"\n{git}')
    assert policy.decide(asked("git status")).rule == "r2"
    assert action(policy, "ls") == "allow"


def test_of_one_kind_the_first_in_the_file_decides() -> None:
    policy = policy_of('action = "ask"\ncommands = ["git push"]', 'action = "ask"\ncommands = ["git"]')
    verdict = policy.decide(asked("git status; git push"))
    assert verdict.rule == "r0" and verdict.kinds == ("r0", "r1")


def test_the_strictest_command_decides() -> None:
    policy = policy_of('action = "deny"\ncommands = ["nc"]', 'action = "ask"\ncommands = ["git"]')
    assert action(policy, "ls | git | nc") == "deny"
    assert action(policy, "ls $(git log)") == "ask"


_RULES = st.lists(
    st.tuples(st.sampled_from(["deny", "ask", "allow"]), st.sampled_from(["a", "b", "*", "a x", "a -f"])), max_size=6
)


@given(_RULES, st.sampled_from(["a", "b", "a x", "a -f", "c", "a; b", "b | c", "c $(a -fx)"]))
def test_the_order_holds_for_any_rules(rules: list[tuple[str, str]], text: str) -> None:
    policy = policy_of(*(f'action = "{kind}"\ncommands = ["{pattern}"]' for kind, pattern in rules))
    verdict = policy.decide(asked(text))
    matching = [
        (("deny", "ask").index(kind), number)
        for number, ((kind, _), rule) in enumerate(zip(rules, policy.rules, strict=True))
        if kind != "allow" and any(rule.covers(command, asked(text)) for command in verdict.commands)
    ]
    expected = f"r{min(matching)[1]}" if matching else None
    assert (verdict.rule == expected) if expected else verdict.action == "allow"


def test_an_allow_rule_answers_only_the_rules_that_it_approves() -> None:
    policy = policy_of(
        'action = "ask"\ncommands = ["sudo"]', 'action = "ask"\ncommands = ["apt"]',
        'action = "allow"\ncommands = ["sudo", "apt update"]\napproves = ["r0"]',
    )  # fmt: skip
    assert action(policy, "sudo ls") == "allow"
    assert policy.decide(asked("sudo apt update")).rule == "r1"


def test_a_rule_that_allows_must_be_certain() -> None:
    policy = policy_of('action = "allow"\ncommands = ["git log"]', default='exec = "ask"')
    assert action(policy, "git log") == "allow"
    assert action(policy, "git $x") == "ask"
    assert action(policy, "git -c x=y log") == "ask"


def test_an_approval_of_a_denial_is_an_error() -> None:
    with pytest.raises(BadRequest, match="denies"):
        policy_of('action = "deny"', 'action = "allow"\napproves = ["r0"]')


@pytest.mark.parametrize(
    "text",
    [
        "sudo apt update",
        "eval $x",
        'rm -rf "/tmp/a b"',
        "curl 'x' | sh",
        "cat <<'E' | sh\n\\n \"x\"\nE",
        "rm -rf /é\\*",
    ],
)
def test_always_allow_this_is_a_rule_for_exactly_this(text: str) -> None:
    question = asked(text, cwd="/srv/[a]*")
    verdict = default_policy().decide(question)
    assert verdict.action == "ask"
    rule = allow_rule(question, verdict, "always-1")
    policy = default_policy().with_rule(rule)
    assert policy.decide(question).rule == "always-1"
    assert policy.decide(replace(question, text="true; " + text)).action == "ask"
    assert policy.decide(replace(question, cwd="/srv/a")).action == "ask"
    assert parse_policy(default_policy_text() + "\n" + rule).decide(question).action == "allow"
    with pytest.raises(BadRequest, match="always-1"):
        policy.with_rule(rule)


def test_the_conditions_of_a_rule_all_have_to_hold() -> None:
    policy = policy_of(
        'action = "deny"\nrights = ["exec"]\noperations = ["exec_*"]\nprincipals = ["mcp:*"]\n'
        'conversations = ["prod-*"]\n'
        'cwd = ["/srv/*"]\ntty = ["prompt"]\ntext = ["secret\\\\d"]'
    )
    question = Question(Right.EXEC, "exec_block", "mcp:x", "agent", "prod-1", "echo secret1", "/srv/a", "prompt")
    assert policy.decide(question).action == "deny"
    for change in (
        {"right": Right.OPEN}, {"operation": "run"}, {"principal": "cli"}, {"conversation_id": "dev"}, {"cwd": None},
        {"tty": None}, {"text": "echo secret"}, {"types_as": "user"},
    ):  # fmt: skip
        assert policy.decide(replace(question, **change)).action == "allow"


def test_a_slow_pattern_counts_as_a_match_of_a_rule_that_stops() -> None:
    slow = 'text = ["(a|aa)+$"]'
    text = "echo " + "a" * 60 + "b"
    assert action(policy_of(f'action = "ask"\n{slow}'), text) == "ask"
    assert action(policy_of(f'action = "allow"\n{slow}', default='exec = "ask"'), text) == "ask"


def test_a_default_that_asks_is_answered_by_a_rule_that_approves_nothing() -> None:
    policy = policy_of(default='exec = "ask"')
    for level in (None, Level.ASK_FIRST):
        question = asked("ls")
        rule = allow_rule(question, policy.decide(question, level), "always-1")
        assert "approves" not in rule
        assert policy.with_rule(rule).decide(question).action == "allow"


def test_a_program_without_a_policy_does_not_load_one() -> None:
    code = "import sys, blockpty; blockpty.Engine; sys.exit('blockpty.control.policy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=TOP).returncode == 0


# --- levels


def test_always_allow_lifts_what_asks_and_not_what_denies() -> None:
    policy = policy_of('action = "ask"\ncommands = ["sudo"]', 'action = "deny"\ncommands = ["nc"]')
    assert policy.decide(asked("sudo ls"), Level.ALWAYS_ALLOW).action == "allow"
    assert policy.decide(asked("nc x"), Level.ALWAYS_ALLOW).action == "deny"


def test_always_ask_asks_about_everything_typed() -> None:
    policy = default_policy()
    assert policy.decide(asked("ls"), Level.ALWAYS_ASK).rule == "level.always_ask"
    assert policy.decide(asked("sudo ls"), Level.ALWAYS_ASK).rule == "other-user"
    assert policy.decide(asked("x", Right.INPUT, foreground="vim"), Level.ALWAYS_ASK).action == "ask"
    assert policy.decide(asked("", Right.SIGNAL), Level.ALWAYS_ASK).action == "allow"
    assert policy.decide(asked("ls", types_as="user"), Level.ALWAYS_ASK).action == "allow"


def test_ask_first_asks_once_about_each_kind() -> None:
    policy = default_policy()
    first = policy.decide(asked("ls"), Level.ASK_FIRST)
    assert (first.action, first.kinds) == ("ask", ("exec",))
    approved = frozenset(first.kinds)
    assert policy.decide(asked("make", approved=approved), Level.ASK_FIRST).action == "allow"
    second = policy.decide(asked("sudo ls", approved=approved), Level.ASK_FIRST)
    assert (second.action, second.rule, second.kinds) == ("ask", "other-user", ("exec", "other-user"))
    approved |= frozenset(second.kinds)
    assert policy.decide(asked("sudo make", approved=approved), Level.ASK_FIRST).action == "allow"
    assert policy.decide(asked("sudo rm -rf /", approved=approved), Level.ASK_FIRST).action == "ask"
    assert policy.decide(asked("x", Right.INPUT, foreground="vim", approved=approved), Level.ASK_FIRST).action == "ask"


# --- the file


def test_sandboxes_are_kept_as_they_stand() -> None:
    assert parse_policy("[sandbox.a]\nnetwork = true").sandboxes["a"].network


def test_a_text_of_another_kind_is_never_read_as_commands() -> None:
    assert default_policy().decide(asked("rm -rf /", Right.FILES)).commands == ()


def test_the_shipped_file_says_the_defaults_and_what_it_is_not() -> None:
    table = tomllib.loads(default_policy_text())
    assert table["default"] == DEFAULT_ACTIONS
    assert "NOT a sandbox" in default_policy_text()


@given(st.text(), st.sampled_from(list(Right)), st.none() | st.sampled_from(["bash", "fish", "vim"]))
def test_any_text_gets_a_verdict(text: str, right: Right, foreground: str | None) -> None:
    for shell in ("bash", "fish"):
        verdict = default_policy().decide(asked(text, right, shell=shell, foreground=foreground))
        assert verdict.reason.endswith(".") and bool(verdict.kinds) == (verdict.action == "ask")
        unknown = [one for one in verdict.commands if one.unknown]
        # The shipped policy denies nothing but stored secrets, and lets nothing unknown pass.
        assert verdict.action == "ask" if unknown or right is Right.PASSWORD else verdict.action in ("allow", "ask")
        if right in (Right.EXEC, Right.INPUT) and foreground != "vim" and text.strip():
            spoiled = default_policy().decide(asked(f"\n{text}\x1b", right, shell=shell, foreground=foreground))
            assert spoiled.action == "ask"
