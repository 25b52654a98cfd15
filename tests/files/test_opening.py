"""Safe open: an unsafe file is refused and left alone; a removed file comes back whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from blockpty.files import opening
from blockpty.files.opening import (
    CHECK_SECONDS,
    Rarely,
    UnsafeFile,
    is_removed,
    make_directory,
    open_regular,
    restore_file,
)
from tests.support.unsafe_files import PRECIOUS, UNSAFE

FLAGS = (os.O_RDONLY, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


@pytest.mark.parametrize("what", UNSAFE)
@pytest.mark.parametrize("flags", FLAGS)
def test_only_regular_files_are_opened(tmp_path: Path, what: str, flags: int) -> None:
    victim, place = tmp_path / "victim", tmp_path / "place"
    victim.write_bytes(PRECIOUS)
    UNSAFE[what](place, victim)
    with pytest.raises(UnsafeFile) as refused:
        open_regular(str(place), flags, ours=True)
    assert refused.value.filename == str(place)
    assert victim.read_bytes() == PRECIOUS
    assert not (tmp_path / "nothing").exists()


def test_a_file_with_a_second_name_may_be_read_where_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(PRECIOUS)
    os.link(tmp_path / "victim", tmp_path / "place")
    os.close(open_regular(tmp_path / "place"))
    with pytest.raises(UnsafeFile, match="another name"):
        open_regular(tmp_path / "place", ours=True)


def test_nothing_is_written_where_a_directory_has_been_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, elsewhere, path = tmp_path / "ours", tmp_path / "elsewhere", tmp_path / "ours" / "file"
    elsewhere.mkdir()
    ours.symlink_to(elsewhere)
    for flags in (os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
        with pytest.raises(UnsafeFile):
            open_regular(path, flags)
    # And when that happens between the look and the file.
    ours.unlink()
    ours.mkdir(mode=0o700)
    real = os.open

    def exchanging(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            ours.rename(tmp_path / "moved")
            ours.symlink_to(elsewhere)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", exchanging)
    os.close(open_regular(path, os.O_RDWR | os.O_CREAT))
    assert (tmp_path / "moved" / "file").exists() and not [*elsewhere.iterdir()]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has directories of two users")
def test_nothing_is_written_into_a_directory_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    for flags in (os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT):
        with pytest.raises(UnsafeFile, match="65534"):
            open_regular(tmp_path / "theirs" / "file", flags)
    assert not [*(tmp_path / "theirs").iterdir()]


@pytest.mark.parametrize("what", [what for what in UNSAFE if what != "directory"])
def test_a_directory_is_one(tmp_path: Path, what: str) -> None:
    make_directory(str(tmp_path / "ours"))
    make_directory(str(tmp_path / "ours"))
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o700
    (tmp_path / "victim").write_bytes(PRECIOUS)
    UNSAFE[what](tmp_path / "place", tmp_path / "victim")
    with pytest.raises(UnsafeFile):
        make_directory(str(tmp_path / "place"))


def test_a_removed_file_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(PRECIOUS * 1000)
    removed = open_regular(path, os.O_RDWR)
    assert not is_removed(removed)
    path.unlink()
    assert is_removed(removed)
    fresh = restore_file(removed, path)
    assert path.read_bytes() == PRECIOUS * 1000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    os.pwrite(fresh, b"L", 0)
    assert path.read_bytes()[:2] == b"L" + PRECIOUS[1:2]
    os.close(removed)
    os.close(fresh)
    assert [*tmp_path.iterdir()] == [path]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Have so many seconds go by."""
    now = 100.0
    monkeypatch.setattr(opening, "monotonic", lambda: now)

    def later(seconds: float) -> None:
        nonlocal now
        now += seconds

    return later


def test_a_check_is_due_a_second_after_the_last_one(wait: Callable[[float], None]) -> None:
    check = Rarely()
    assert not check.due(), "what was just opened was there"
    wait(CHECK_SECONDS / 2)
    assert not check.due()
    wait(CHECK_SECONDS / 2)
    assert check.due() and not check.due(), "once"
    wait(10 * CHECK_SECONDS)
    assert check.due() and not check.due(), "seconds without a check are not made up for"
