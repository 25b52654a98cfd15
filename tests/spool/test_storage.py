"""Unsafe files at the paths of a record: they are refused with an error that names them, and left alone."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

import blockpty
from blockpty.errors import SpoolCorrupt
from blockpty.spool.layout import make_private
from blockpty.spool.storage import open_file, open_restored, restored
from tests.support.async_tests import async_test
from tests.support.unsafe_files import PRECIOUS, UNSAFE

FILES = (
    "stream/" + "0" * 20, "timeline.jsonl", "events.jsonl", "blocks.jsonl", "owner.lock", "meta.json", ".meta.json.new",
)  # fmt: skip


@pytest.mark.parametrize("what", UNSAFE)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC])
def test_only_regular_files_are_opened(tmp_path: Path, what: str, flags: int) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(PRECIOUS)
    UNSAFE[what](tmp_path / "place", victim)
    if what == "hard link" and flags == os.O_RDONLY:
        os.close(open_file(tmp_path / "place", flags))  # reading it does no harm
        return
    with pytest.raises(SpoolCorrupt) as refused:
        open_file(tmp_path / "place", flags)
    assert refused.value.details["path"] == str(tmp_path / "place")
    assert victim.read_bytes() == PRECIOUS
    assert not (tmp_path / "nothing").exists()


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
            for what, make in UNSAFE.items():
                victim.write_bytes(PRECIOUS)
                make_private(directory)
                make_private(directory / "stream")
                make(directory / name, victim)
                try:
                    with pytest.raises(SpoolCorrupt):
                        await engine.open("c1")
                    assert not await engine.live(), what
                finally:
                    # The check of all files that a test leaves behind would read it.
                    shutil.rmtree(directory)
                assert victim.read_bytes() == PRECIOUS, what
                assert sorted(path.name for path in tmp_path.iterdir() if path != home) == ["victim"], what
            assert (await (await engine.open("c2")).run("echo fine")).output == "fine\n"

    check()


@pytest.mark.parametrize("name", ["", "stream", "blocks", "commands"])
def test_a_conversation_is_not_opened_in_a_linked_directory(tmp_path: Path, home: Path, name: str) -> None:
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
    assert open_restored(descriptor, path, 0) is None
    path.unlink()
    assert open_restored(descriptor, path, 0) is None
    fresh = restored(os.dup(descriptor), path)
    assert path.read_bytes() == PRECIOUS * 1000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    os.pwrite(fresh, b"more", len(PRECIOUS) * 1000)
    followed = open_restored(descriptor, path, len(PRECIOUS) * 1000)
    assert followed is not None and os.fstat(followed).st_size == len(PRECIOUS) * 1000 + 4
    # What holds less than was read is not what was removed.
    assert open_restored(descriptor, path, len(PRECIOUS) * 1000 + 5) is None
    for one in (descriptor, fresh, followed):
        os.close(one)
    assert [*tmp_path.iterdir()] == [path]
