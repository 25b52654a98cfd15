"""Command `blockpty policy`: the policy of a home, made, checked, shown and tried without a server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from blockpty.control.rules import Rule
    from blockpty.surfaces.cli.invocation import Invocation

_NONE: Final = "no policy: agents may do everything; `blockpty policy init` writes the default one"


def command() -> click.Command:
    """Return the group of commands."""
    from blockpty.surfaces.cli.invocation import anywhere

    return click.Group(
        "policy",
        help="Make, check, show and try the policy for agents, <home>/policy.toml. It guards against accidents and is "
        "no sandbox. No server is needed.",
        short_help="Make, check, show and try the policy for agents.",
        commands=[
            click.Command(
                "init",
                params=[click.Option(["--force"], is_flag=True, help="Replace a policy that is there."), *anywhere()],
                help="Write the default policy into the home, as a file to edit.",
                callback=click.pass_obj(_init),
            ),
            click.Command(
                "check",
                params=[click.Argument(["file"], required=False, metavar="[FILE]"), *anywhere()],
                help="Say whether a policy file is valid, and where it is not; by default that of the home.",
                callback=click.pass_obj(_check),
            ),
            click.Command(
                "show",
                params=[*anywhere()],
                help="Show the policy in effect: rules in the order in which they are tried, and the defaults.",
                callback=click.pass_obj(_show),
            ),
            click.Command(
                "try",
                params=[
                    click.Argument(["text"], metavar="COMMAND"),
                    click.Option(["--cwd"], metavar="DIRECTORY", help="Where it would run; by default here."),
                    click.Option(
                        ["--conversation"], default="", metavar="CONVERSATION_ID", help="In which conversation."
                    ),
                    click.Option(
                        ["--shell"], type=click.Choice(["bash", "zsh", "fish"]), default="bash", show_default=True,
                        help="Which shell would read it.",
                    ),
                    *anywhere(),
                ],
                help="Say what the policy decides about a command of an agent, and why. Nothing is run.",
                callback=click.pass_obj(_try),
            ),
        ],
    )  # fmt: skip


def _init(invocation: Invocation, /, force: bool) -> int:
    from blockpty.control.policy import default_policy_text
    from blockpty.errors import BadRequest
    from blockpty.runtime.policy_file import NAME
    from blockpty.spool.storage import full_is_an_error, open_file

    home = invocation.directory()
    path = home / NAME
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{NAME}.{os.getpid()}")
    with full_is_an_error(path):
        try:
            with open(open_file(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY), "wb", 0) as file:
                file.write(default_policy_text().encode())
                os.fsync(file.fileno())
            if force:
                os.replace(new, path)
            else:
                os.link(new, path)
        except FileExistsError:
            raise BadRequest(f"{path} is there already", hint="--force replaces it") from None
        finally:
            new.unlink(missing_ok=True)
    _say(invocation, {"path": str(path)}, f"{path} has the default policy; it holds within a second")
    return 0


def _check(invocation: Invocation, /, file: str | None) -> int:
    from blockpty.runtime.policy_file import load_policy

    path = _path(invocation) if file is None else Path(file)
    policy = load_policy(path)
    if policy is None and file is not None:
        raise click.UsageError(f"there is no file {file!r}")
    if policy is None:
        _say(invocation, {"path": None}, _NONE)
        return 0
    count = len(policy.rules)
    _say(
        invocation, {"path": str(path), "rules": count}, f"{path} is valid: {count} rule{'' if count == 1 else 's'}"
    )  # fmt: skip
    return 0


def _show(invocation: Invocation, /) -> int:
    from blockpty.runtime.policy_file import load_policy

    path = _path(invocation)
    policy = load_policy(path)
    if policy is None:
        _say(invocation, {"path": None}, _NONE)
        return 0
    rules = [rule for action in ("deny", "ask", "allow") for rule in policy.rules if rule.action == action]
    holds = {
        "path": str(path),
        "approval_timeout_seconds": policy.approval_timeout_seconds,
        "rules": [{"name": one.name, "action": one.action, "reason": one.reason, **_conditions(one)} for one in rules],
        "default": dict(policy.defaults),
        "levels": {name: level.value for name, level in policy.levels.items()},
        # How they are had is of no concern to who only looks.
        "secrets": sorted(policy.secrets),
        "sandboxes": sorted(policy.sandboxes),
    }
    lines = [str(path), ""]
    for one in rules:
        lines.append(f"{one.action:<5}  {one.name}{f': {one.reason}' if one.reason else ''}")
        lines += [f"         {name}: {' | '.join(values)}" for name, values in _conditions(one).items()]
    lines += ["", "without a rule: " + ", ".join(f"{name} {action}" for name, action in policy.defaults.items())]
    lines += [f"level of {name}: {level.value}" for name, level in policy.levels.items()]
    lines += [f"stored secret: {name}" for name in sorted(policy.secrets)]
    lines += [f"sandbox: {name}" for name in sorted(policy.sandboxes)]
    lines.append(f"without an answer, denied after {policy.approval_timeout_seconds} s")
    _say(invocation, holds, *lines)
    return 0


def _try(invocation: Invocation, /, text: str, cwd: str | None, conversation: str, shell: str) -> int:
    from blockpty.control.policy import Question, Right
    from blockpty.runtime.policy_file import load_policy

    policy = load_policy(_path(invocation))
    if policy is None:
        _say(invocation, {"action": "allow", "rule": None, "reason": None}, f"allow  ({_NONE})")
        return 0
    question = Question(
        Right.EXEC, "exec_block", "owner/mcp", "agent", conversation, text, os.path.abspath(cwd or os.getcwd()),
        shell=shell, home=os.environ.get("HOME"),
    )  # fmt: skip
    verdict = policy.decide(question, policy.level_of(conversation))
    said = {"action": verdict.action, "rule": verdict.rule, "reason": verdict.reason}
    _say(invocation, said, f"{verdict.action}  {verdict.rule}: {verdict.reason}")
    return 0


def _path(invocation: Invocation) -> Path:
    from blockpty.runtime.policy_file import NAME

    return invocation.directory() / NAME


def _conditions(rule: Rule) -> dict[str, list[str]]:
    """Return what must hold for a rule, in the words of the file."""
    found: dict[str, list[str]] = {
        "rights": sorted(right.value for right in rule.rights),
        "types_as": [] if rule.types_as == {"agent"} else sorted(rule.types_as),
        **{name: list(getattr(rule, name)) for name in _GLOBS},
        "commands": [" ".join((one.program, *one.words, *one.options)) for one in rule.commands],
        "effects": list(rule.effects),
        "text": [one.pattern for one in rule.text],
        "exact": [] if rule.exact is None else [rule.exact],
        "approves": sorted(rule.approves),
    }
    return {name: values for name, values in found.items() if values}


_GLOBS: Final = ("operations", "principals", "conversations", "cwd", "tty", "foreground", "secrets")


def _say(invocation: Invocation, result: dict[str, Any], *lines: str) -> None:
    from blockpty.surfaces.sanitize import one_line

    if invocation.as_json:
        print(json.dumps({"ok": True, **result}))
        return
    for line in lines:
        print(one_line(line))
