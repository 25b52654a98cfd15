"""Private files of a server, and the owner's token."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from blockpty.errors import SpoolCorrupt, StorageFull
from blockpty.surfaces.private_files import open_private, owner_token, read_private, server_directory, write_private


def test_programs_that_need_the_first_token_at_once_get_the_same_one(home: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: owner_token(home), range(64)))
    assert len(set(found)) == 1


def test_a_file_is_written_whole_or_not_at_all(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = server_directory(home) / "x"
    write_private(path, b"one")

    def full(descriptor: int) -> None:
        raise OSError(errno.EIO, "no medium")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull):
        write_private(path, b"another")
    assert read_private(path) == b"one" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["x"], "what was begun is gone"


def test_no_link_is_written_through(home: Path, tmp_path: Path) -> None:
    (server_directory(home) / "x").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SpoolCorrupt):
        open_private(server_directory(home) / "x", os.O_WRONLY)
    assert not (tmp_path / "elsewhere").exists()
