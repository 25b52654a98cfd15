"""The policy's file: read again when it changed, added to whole, and closed to agents where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.errors import BadRequest
from blockpty.files import opening
from blockpty.runtime.policy_file import NAME, PolicyFile

RULE = '[[rule]]\nname = "{name}"\naction = "deny"\ncommands = ["rm"]\n'


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "CHECK_SECONDS", 0.0)


def names(file: PolicyFile) -> list[str]:
    policy = file.current()
    return [] if policy is None else [rule.name for rule in policy.rules]


def test_it_is_read_again(tmp_path: Path) -> None:
    file = PolicyFile(tmp_path)
    assert file.current() is None
    (tmp_path / NAME).write_text(RULE.format(name="one"))
    assert names(file) == ["one"]
    file.add(RULE.format(name="two"))
    assert names(file) == names(PolicyFile(tmp_path)) == ["one", "two"]
    file.add(RULE.format(name="two"))  # two calls may have waited for the same
    assert names(file) == ["one", "two"]
    (tmp_path / NAME).unlink()
    assert file.current() is None


def test_what_would_be_wrong_is_not_added(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(RULE.format(name="one"))
    file = PolicyFile(tmp_path)
    for wrong in ("rules = 3", RULE.format(name="one").replace("rm", "mv"), "["):
        with pytest.raises(BadRequest):
            file.add(wrong)
    assert names(file) == ["one"] and [path.name for path in tmp_path.iterdir()] == [NAME]


def test_a_file_that_an_editor_is_about_to_write_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(RULE.format(name="one"))
    file = PolicyFile(tmp_path)
    (tmp_path / NAME).write_text("")
    assert names(file) == names(file) == ["one"]
    (tmp_path / NAME).write_text(RULE.format(name="two"))
    assert names(file) == ["two"]


@pytest.mark.parametrize("content", [b"x = 1", b"\xff\xfe", b"[[rule]]\n", b"["])
def test_a_wrong_file_is_an_error_each_time(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    file = PolicyFile(tmp_path)
    for _ in range(2):
        with pytest.raises(BadRequest, match=r"policy\.toml"):
            file.current()
    (tmp_path / NAME).write_text(RULE.format(name="one"))
    assert names(file) == ["one"]
