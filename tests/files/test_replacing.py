"""Whole files: read within a bound, replaced as a whole or not at all; only what a shell of this user might touch."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from blockpty.files import replacing
from blockpty.files.opening import UnsafeFile
from blockpty.files.replacing import read_whole, replace_whole


def test_a_file_is_read_up_to_one_byte_more_than_the_bound(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_whole(str(tmp_path / "x"), 5) == b"12345"
    assert read_whole(str(tmp_path / "x"), 3) == b"1234"


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to("nowhere")
    for path, problem in (
        (tmp_path, IsADirectoryError), (tmp_path / "fifo", UnsafeFile), (Path("/dev/null"), UnsafeFile),
    ):  # fmt: skip
        with pytest.raises(problem):
            read_whole(str(path), 1)
        with pytest.raises(problem):
            replace_whole(str(path), b"x", None, 0)
    with pytest.raises(UnsafeFile, match="does not exist"):
        replace_whole(str(tmp_path / "dangling"), b"x", None, 0)
    with pytest.raises(IsADirectoryError):
        replace_whole(f"{tmp_path}/new/", b"x", None, 0)
    assert sorted(os.listdir(tmp_path)) == ["dangling", "fifo"]


def test_permissions_are_those_given_or_there_or_left_by_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for mode, umask, expected in ((None, 0o027, 0o640), (0o751, 0o077, 0o751), (None, 0o077, 0o751)):
        replace_whole(str(path), b"x", mode, umask)
        assert stat.S_IMODE(path.stat().st_mode) == expected


def test_the_file_that_a_link_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    (tmp_path / "link").symlink_to("there/file")
    replace_whole(str(tmp_path / "link"), b"new", None, 0)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "file").read_text() == "new"
    assert os.listdir(tmp_path / "there") == ["file"]


def test_nothing_is_left_of_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_text("old")

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(replacing.os, "rename", refuse)
    with pytest.raises(PermissionError):
        replace_whole(str(tmp_path / "x"), b"new", None, 0)
    assert os.listdir(tmp_path) == ["x"] and (tmp_path / "x").read_text() == "old"
