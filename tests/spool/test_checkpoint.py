"""meta.json and checkpoint.json: replaced whole, refused when of a later version, never trusted when damaged."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.errors import SpoolCorrupt, SpoolVersion
from blockpty.spool.checkpoint import FORMAT_VERSION, NEWEST_VERSION, load_checkpoint, load_meta, replace
from tests.support.async_tests import async_test

META = {"format": FORMAT_VERSION, "conversation_id": "c1", "created_ts": 1, "shell": "", "open": {}}


def test_what_was_replaced_is_what_is_loaded(tmp_path: Path) -> None:
    for name, load in (("meta.json", load_meta), ("checkpoint.json", load_checkpoint)):
        path = tmp_path / name
        before = os.umask(0)
        try:
            replace(path, {**META, "round": 1, "text": "é\0"})
            replace(path, {**META, "round": 2})
        finally:
            os.umask(before)
        assert load(path) == {**META, "round": 2}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.json", "meta.json"]


def test_a_left_over_of_a_killed_writer_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "meta.json"
    (tmp_path / ".meta.json.new").write_bytes(b"x" * 10_000)
    replace(path, META)
    assert load_meta(path) == META


def test_a_link_in_its_place_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / ".meta.json.new").symlink_to(tmp_path / "victim")
    with pytest.raises(SpoolCorrupt):
        replace(tmp_path / "meta.json", META)
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_half_a_write_never_takes_the_place_of_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With little space left write(2) takes a part and says so, without an error."""
    path = tmp_path / "meta.json"
    replace(path, META)
    write, left = os.write, [20]

    def scarce(descriptor: int, data: Any) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = write(descriptor, memoryview(data)[: left[0]])
        left[0] -= taken
        return taken

    monkeypatch.setattr(os, "write", scarce)
    with pytest.raises(OSError):
        replace(path, {**META, "shell": "bash"})
    monkeypatch.undo()
    assert load_meta(path) == META


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b"[]", b"\0" * 100, b"{}", b'{"format":null}', b'{"format":"1"}']
)
def test_damage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c1" / "meta.json"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(SpoolCorrupt) as raised:
        load_meta(path)
    assert raised.value.code == "spool_corrupt" and raised.value.hint
    path.rename(tmp_path / "checkpoint.json")
    assert load_checkpoint(tmp_path / "checkpoint.json") is None


def test_every_cut_of_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    replace(path, {"format": FORMAT_VERSION, "points": [{"state": {}, "timeline": 0}], "journal": {"nonces": ["é"]}})
    content = path.read_bytes()
    for end in range(len(content) - 1):  # the line feed says nothing
        path.write_bytes(content[:end])
        assert load_checkpoint(path) is None


def test_there_is_none(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path / "checkpoint.json") is None
    with pytest.raises(FileNotFoundError):
        load_meta(tmp_path / "meta.json")


@pytest.mark.parametrize("version", [NEWEST_VERSION + 1, 2**40])
def test_a_later_version_is_refused_by_name(tmp_path: Path, version: int) -> None:
    path = tmp_path / "c1" / "meta.json"
    path.parent.mkdir()
    replace(path, {**META, "format": version})
    with pytest.raises(SpoolVersion) as raised:
        load_meta(path)
    assert raised.value.code == "spool_version"
    assert str(version) in str(raised.value) and str(NEWEST_VERSION) in str(raised.value) and "c1" in str(raised.value)
    assert raised.value.hint
    replace(tmp_path / "checkpoint.json", {"format": version})
    assert load_checkpoint(tmp_path / "checkpoint.json") is None


@pytest.mark.parametrize("version", [True, 0, -1])
def test_what_was_never_a_version_is_damage(tmp_path: Path, version: object) -> None:
    replace(tmp_path / "meta.json", {**META, "format": version})
    with pytest.raises(SpoolCorrupt):
        load_meta(tmp_path / "meta.json")


@pytest.mark.damages_files
@async_test
async def test_an_engine_leaves_a_later_version_alone(home: Path) -> None:
    directory = home / "conversations" / "c1"
    directory.mkdir(parents=True, mode=0o700)
    replace(directory / "meta.json", {**META, "format": NEWEST_VERSION + 1})
    before = sorted((path.name, path.read_bytes()) for path in directory.iterdir())
    async with blockpty.Engine(home) as engine:
        for attempt in (engine.open, engine.conversation):
            with pytest.raises(SpoolVersion):
                await attempt("c1")
    assert sorted((path.name, path.read_bytes()) for path in directory.iterdir() if path.is_file()) == before
