"""Policy files: what the parser and the schema take, held against each other in both directions."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from blockpty.control.policy import DEFAULT_ACTIONS, Level, Policy, Right, default_policy_text, parse_policy
from blockpty.control.rules import Rule
from blockpty.control.sandbox import SandboxProfile
from blockpty.errors import BadRequest

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "spool_schema" / "policy-v1.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

RULE = '[[rule]]\nname = "a"\naction = "ask"\n'
ALLOW = '[[rule]]\nname = "a"\naction = "allow"\n'
BOX = "[sandbox.a]\n"
TIMEOUT = "approval_timeout_seconds = "
GOOD = [
    "",
    "version = 1",
    '[default]\nexec = "ask"\nunknown = "deny"',
    "\n".join(["[default]", *(f'{name} = "deny"' for name in DEFAULT_ACTIONS)]),
    RULE,
    f'{RULE}commands = "git"\ntext = ["a+"]\neffects = ["device-write"]\nreason = ""\nexact = ""',
    f'{RULE}rights = ["exec", "input"]\ntypes_as = "user"\noperations = "run"\nprincipals = ["a", "b"]',
    f'{RULE}conversations = "a"\ncwd = "/a"\ntty = "prompt"\nforeground = "vim"\nsecrets = "key"',
    f'{ALLOW}approves = ["default.unknown"]',
    f"{TIMEOUT}0",
    f"{TIMEOUT}86_400",
    '[levels]\n"*" = "ask_first"\n"a b" = "always_ask"\nc = "always_allow"',
    '[secret.deploy-key]\ncommand = ["pass", "show", "deploy"]\n[secret."a b"]\ncommand = ["x"]',
    "[levels]\n[secret]\n[sandbox]",
    f"{BOX}network = true",
    f'{BOX}method = "bwrap"\ncwd = "read_only"\nread_write = ["/a", "~/b", "~", "/"]\nread_only = ["/a/...", "//"]\n'
    'hide = []\nenv = { A = "", "B C" = "1" }\n[sandbox.default]',
    default_policy_text(),
]
BAD = {
    "version = 2": "version",
    "version = true": "version",
    "rules = []": "did you mean rule",
    "rule = 1": "table",
    "rule = [1]": "table",
    '[[rule]]\nname = "a"': "action",
    '[[rule]]\naction = "ask"': "name",
    '[[rule]]\nname = "A b"\naction = "ask"': "name",
    '[[rule]]\nname = "a\\n"\naction = "ask"': "name",
    '[[rule]]\nname = "default.x"\naction = "ask"': "name",
    '[[rule]]\nname = "a"\naction = "forbid"': "action",
    f'{RULE}comands = ["git"]': "did you mean commands",
    f"{RULE}commands = [1]": "list of strings",
    f"{RULE}commands = []": "list of strings",
    f'{RULE}commands = [" "]': "bad commands",
    f'{RULE}cwd = ""': "list of strings",
    f"{RULE}reason = 3": "not a string",
    f'{RULE}effects = ["burn"]': "burn",
    f'{RULE}rights = ["fly"]': "fly",
    f'{RULE}types_as = ["cat"]': "cat",
    f'{RULE}approves = ["b"]': "approves",
    '[default]\nexec = "maybe"': "allow, ask, deny",
    "[default]\nflying = 1": "flying",
    "default = 1": "table",
    f"{TIMEOUT}-1": "approval_timeout_seconds",
    f"{TIMEOUT}86401": "approval_timeout_seconds",
    f"{TIMEOUT}true": "approval_timeout_seconds",
    f"{TIMEOUT}1.5": "approval_timeout_seconds",
    f'{TIMEOUT}"60"': "approval_timeout_seconds",
    "levels = 1": "levels",
    '[levels]\n"*" = "ask"': "levels",
    "secret = 1": "secret",
    "[secret.a]": "secret",
    '[secret.a]\ncommand = "pass"': "secret",
    "[secret.a]\ncommand = []": "secret",
    "[secret.a]\ncommand = [1]": "secret",
    '[secret.a]\ncommand = ["x"]\nvalue = "y"': "secret",
    "sandbox = 1": "sandbox",
    "[sandbox]\na = 1": "sandbox.a",
    f"{BOX}netwrok = true": "sandbox.a.netwrok",
    f"{BOX}network = 1": "sandbox.a.network",
    f'{BOX}method = "chroot"': "sandbox.a.method",
    f'{BOX}cwd = "none"': "sandbox.a.cwd",
    f'{BOX}hide = "~/.ssh"': "sandbox.a.hide",
    f'{BOX}hide = ["x"]': "sandbox.a.hide",
    f'{BOX}hide = ["~me/x"]': "sandbox.a.hide",
    f'{BOX}read_only = ["/a/../b"]': "sandbox.a.read_only",
    f'{BOX}read_write = ["/a/.."]': "sandbox.a.read_write",
    f'{BOX}read_write = ["/\\u0000"]': "sandbox.a.read_write",
    f"{BOX}env = {{ A = 1 }}": "sandbox.a.env",
}
# What no JSON Schema can say, by the rule that it cannot express.
BEYOND = {
    "the name of a rule is unique": (f"{RULE}\n{RULE}", r"line 5\).*another rule"),
    "text is a regular expression": (f'{RULE}text = ["("]', r"rule 'a' \(line 1\) has a bad text"),
    "a rule that denies cannot be approved": (
        f'[[rule]]\nname = "b"\naction = "deny"\n{ALLOW}approves = "b"', "which denies"
    ),
    "a float is no integer, even if it is whole": (f"{TIMEOUT}120.0", "approval_timeout_seconds"),
}  # fmt: skip
NO_TOML = ["a = " + "[" * 5_000, "a = " + "1" * 10_000, "[[rule"]


def problem_of(text: str) -> BadRequest | None:
    try:
        parse_policy(text)
    except BadRequest as problem:
        return problem
    return None


@pytest.mark.parametrize("text", GOOD)
def test_a_good_file_is_read_and_is_what_the_schema_says(text: str) -> None:
    assert isinstance(parse_policy(text), Policy)
    assert VALIDATOR.is_valid(tomllib.loads(text))


@pytest.mark.parametrize("text", BAD)
def test_a_bad_file_is_refused_by_the_parser_and_by_the_schema(text: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(BAD[text])):
        parse_policy(text)
    assert not VALIDATOR.is_valid(tomllib.loads(text))


@pytest.mark.parametrize("rule", BEYOND)
def test_what_no_schema_can_say_is_refused_by_the_parser_alone(rule: str) -> None:
    text, reason = BEYOND[rule]
    with pytest.raises(BadRequest, match=reason):
        parse_policy(text)
    assert VALIDATOR.is_valid(tomllib.loads(text))


@pytest.mark.parametrize("text", NO_TOML)
def test_what_is_no_toml_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="not valid TOML"):
        parse_policy(text)


@pytest.mark.parametrize("text", [*BAD, *NO_TOML, *(text for text, _ in BEYOND.values())])
def test_a_refusal_names_the_file_and_gives_a_hint(text: str) -> None:
    problem = problem_of(text)
    assert problem is not None and problem.message.startswith("policy.toml") and problem.hint


@given(st.text() | st.text('[]rule="ask\nnmcotd ', max_size=60))
@example("[secret.a]\ncommand = [1979-05-27]")
def test_any_file_is_a_policy_or_a_bad_request(text: str) -> None:
    problem = problem_of(text)
    if problem is None:
        assert VALIDATOR.is_valid(tomllib.loads(text))
    else:
        assert problem.message.startswith("policy.toml") and problem.hint


# --- the keys


def keys_of(text: str) -> set[str]:
    """Return the keys that the parser says it knows, when it is given one that is like none of them."""
    problem = problem_of(text)
    assert problem is not None
    return set(re.sub(r"^(one of|the keys are) ", "", problem.hint).split(", "))


def test_the_schema_has_every_key_of_the_parser_and_no_other() -> None:
    top, defined = SCHEMA["properties"], SCHEMA["$defs"]
    assert top.keys() == keys_of("qqqqqq = 1")
    assert top["default"]["properties"].keys() == keys_of("[default]\nqqqqqq = 1") == DEFAULT_ACTIONS.keys()
    rule = set(Rule.__struct_fields__)
    assert defined["rule"]["properties"].keys() == keys_of(f"{RULE}qqqqqq = 1") == rule
    box = set(SandboxProfile.__struct_fields__) - {"name"}
    assert defined["sandbox"]["properties"].keys() == keys_of(f"{BOX}qqqqqq = 1") == box


# --- files of any shape


def toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{toml(key)} = {toml(one)}' for key, one in value.items())}}}"
    return repr(value)


# No whole float and no regular expression that is none: they are in BEYOND.
JUNK = st.sampled_from([0, 1, -1, 1.5, True, "", " ", "a", "ask", [], [""], [1], ["a"], {}, {"a": 1}, {"a": {}}])
Values = st.SearchStrategy[Any]


def files(*, wrong: bool) -> Values:
    """Return strategies for files of which most are good, or, if `wrong`, most are bad in one place or another."""

    def of(good: Values) -> Values:
        return st.one_of(good, good, good, good, JUNK) if wrong else good

    def texts(one: Values) -> Values:
        return of(one | st.lists(one, min_size=not wrong, max_size=3))

    def choice(*values: str) -> Values:
        return st.sampled_from(values)

    def table(keys: dict[str, Values], *always: str) -> Values:
        optional = {key: value for key, value in keys.items() if key not in always}
        good = st.fixed_dictionaries({key: keys[key] for key in always}, optional=optional)
        return of(good | st.fixed_dictionaries({}, optional=keys | {"qqqqqq": JUNK})) if wrong else good

    def named(one: Values) -> Values:
        return of(st.dictionaries(name, one, max_size=2))

    action = of(choice("allow", "ask", "deny"))
    name = st.text("ab-._\n/~ é*", min_size=not wrong, max_size=4)
    path = st.lists(choice("a", "..", ".", "...", "\n", " ", "~"), max_size=4).map(lambda one: "/" + "/".join(one))
    paths = of(st.lists(path | path.map(lambda one: "~" + one) | (name if wrong else path), max_size=2))
    rule = table(
        {
            "name": st.from_regex(r"[a-z0-9][a-z0-9._-]{0,63}", fullmatch=True) | (name if wrong else st.just("a")),
            "action": action, "reason": of(name), "exact": of(name), "text": texts(choice("a+", "^b$")),
            "rights": texts(choice(*(right.value for right in Right))),
            "types_as": texts(choice("agent", "user", "engine")), "commands": texts(choice("git", "git push -f", "*")),
            "effects": texts(choice("delete-outside", "device-write", "run-download")),
            **({"approves": texts(st.just("default.unknown"))} if wrong else {}),
            **dict.fromkeys(("operations", "principals", "conversations", "cwd"), texts(name)),
            **dict.fromkeys(("tty", "foreground", "secrets"), texts(name)),
        },
        "name", "action",
    )  # fmt: skip
    box = table({
        "method": of(choice("auto", "bwrap", "landlock")), "network": of(st.booleans()),
        "cwd": of(choice("read_write", "read_only")), "env": named(of(name)),
        "read_write": paths, "read_only": paths, "hide": paths,
    })  # fmt: skip
    return table({
        "version": of(st.just(1)), "rule": of(st.lists(rule, max_size=2)), "sandbox": named(box),
        "default": table(dict.fromkeys(DEFAULT_ACTIONS, action)),
        "approval_timeout_seconds": of(st.integers(0, 86_400)),
        "levels": named(of(choice(*(level.value for level in Level)))),
        "secret": named(table({"command": of(st.lists(of(name), min_size=1, max_size=2))}, "command")),
    }).filter(lambda file: isinstance(file, dict))  # fmt: skip


@given(files(wrong=False) | files(wrong=True))
@example({"sandbox": {"a": {"hide": ["/..\n"]}}})
@example({"sandbox": {"a": {"hide": ["/..\n/", "~\n"]}}})
def test_the_parser_and_the_schema_take_the_same_files(file: dict[str, Any]) -> None:
    text = "\n".join(f"{toml(key)} = {toml(value)}" for key, value in file.items())
    assert tomllib.loads(text) == file
    problem = problem_of(text)
    if problem is not None and "has the name of another rule" in problem.message:
        return  # BEYOND
    assert (problem is None) == VALIDATOR.is_valid(file), problem
