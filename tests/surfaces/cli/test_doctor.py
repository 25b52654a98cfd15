"""`blockpty doctor` against machines and homes that are well, and against broken ones."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import convert

import blockpty
from blockpty.runtime import sandboxing
from blockpty.surfaces.cli import checks
from blockpty.surfaces.cli import doctor as doctor_module
from blockpty.surfaces.cli.checks import Finding
from tests.support.left_files import left_socket


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "blockpty", "doctor", *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def found(*arguments: str, status: int) -> dict[str, Finding]:
    result = doctor(*arguments, "--json")
    assert result.returncode == status, result.stdout + result.stderr
    report = json.loads(result.stdout)
    findings = {one["name"]: convert(one, Finding) for one in report["checks"]}
    assert report["ok"] is True
    assert report["failed"] == sum(one.status == "failed" for one in findings.values())
    assert report["warnings"] == sum(one.status == "warning" for one in findings.values())
    assert all(one.remedy for one in findings.values() if one.status != "ok")
    return findings


def test_a_home_that_is_not_there_is_not_made(home: Path) -> None:
    home.rmdir()
    findings = found(status=0)
    assert "will be made" in findings["home"].message
    assert (findings["host"].status, findings["conversations"].status) == ("ok", "ok")
    assert not home.exists()


def test_it_changes_nothing(home: Path) -> None:
    (home / "conversations").mkdir(mode=0o755)
    os.chmod(home / "conversations", 0o755)
    before = os.lstat(home / "conversations").st_mode
    assert found(status=0)["home"].status == "warning"
    assert sorted(home.iterdir()) == [home / "conversations"]
    assert os.lstat(home / "conversations").st_mode == before


def test_for_a_person(home: Path) -> None:
    os.chmod(home, 0o755)
    result = doctor()
    assert result.returncode == 0
    assert f"chmod 700 {home}" in result.stdout and "0 failed" in result.stdout and "\x1b" not in result.stdout


def make_link(home: Path) -> None:
    home.rename(home.with_name("real"))
    home.symlink_to(home.with_name("real"))


def make_file(home: Path) -> None:
    home.rmdir()
    home.write_text("not a directory")


def make_host_open(home: Path) -> None:
    (home / "host").mkdir()
    os.chmod(home / "host", 0o755)


def make_host_link(home: Path) -> None:
    home.with_name("elsewhere").mkdir(mode=0o700)
    (home / "host").symlink_to(home.with_name("elsewhere"))


def make_locked_out(home: Path) -> None:
    os.chmod(home, 0o500)


def make_foreign(home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(home, 12345, 12345)


@pytest.mark.parametrize(
    "break_home", [make_link, make_file, make_host_open, make_host_link, make_locked_out, make_foreign]
)
def test_broken_homes(home: Path, break_home: Callable[[Path], None]) -> None:
    break_home(home)
    try:
        findings = found(status=1)
    finally:
        if break_home is make_foreign:
            os.chown(home, os.geteuid(), os.getegid())
        elif break_home is make_locked_out:
            os.chmod(home, 0o700)
    assert findings["home"].status == "failed"
    assert str(home) in findings["home"].message
    assert len(findings) == 19


@pytest.mark.damages_files
def test_conversations_that_cannot_be_read(home: Path) -> None:
    for name, meta in (("good", '{"format": 1}'), ("damaged", "{"), ("newer", '{"format": 99}'), ("empty", None)):
        directory = home / "conversations" / name
        directory.mkdir(parents=True, mode=0o700)
        if meta is not None:
            (directory / "meta.json").write_text(meta)
    os.chmod(home / "conversations" / "good", 0o755)
    finding = found(status=0)["conversations"]
    assert finding.status == "warning"
    assert "4 in" in finding.message
    unread = finding.message.partition("cannot be read: ")[2].partition(";")[0]
    assert all(name in unread for name in ("damaged", "newer", "empty")) and "good" not in unread
    assert "others may enter: good" in finding.message


@pytest.mark.needs("bash")
def test_a_host_that_runs_and_one_that_was_killed(home: Path) -> None:
    async def running() -> dict[str, Finding]:
        async with blockpty.Engine(home) as engine:
            await engine.open("c1", shell="bash")
            return await asyncio.to_thread(found, status=0)

    findings = asyncio.run(asyncio.wait_for(running(), 60))
    assert findings["host"].status == "ok" and "1 shells" in findings["host"].message
    if sys.platform == "linux":
        assert "1 of them have an engine" in findings["conversations"].message


def test_what_killed_ones_left(home: Path) -> None:
    left_socket(home / "host" / "host.sock")
    left_socket(home / "server" / "socket")
    findings = found(status=0)
    assert (findings["host"].status, findings["server"].status) == ("warning", "warning")
    (home / "server" / "token").write_text("secret")
    os.chmod(home / "server" / "token", 0o644)
    findings = found(status=1)
    assert findings["server"].status == "failed" and str(home / "server" / "token") in findings["server"].remedy


# The machine


def test_without_shells(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SHELL", raising=False)
    assert checks.check_shells().status == "failed"
    assert checks.check_default_shell().status == "failed"
    (tmp_path / "fish").write_text("#!/bin/sh\necho fish, version 9.8.7\n")
    os.chmod(tmp_path / "fish", 0o755)
    assert checks.check_shells() == Finding("shells", "ok", "fish 9.8.7")
    monkeypatch.setenv("SHELL", "/bin/nologin")
    finding = checks.check_default_shell()
    assert (
        finding.status == "warning" and str(tmp_path / "fish") in finding.message and "/bin/nologin" in finding.message
    )


def test_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.check_libraries().status == "ok"
    monkeypatch.setattr(checks, "_requirements", lambda: {"click": "999.1", "no-such-library": "1"})
    finding = checks.check_libraries()
    assert finding.status == "failed" and "older than 999.1" in finding.message
    assert "no-such-library is missing" in finding.message


@pytest.mark.parametrize(
    ("hard", "status"), [(resource.RLIM_INFINITY, "ok"), (4096, "ok"), (200, "warning"), (20, "failed")]
)
def test_open_files(monkeypatch: pytest.MonkeyPatch, hard: int, status: str) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, hard))
    assert checks.check_open_files().status == status


@pytest.mark.linux
@pytest.mark.parametrize(("most", "status"), [(resource.RLIM_INFINITY, "ok"), (100, "ok"), (60, "warning")])
def test_processes(monkeypatch: pytest.MonkeyPatch, most: int, status: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(checks, "_own_processes", lambda: 20)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (most, most))
    assert checks.check_processes().status == status


def test_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_number", {"/proc/sys/kernel/pty/nr": 90, "/proc/sys/kernel/pty/max": 100}.get)
    assert checks.check_terminals().status == "warning"

    def none_left() -> tuple[int, int]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "openpty", none_left)
    assert checks.check_terminals().status == "failed"


@pytest.mark.parametrize(
    ("blocks", "inodes", "status"), [(10**9, 9, "ok"), (100_000, 9, "warning"), (10, 9, "failed"), (10**9, 0, "failed")]
)
def test_disk(home: Path, monkeypatch: pytest.MonkeyPatch, blocks: int, inodes: int, status: str) -> None:
    made = os.statvfs_result((4096, 4096, 10**9, blocks, blocks, 10**6, inodes, inodes, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: made)
    assert checks.check_disk(home).status == status


def test_splice(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = "ok" if sys.platform == "linux" else "warning"
    assert checks.check_splice(home).status == expected
    assert list(home.iterdir()) == []
    monkeypatch.setenv("BLOCKPTY_NO_SPLICE", "1")
    assert checks.check_splice(home).status == "warning"


def test_socket_path(home: Path) -> None:
    assert checks.check_socket_path(Path("/h")).status == "ok"
    assert checks.check_socket_path(Path("/h" * 60)).status == "warning"


def test_a_check_that_goes_wrong_is_a_finding(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_name: str) -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr(shutil, "which", wrong)
    findings = {one.name: one for one in doctor_module.examine(home)}
    assert findings["shells"].status == "failed" and "unforeseen" in findings["shells"].message
    assert len(findings) == 19


def test_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxing.shutil, "which", lambda name: None)
    monkeypatch.setattr(sandboxing.sandbox, "landlock_abi", lambda: 4)
    assert checks.check_sandbox().message == "open --sandbox uses landlock"
    monkeypatch.setattr(sandboxing.sandbox, "landlock_abi", lambda: 0)
    found = checks.check_sandbox()
    assert found.status == "warning"
    assert "bubblewrap" in found.remedy
