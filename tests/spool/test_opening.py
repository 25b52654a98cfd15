"""What somebody may have put in the place of a file of ours is refused and left alone."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import blockpty
from blockpty.errors import SpoolCorrupt
from blockpty.host.plain import Planted, open_plain
from blockpty.spool.layout import make_private
from blockpty.spool.opening import make_again, open_file, opened_again
from tests.asyncio_support import async_test

PRECIOUS = b"precious\n"


def _socket(place: Path, victim: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        here = os.getcwd()
        os.chdir(place.parent)
        try:
            sock.bind(place.name)
        finally:
            os.chdir(here)


PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda place, victim: place.symlink_to(victim),
    "dangling link": lambda place, victim: place.symlink_to(victim.with_name("nothing")),
    "link to a directory": lambda place, victim: place.symlink_to(victim.parent),
    "hard link": lambda place, victim: os.link(victim, place),
    "directory": lambda place, victim: place.mkdir(),
    "fifo": lambda place, victim: os.mkfifo(place),
    "socket": _socket,
    "link to a device": lambda place, victim: place.symlink_to("/dev/zero"),
}
FILES = (
    "stream/" + "0" * 20, "timeline.jsonl", "events.jsonl", "blocks.jsonl", "owner.lock", "meta.json", ".meta.json.new",
)  # fmt: skip


@pytest.mark.parametrize("what", PLANTED)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC])
def test_only_plain_files_are_opened(tmp_path: Path, what: str, flags: int) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(PRECIOUS)
    PLANTED[what](tmp_path / "place", victim)
    if what == "hard link" and flags == os.O_RDONLY:
        os.close(open_file(tmp_path / "place", flags))  # reading it does no harm
        return
    with pytest.raises(SpoolCorrupt) as refused:
        open_file(tmp_path / "place", flags)
    assert refused.value.details["path"] == str(tmp_path / "place")
    assert victim.read_bytes() == PRECIOUS
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("opened", [open_file, lambda path, flags: open_plain(str(path), flags)])
def test_nothing_is_written_where_a_directory_has_been_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[[Path, int], int]
) -> None:
    ours, elsewhere, path = tmp_path / "ours", tmp_path / "elsewhere", tmp_path / "ours" / "file"
    elsewhere.mkdir()
    ours.symlink_to(elsewhere)
    for flags in (os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
        with pytest.raises((SpoolCorrupt, Planted)):
            opened(path, flags)
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
    os.close(opened(path, os.O_RDWR | os.O_CREAT))
    assert (tmp_path / "moved" / "file").exists() and not [*elsewhere.iterdir()]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has directories of two users")
def test_nothing_is_written_into_a_directory_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    for flags in (os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT):
        with pytest.raises(SpoolCorrupt, match="65534"):
            open_file(tmp_path / "theirs" / "file", flags)
        with pytest.raises(Planted):
            open_plain(str(tmp_path / "theirs" / "file"), flags)
    assert not [*(tmp_path / "theirs").iterdir()]


@pytest.mark.linux
def test_a_device_is_not_touched(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "place", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    with pytest.raises(SpoolCorrupt):
        open_file(tmp_path / "place", os.O_RDWR)


@pytest.mark.parametrize("name", FILES)
def test_a_conversation_is_not_opened_on_it(tmp_path: Path, home: Path, name: str) -> None:
    @async_test
    async def check() -> None:
        victim = tmp_path / "victim"
        directory = home / "conversations" / "c1"
        async with blockpty.Engine(home) as engine:
            for what, plant in PLANTED.items():
                victim.write_bytes(PRECIOUS)
                make_private(directory)
                make_private(directory / "stream")
                plant(directory / name, victim)
                try:
                    with pytest.raises(SpoolCorrupt):
                        await engine.open("c1")
                    assert not await engine.live(), what
                finally:
                    # The check of all files that a test leaves behind would read what was planted.
                    shutil.rmtree(directory)
                assert victim.read_bytes() == PRECIOUS, what
                assert sorted(path.name for path in tmp_path.iterdir() if path != home) == ["victim"], what
            assert (await (await engine.open("c2")).run("echo fine")).output == "fine\n"

    check()


@pytest.mark.parametrize("name", ["", "stream", "blocks", "commands"])
def test_nor_in_a_directory_that_is_elsewhere(tmp_path: Path, home: Path, name: str) -> None:
    @async_test
    async def check() -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        directory = home / "conversations" / "c1"
        make_private(directory.parent)
        if name:
            make_private(directory)
        (directory / name).symlink_to(elsewhere)
        async with blockpty.Engine(home) as engine:
            with pytest.raises(SpoolCorrupt):
                await engine.open("c1")
        assert not [*elsewhere.iterdir()]

    check()


def test_a_removed_file_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(PRECIOUS * 1000)
    descriptor = open_file(path, os.O_RDWR)
    assert opened_again(descriptor, path, 0) is None
    path.unlink()
    assert opened_again(descriptor, path, 0) is None
    fresh = make_again(descriptor, path, os.O_RDWR | os.O_APPEND)
    assert path.read_bytes() == PRECIOUS * 1000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    os.write(fresh, b"more")
    followed = opened_again(descriptor, path, len(PRECIOUS) * 1000)
    assert followed is not None and os.fstat(followed).st_size == len(PRECIOUS) * 1000 + 4
    # What holds less than was read is not what was removed.
    assert opened_again(descriptor, path, len(PRECIOUS) * 1000 + 5) is None
    for one in (descriptor, fresh, followed):
        os.close(one)
    assert [*tmp_path.iterdir()] == [path]
