"""Durability and quarantine: what is cut off a file is kept beside it; a file system that cannot sync is no error."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from blockpty.files.opening import UnsafeFile
from blockpty.files.sync import QUARANTINE_BYTES, cut_tail, quarantine, sync_directory, sync_file


def test_a_tail_is_cut_and_kept(tmp_path: Path) -> None:
    path, torn = tmp_path / "file", tmp_path / "file.torn"
    assert not cut_tail(path, 0)
    path.write_bytes(b"whole\ntorn")
    assert not cut_tail(path, 10)
    assert not torn.exists()
    assert cut_tail(path, 6)
    assert path.read_bytes() == b"whole\n"
    assert torn.read_bytes() == b"torn\n"
    assert torn.stat().st_mode & 0o777 == 0o600
    quarantine(path, b"more")
    assert torn.read_bytes() == b"torn\nmore\n"


def test_of_a_long_tail_a_first_part_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * (QUARANTINE_BYTES + 10))
    assert cut_tail(path, 5)
    assert (tmp_path / "file.torn").stat().st_size == QUARANTINE_BYTES + 1
    assert path.read_bytes() == b"xxxxx"


def test_nothing_is_cut_before_it_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"whole\ntorn")
    (tmp_path / "file.torn").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeFile):
        cut_tail(path, 6)
    assert path.read_bytes() == b"whole\ntorn"
    assert not (tmp_path / "elsewhere").exists()


def test_only_a_file_system_that_cannot_sync_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = errno.EINVAL

    def fails(descriptor: int) -> None:
        raise OSError(failing, os.strerror(failing))

    with (tmp_path / "file").open("wb") as file:
        sync_file(file.fileno())
        monkeypatch.setattr(os, "fdatasync", fails)
        sync_file(file.fileno())
        failing = errno.EIO
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            sync_file(file.fileno())


def test_a_directory_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    sync_directory(tmp_path)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(synced[0])
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        sync_directory(tmp_path / "file")
