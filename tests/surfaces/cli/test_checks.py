"""The checks of `doctor`: each finds what is wrong with a machine, and changes nothing that lasts."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from blockpty.surfaces.cli import checks


@pytest.mark.parametrize(
    ("version", "numbers"), [("1.10.2", (1, 10, 2)), ("2.0rc1", (2, 0)), ("3", (3,)), ("", ()), ("dev.1", ())]
)
def test_versions_are_compared_as_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert checks._numbers(version) == numbers


@pytest.mark.parametrize(
    ("mode", "status"), [(0o700, "ok"), (0o750, "warning"), (0o701, "warning"), (0o600, "failed"), (0o500, "failed")]
)
def test_the_home_is_for_its_owner_alone(tmp_path: Path, mode: int, status: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    found = checks.check_home(home)
    home.chmod(0o700)
    assert found.status == status
    assert found.remedy == ("" if status == "ok" else f"chmod 700 {home}")


@pytest.mark.parametrize("name", ["conversations", "host"])
def test_a_link_or_a_file_in_the_home_is_refused(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    path = home / name
    path.symlink_to(tmp_path)
    found = checks.check_home(home)
    assert (found.status, found.message) == ("failed", f"{path} is a symbolic link")
    assert str(tmp_path) in found.remedy
    path.unlink()
    path.write_bytes(b"")
    found = checks.check_home(home)
    assert (found.status, found.message) == ("failed", f"{path} is not a directory")


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    assert checks.nearest(home) == tmp_path
    for check in (checks.check_home, checks.check_disk, checks.check_splice, checks.check_socket_path):
        assert check(home).status in ("ok", "warning")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("free_mib", "inodes", "status"),
    [(1024, 1, "ok"), (1023, 1, "warning"), (64, 1, "warning"), (63, 1, "failed"), (9999, 0, "failed")],
)
def test_space_runs_short_before_it_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_mib: int, inodes: int, status: str
) -> None:
    made = SimpleNamespace(f_bavail=free_mib, f_frsize=1 << 20, f_files=9, f_favail=inodes)
    monkeypatch.setattr(os, "statvfs", lambda _: made)
    assert checks.check_disk(tmp_path).status == status


@pytest.mark.parametrize(
    ("hard", "status"),
    [(resource.RLIM_INFINITY, "ok"), (256, "ok"), (255, "warning"), (64, "warning"), (63, "failed")],
)
def test_the_hard_limit_of_open_files_counts(monkeypatch: pytest.MonkeyPatch, hard: int, status: str) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1, hard))
    assert checks.check_open_files().status == status


def test_a_socket_path_may_have_exactly_the_bytes_of_the_system() -> None:
    room = checks._SOCKET_PATH_BYTES - len("//host/host.sock")
    assert checks.check_socket_path(Path("/" + "a" * room)).status == "ok"
    assert checks.check_socket_path(Path("/" + "a" * room + "a")).status == "warning"
    assert checks.check_socket_path(Path("/" + "é" * (room // 2 + 1))).status == "warning"


def test_shells_that_cannot_be_found_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checks.check_shells().status == "failed"
    silent = tmp_path / "bash"
    silent.write_text(f"#!{shutil.which('sh', path=os.defpath)}\n")
    silent.chmod(0o700)
    found = checks.check_shells()
    assert (found.status, found.message) == ("ok", "bash")
