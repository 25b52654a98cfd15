"""Startup files of a shell as they are written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from blockpty.errors import SpoolCorrupt
from blockpty.host.shells.plans import ShellPlan
from blockpty.runtime.rcfiles import remove_private, write_private


def plan_of(*files: tuple[str, bytes]) -> ShellPlan:
    return ShellPlan(name="sh", argv=("sh",), env={}, files=files, secret_files=())


def test_they_are_private_and_new(tmp_path: Path) -> None:
    write_private(tmp_path, plan_of(("rc", b"old")))
    kept = os.open(tmp_path / "rc", os.O_RDONLY)
    write_private(tmp_path, plan_of(("rc", b"new"), ("zdot/deeper/.zshrc", b"zsh")))
    assert (tmp_path / "rc").read_bytes() == b"new"
    assert (tmp_path / "zdot" / "deeper" / ".zshrc").read_bytes() == b"zsh"
    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    # A shell that reads the old file meanwhile reads it to its end.
    assert os.read(kept, 10) == b"old"
    os.close(kept)


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "target").write_bytes(b"mine")
    (inside / "rc").symlink_to(outside / "target")
    write_private(inside, plan_of(("rc", b"new")))
    assert (outside / "target").read_bytes() == b"mine" and not (inside / "rc").is_symlink()
    (inside / "zdot").symlink_to(outside)
    with pytest.raises(SpoolCorrupt, match="zdot"):
        write_private(inside, plan_of(("zdot/.zshrc", b"zsh")))
    assert list(outside.iterdir()) == [outside / "target"]


def test_only_those_of_one_shell_are_removed(tmp_path: Path) -> None:
    write_private(tmp_path, plan_of(("rc/1/bashrc", b"old"), ("rc/12/bashrc", b"new")))
    remove_private(tmp_path, 1)
    remove_private(tmp_path, 1)
    assert [path.name for path in (tmp_path / "rc").iterdir()] == ["12"]
