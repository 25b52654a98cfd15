"""`blockpty policy`: made, checked, shown and tried, with no server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from blockpty.control.policy import default_policy_text

RULES = """
approval_timeout_seconds = 20

[levels]
"deploy-*" = "always_ask"

[secret.deploy-key]
command = ["pass", "show", "deploy"]

[[rule]]
name = "tests"
action = "allow"
commands = ["pytest"]

[[rule]]
name = "push"
action = "ask"
commands = ["git push"]
cwd = ["/srv/*"]
reason = "It publishes commits."

[[rule]]
name = "never"
action = "deny"
commands = ["dd"]
"""


def policy(*arguments: str, status: int = 0) -> str:
    """Run the command; return its stdout, or where it fails its stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "blockpty", "policy", *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout


def test_init_writes_the_default_once(home: Path) -> None:
    assert "agents may do everything" in policy("check")
    assert str(home / "policy.toml") in policy("init")
    assert (home / "policy.toml").read_text() == default_policy_text()
    assert (home / "policy.toml").stat().st_mode & 0o777 == 0o600
    (home / "policy.toml").write_text(RULES)
    assert "--force" in policy("init", status=2)
    assert (home / "policy.toml").read_text() == RULES
    policy("init", "--force")
    assert (home / "policy.toml").read_text() == default_policy_text()
    assert [path.name for path in home.iterdir()] == ["policy.toml"]


def test_init_makes_the_home(home: Path) -> None:
    home.rmdir()
    policy("init")
    assert home.stat().st_mode & 0o777 == 0o700


def test_check(home: Path, tmp_path: Path) -> None:
    (home / "policy.toml").write_text(RULES)
    assert json.loads(policy("check", "--json")) == {"ok": True, "path": str(home / "policy.toml"), "rules": 3}
    other = tmp_path / "other.toml"
    for wrong, said in (
        ('[[rule]]\nname = "a"\naction = "perhaps"\n', "line 1"),
        ("[sandbox.x]\nnonsense = 1\n", "nonsense"),
        ("no TOML", "TOML"),
    ):
        other.write_text(wrong)
        assert said in policy("check", str(other), status=2)
    other.write_bytes(b"\xff")
    assert "cannot be read" in policy("check", str(other), status=2)
    assert "no file" in policy("check", str(tmp_path / "missing"), status=2)


def test_show(home: Path) -> None:
    assert "agents may do everything" in policy("show")
    (home / "policy.toml").write_text(RULES)
    shown = policy("show")
    names = [line.split()[1] for line in shown.splitlines() if line.startswith(("deny ", "ask ", "allow "))]
    assert names == ["never", "push:", "tests"]
    assert "push: It publishes commits.\n         cwd: /srv/*\n         commands: git push\n" in shown
    assert "level of deploy-*: always_ask" in shown and "stored secret: deploy-key" in shown
    assert "show" not in shown and "after 20 s" in shown
    holds = json.loads(policy("show", "--json"))
    assert holds["rules"][1] == {
        "name": "push", "action": "ask", "reason": "It publishes commits.", "cwd": ["/srv/*"],
        "commands": ["git push"],
    }  # fmt: skip
    assert (holds["default"]["unknown"], holds["secrets"]) == ("ask", ["deploy-key"])


@pytest.mark.parametrize(
    ("arguments", "action", "rule"),
    [
        (["git push", "--cwd", "/srv/one"], "ask", "push"),
        (["git push", "--cwd", "/home"], "allow", "default.exec"),
        (["true; dd if=a of=b"], "deny", "never"),
        (["eval $x"], "ask", "default.unknown"),
        (["ls", "--conversation", "deploy-1"], "ask", "level.always_ask"),
        (["true; and pytest", "--shell", "fish"], "allow", "tests"),
    ],
)
def test_try(home: Path, arguments: list[str], action: str, rule: str) -> None:
    assert json.loads(policy("try", "git push", "--json"))["action"] == "allow"
    (home / "policy.toml").write_text(RULES)
    found = json.loads(policy("try", *arguments, "--json"))
    assert (found["action"], found["rule"]) == (action, rule)
    assert policy("try", *arguments) == f"{action}  {rule}: {found['reason']}\n"
    assert [path.name for path in home.iterdir()] == ["policy.toml"]
