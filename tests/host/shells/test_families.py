"""Families of shells by name, and the search for a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.errors import SpawnFailed
from blockpty.host.shells.families import family_of, find_shell, is_supported


@pytest.mark.parametrize(
    ("shell", "family"),
    [
        ("bash", "bash"), ("/usr/bin/bash-5.2", "bash"), ("-rbash", "bash"), ("zsh", "zsh"), ("zsh-5.9", "zsh"),
        ("fish", "fish"), ("sh", "posix"), ("busybox", "posix"), ("ksh93", "posix"), ("ksh93u", "posix"),
        ("python3", None), ("bashful", None), ("nu", None), ("", None),
    ],
)  # fmt: skip
def test_families(shell: str, family: str | None) -> None:
    assert family_of(shell) == family
    assert is_supported(shell) is (family in ("bash", "zsh", "fish"))


def program(path: Path) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_users_own_shell_goes_first(tmp_path: Path) -> None:
    own, other = program(tmp_path / "own" / "zsh"), program(tmp_path / "bin" / "bash")
    assert find_shell(None, {"SHELL": own, "PATH": str(tmp_path / "bin")}) == own
    # One without full support is only used on request.
    ksh = program(tmp_path / "own" / "ksh")
    assert find_shell(None, {"SHELL": ksh, "PATH": str(tmp_path / "bin")}) == other
    assert find_shell("bash", {"PATH": f"relative:{tmp_path}/bin"}) == other


@pytest.mark.parametrize("shell", ["missing", "/missing/bash", "a/b", "", "bash\0", "/etc", "/etc/passwd"])
def test_what_is_not_there_is_said(shell: str, tmp_path: Path) -> None:
    with pytest.raises(SpawnFailed) as caught:
        find_shell(shell, {"PATH": str(tmp_path)})
    assert caught.value.hint


def test_without_any_shell(tmp_path: Path) -> None:
    with pytest.raises(SpawnFailed, match="neither bash nor zsh nor fish"):
        find_shell(None, {"PATH": str(tmp_path)})


def test_a_file_that_cannot_be_executed_is_no_shell(tmp_path: Path) -> None:
    (tmp_path / "bash").write_text("x")
    with pytest.raises(SpawnFailed):
        find_shell(str(tmp_path / "bash"), {"PATH": ""})
